"""tacit data schema init, tacit data check, and training and predicting with a schema."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from tacit.cli import main
from tacit.run.model import Model
from tests.data.test_schema import write_csv


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """t.csv in the current folder: 90 patients of three hospitals, whose outcome follows from the drug."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    drug = rng.choice(["x", "y", "z"], 90)
    columns = {
        "hospital": list("abc") * 30,
        "age": rng.integers(20, 90, 90).tolist(),
        "drug": drug.tolist(),
        "outcome": np.where(drug == "x", "ill", "well").tolist(),
    }
    return write_csv(tmp_path / "t.csv", columns)


INIT = ["data", "schema", "init", "t.csv", "--label-column", "outcome", "--agent-column", "hospital"]
TRAIN = ["train", "--data", "t.csv", "--schema", "schema.toml", "--algorithm", "iadmm-prox", "--rounds", "300"]


def publish(path: Path = Path("schema.toml")) -> None:
    """What the user does: public numbers, and the mark deleted."""
    text = re.sub(r"read_from_data.*\n", "", path.read_text())
    path.write_text(re.sub("lo = .*", "lo = 30", re.sub("hi = .*", "hi = 120", text)))


@pytest.mark.usefixtures("table")
def test_init_says_loudly_what_it_read_and_training_waits(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(INIT) == 0
    out, err = capsys.readouterr()
    assert out.startswith('t.csv: cells between commas, quoted with ", decimal points\nagent: ')
    assert out.endswith("label: 'outcome'\nnumeric: 'age'\nwrote schema.toml\n")
    assert "NOT PRIVATE YET: the ranges and lists of 'age', 'drug', 'outcome'" in err
    assert main([*TRAIN, "--out", "run", "-qq"]) == 2
    assert "still hold numbers or lists read from the data" in capsys.readouterr().err
    assert not Path("run").exists()
    assert main(INIT) == 2
    assert "schema.toml exists" in capsys.readouterr().err
    assert main([*INIT, "--out", "no/where.toml"]) == 2
    assert "cannot write" in capsys.readouterr().err


EXPORT = Path("export.csv")


@pytest.fixture
def export(table: Path) -> None:
    """The same patients as another program writes them, with a number of the patient and a remark."""
    rows = [row.split(",") for row in table.read_text().splitlines()]
    lines = ["\ufeffno;weight;" + ";".join(rows[0]) + ";remark"]
    for i, row in enumerate(rows[1:]):
        remark = f'"seen; case {i}"'
        lines.append(f"{7 * i + 1000};{i % 40},{i % 4 + 5};{';'.join(row)};{remark}")
    lines[40] = lines[40].replace(";", ";ca. ", 1)  # a weight that is no number
    lines[50] = '"' + lines[50]
    EXPORT.write_text("\r\n".join(lines), encoding="utf-8", newline="")


@pytest.mark.usefixtures("export")
def test_init_says_how_a_file_is_written_and_what_it_left_out_and_writes_that_down(
    capsys: pytest.CaptureFixture[str],
) -> None:
    init = ["data", "schema", "init", str(EXPORT), *INIT[4:]]
    assert main(init) == 0
    out = capsys.readouterr().out.splitlines()
    assert out == [
        'export.csv: cells between semicolons, quoted with ", decimal commas',
        "1 of 90 records are not well-formed, and are read as if every cell were missing: line 51",
        "note: it begins with a byte order mark, which is no part of the first name",
        "note: 'weight': no number in 1 of 89 cells (1.1 %), such as 'ca. 39,8': read as missing",
        "agent: 'hospital'",
        "categorical: 'drug'",
        "label: 'outcome'",
        "numeric: 'weight', 'age'",
        "left out 'no': an identifier? it is called a number or key, and nearly every record has a value of its own",
        "left out 'remark': an identifier? nearly every record has a text of its own",
        "wrote schema.toml",
    ]
    assert "[file]" in Path("schema.toml").read_text()
    assert main([*init, "--out", "again.toml", "--json", "-qq"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["file"] == {"separator": ";", "quote": '"', "decimal": ",", "newlines": False}
    assert found["kinds"]["weight"] == "numeric"
    assert (found["records"], found["malformed"], list(found["ignored"])) == (90, ["line 51"], ["no", "remark"])


@pytest.mark.usefixtures("export")
def test_a_stray_quote_ends_no_run_and_the_model_reads_files_as_it_was_trained(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(["data", "schema", "init", str(EXPORT), *INIT[4:], "-qq"])
    publish()
    assert main([*TRAIN[:2], str(EXPORT), *TRAIN[3:], "--out", "run", "-qq"]) == 0
    capsys.readouterr()
    assert main(["data", "check", str(EXPORT), "--schema", "schema.toml"]) == 2
    out, err = capsys.readouterr()
    assert "1 of 90 records are not well-formed" in out
    assert "training counts them as absent" in err
    assert main(["data", "describe", str(EXPORT), "--schema", "schema.toml", "-qq", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["P"] == 3
    EXPORT.write_text('drug;age;weight\nx;44;70,5\n"y;50;60\nz;60;1,5\n')
    assert main(["predict", "--model", "run", "--data", str(EXPORT)]) == 0
    assert len(capsys.readouterr().out.split()) == 3  # a malformed line has its prediction too
    EXPORT.write_text("drug,age,weight\nx,44,70\n")
    assert main(["predict", "--model", "run", "--data", str(EXPORT)]) == 2
    assert "cells are read between ';'" in capsys.readouterr().err


@pytest.mark.usefixtures("table")
def test_check_prints_the_counts_for_the_owner(capsys: pytest.CaptureFixture[str]) -> None:
    main([*INIT, "-qq"])
    capsys.readouterr()
    assert main(["data", "check", "t.csv", "--schema", "schema.toml"]) == 0
    assert "read from the data" in capsys.readouterr().err
    publish()
    assert main(["data", "check", "t.csv", "--schema", "schema.toml", "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    ages = [int(row.split(",")[1]) for row in Path("t.csv").read_text().split()[1:]]
    assert found["counts"]["age"]["clipped"] == sum(age < 30 for age in ages) > 0
    assert found["row_bound"] == {"l1": 2, "l2": math.sqrt(2)}
    assert err == ""
    assert main(["data", "check", "t.csv", "--schema", "schema.toml"]) == 0
    assert "90 records, 4 features from 2 columns" in capsys.readouterr().out


def test_check_points_at_columns_that_do_not_fit(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([*INIT, "-qq"])
    publish()
    table.write_text(table.read_text().replace("ill\n", "sick\n").replace(",x,", ",X,").replace(",y,", ",Y,"))
    assert main(["data", "check", "t.csv", "--schema", "schema.toml"]) == 2
    err = capsys.readouterr().err
    assert "most cells of 'drug' are unknown" in err
    assert "no usable label in 'outcome'" in err


def test_a_model_predicts_through_the_schema_it_was_trained_with(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([*INIT, "-qq"])
    publish()
    assert main([*TRAIN, "--set", "data.intercept=true", "--out", "run", "-qq"]) == 0
    Path("schema.toml").unlink()
    table.write_text("drug,age\nx,44\ny,?\nz,oldish\nunknown,1e9\n")
    capsys.readouterr()
    assert main(["predict", "--model", "run", "--data", "t.csv"]) == 0
    assert capsys.readouterr().out.split()[:3] == ["ill", "well", "well"]
    assert main(["predict", "--model", "run", "--data", "t.csv", "--label-column", "drug"]) == 2
    assert "names 'outcome', not 'drug'" in capsys.readouterr().err
    table.write_text("drug\nx\n")
    assert main(["predict", "--model", "run", "--data", "t.csv"]) == 2
    assert "lacks 'age' of the model's schema" in capsys.readouterr().err


@pytest.mark.usefixtures("table")
def test_nothing_a_run_writes_holds_a_count(capsys: pytest.CaptureFixture[str]) -> None:
    main([*INIT, "-qq"])
    publish()
    main([*TRAIN, "--out", "run"])
    out, err = capsys.readouterr()
    written = "".join(path.read_text() for path in Path("run").iterdir() if path.suffix != ".npz")
    for word in ("clipped", "unreadable", "unknown"):
        assert word not in out + err + written


def test_a_model_without_schema_still_reads(tmp_path: Path) -> None:
    old = Model(np.ones((2, 2)), np.ones((2, 2)), ("a", "b"), ("u", "v")).arrays()
    del old["schema"]
    np.savez(tmp_path / "model.npz", **old)  # type: ignore[arg-type]
    assert Model.read(tmp_path / "model.npz").schema == ""
