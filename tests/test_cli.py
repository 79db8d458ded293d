"""What a person meets at the command line: results on stdout, the rest on stderr, 2 for bad input."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from tacit.cli import main
from tacit.privacy.exclusions import OF_A_SEED, Exclusion
from tests.privacy.guarantees import guarantee

SMALL = ["train", "--preset", "released", "--data", "synthetic", "--agents", "4"]
SMALL += ["--set", "data.records=200", "--rounds", "5"]


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def table(tmp_path):
    """patients.csv: three hospitals, two features, two outcomes."""
    rng = np.random.default_rng(0)
    lines = ["hospital,age,dose,outcome"]
    for n in range(90):
        age, dose = rng.uniform(), rng.uniform()
        lines.append(f"{'abc'[n % 3]},{age:.4f},{dose:.4f},{'well' if age > dose else 'ill'}")
    path = tmp_path / "patients.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


TABLE = ["--agent-column", "hospital", "--label-column", "outcome"]


def test_train_writes_a_run_and_says_what_it_gave(capsys, tmp_path):
    assert main([*SMALL, "--out", "run"]) == 0
    out, err = capsys.readouterr()
    assert "test error" in out
    assert "guarantee   not private" in out
    assert "run/report.html" in out
    assert "round 5/5" in err
    assert "warning: not private" in err
    assert (tmp_path / "run" / "report.html").read_text().startswith("<!doctype html>")


def test_train_says_how_many_records_train_and_how_many_are_held_out(capsys, table):
    for share, told in (("0.2", "90 records: 72 train, 18 held out"), ("0", "90 records: 90 train, 0 held out")):
        words = ["--rounds", "2", "--set", f"data.test_fraction={share}", "--out", f"run{share}", "-qq"]
        assert main(["train", "--data", str(table), *TABLE, *words]) == 0
        assert f"data        patients, 3 agents; {told}\n" in capsys.readouterr().out


def test_json_prints_one_object_and_nothing_else(capsys):
    assert main([*SMALL, "--json", "-qq"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["rounds"] == 5
    assert err == ""


def test_without_out_runs_are_numbered(tmp_path):
    for _ in range(2):
        assert main([*SMALL, "-qq"]) == 0
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["synthetic-objt-1", "synthetic-objt-2"]


def test_a_written_spec_can_be_run_again_with_another_seed():
    main([*SMALL, "--out", "first", "-qq"])
    assert main(["train", "--config", "first/spec.toml", "--out", "second", "-qq"]) == 0
    assert main(["train", "--config", "first/spec.toml", "--out", "third", "--seed", "1", "-qq"]) == 0
    assert main(["train", "--config", "first/spec.toml", "--out", "no", "--preset", "paper", "-qq"]) == 2
    first, second, third = (np.load(f"{name}/model.npz")["w"] for name in ("first", "second", "third"))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, third)


def test_verbose_prints_a_line_a_recorded_round(capsys):
    main([*SMALL, "-v"])
    assert capsys.readouterr().err.count("objective") == 5


def test_predict_gives_a_class_a_line_and_the_error_aside(capsys, table):
    main(["train", "--data", str(table), *TABLE, "--algorithm", "iadmm-prox", "--rounds", "300", "--out", "run", "-qq"])
    capsys.readouterr()
    assert main(["predict", "--model", "run", "--data", str(table), *TABLE]) == 0
    out, err = capsys.readouterr()
    assert set(out.split()) == {"ill", "well"}
    assert len(out.split()) == 90
    assert "error" in err


def test_predict_takes_columns_in_any_order_and_needs_no_label(capsys, table):
    main(["train", "--data", str(table), *TABLE, "--rounds", "5", "--out", "run", "-qq"])
    rows = [line.split(",") for line in table.read_text().splitlines()]
    other = table.with_name("other.csv")
    other.write_text("\n".join(f"{dose},{age}" for _, age, dose, _ in rows) + "\n")
    capsys.readouterr()
    main(["predict", "--model", "run", "--data", str(table), *TABLE, "--json"])
    first = json.loads(capsys.readouterr().out)
    main(["predict", "--model", "run", "--data", str(other), "--json"])
    second = json.loads(capsys.readouterr().out)
    assert first["predictions"] == second["predictions"]
    assert second["error"] is None


def test_describe_prints_table_one(capsys, table):
    assert main(["data", "describe", str(table), *TABLE, "--json"]) == 0
    described = json.loads(capsys.readouterr().out)
    assert (described["J"], described["K"], described["P"]) == (2, 2, 3)
    assert main(["data", "describe", "mnist"]) == 0
    line = capsys.readouterr().out.splitlines()[-1].split()
    assert line == ["mnist", "60000", "784", "10", "10", "6000", "0"]


@pytest.mark.parametrize(("arguments", "says"), [
    (["--epsilon", "0"], "epsilon must be positive"),
    (["--epsilon", "-1"], "epsilon must be positive"),
    (["--epsilon", "nan"], "privacy.epsilon"),
    (["--algorithm", "objq"], "did you mean 'obj"),
    (["--preset", "papr"], "did you mean 'paper'"),
    (["--set", "privacy.clp=1"], "did you mean 'privacy.clip'"),
    (["--set", "privacy.clip"], "key=value"),
    (["--set", "algorithm.rule=tryst"], "did you mean 'trust'"),
    (["--config", "absent.toml"], "cannot read absent.toml"),
    (["--data", "absent.csv"], "absent.csv does not exist"),
    (["--data", "mnits"], "did you mean 'mnist'"),
    (["--data", "mnist", "--agents", "7", "--set", "data.seed=0"], "7"),
    (["--rounds", "0"], "run.rounds must be at least 1"),
    (["--seed", "-1"], "run.seed"),
    (["--algorithm", "admm", "--epsilon", "1"], "adds no noise"),
    (["--set", "algorithm.name=outp"], "choose it with --algorithm"),
    (["--set", "run.preset=paper"], "choose it with --preset"),
    (["--algorithm", "outp", "--epsilon", "100"], "classic Gaussian formula does not give"),
    (["--resume", "nowhere"], "--resume takes everything from the run"),
    (["--engine", "quantum"], "unknown value of run.engine"),
    (["--device", "gpu"], "unknown value of run.device"),
    (["--device", "cuda"], "add --engine torch"),
])  # fmt: skip
def test_bad_input_is_one_line_exit_code_2_and_nothing_left_behind(capsys, tmp_path, arguments, says):
    assert main([*SMALL, "--out", "run", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_an_out_directory_that_cannot_be_used_is_refused(capsys, tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    for out, says in (("file/run", "cannot write"), ("full", "not empty"), ("file", "is a file")):
        assert main([*SMALL, "--out", out, "-q"]) == 2
        assert says in capsys.readouterr().err


@pytest.mark.parametrize("damage", [b"", b"not a zip", None])
def test_a_damaged_model_is_refused(capsys, table, tmp_path, damage):
    main(["train", "--data", str(table), *TABLE, "--rounds", "2", "--out", "run", "-qq"])
    path = tmp_path / "run" / "model.npz"
    path.write_bytes(path.read_bytes()[:-200] if damage is None else damage)
    for model, says in (("run", "was changed"), ("run/model.npz", "damaged")):
        assert main(["predict", "--model", model, "--data", str(table)]) == 2
        assert says in capsys.readouterr().err


def test_predicting_with_missing_columns_or_models_is_refused(capsys, table, tmp_path):
    main(["train", "--data", str(table), *TABLE, "--rounds", "2", "--out", "run", "-qq"])
    (tmp_path / "few.csv").write_text("age\n0.5\n")
    assert main(["predict", "--model", "run", "--data", "few.csv"]) == 2
    assert "'dose'" in capsys.readouterr().err
    assert main(["predict", "--model", "absent", "--data", "few.csv"]) == 2
    assert "does not exist" in capsys.readouterr().err


def test_resume_of_a_damaged_spec_names_the_file(capsys, tmp_path):
    main([*SMALL, "--out", "run", "-qq"])
    (tmp_path / "run" / "spec.toml").write_text("[run]\nround = 5\n")
    assert main(["train", "--resume", "run"]) == 2
    assert "did you mean 'run.rounds'" in capsys.readouterr().err


def test_without_a_test_set_the_error_is_null(capsys, table, tmp_path):
    arguments = ["train", "--data", str(table), *TABLE, "--set", "data.test_fraction=0", "--rounds", "3"]
    assert main([*arguments, "--out", "run", "--json", "-qq"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["test_error"], summary["test_error_averaged"], summary["records"]) == (None, None, 90)
    assert main([*arguments, "-v"]) == 0
    out, err = capsys.readouterr()
    assert "no test records" in out
    assert "test error -" in err
    assert main(["train", "--resume", "run", "-qq"]) == 0
    page = (tmp_path / "run" / "report.html").read_text()
    assert "Consensus violation" in page
    assert "Training objective" not in page  # its noise is exact


def test_describe_takes_any_key_from_a_file_or_from_set(capsys, tmp_path):
    (tmp_path / "spec.toml").write_text('[data]\nsource = "synthetic"\nrecords = 50\nagents = 5\nfeatures = 4\n')
    arguments = ["--config", "spec.toml", "--agents", "2", "--set", "data.records=60"]
    assert main(["data", "describe", *arguments, "--json"]) == 0
    described = json.loads(capsys.readouterr().out)
    assert (described["I"], described["J"], described["P"]) == (60, 4, 2)
    assert main(["data", "describe", "synthetic", "--set", "data.recods=60"]) == 2
    assert "did you mean 'data.records'" in capsys.readouterr().err


@pytest.mark.parametrize(("error", "says"), [
    (MemoryError("Unable to allocate 72 TiB"), "not enough memory: Unable to allocate 72 TiB"),
    (PermissionError(13, "Permission denied", "secret"), "Permission denied: 'secret'"),
])  # fmt: skip
def test_what_the_machine_refuses_is_one_line(capsys, monkeypatch, error, says):
    def fail(_spec):
        raise error

    monkeypatch.setattr("tacit.run.build.federation", fail)
    assert main([*SMALL, "--out", "run"]) == 1
    err = capsys.readouterr().err
    assert says in err
    assert err.count("\n") == 1


def test_output_that_the_terminal_cannot_write_is_escaped(tmp_path):
    command = [sys.executable, "-m", "tacit", *SMALL, "--out", "rün", "-qq"]
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert "r\\xfcn/report.html" in done.stdout


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_one_line(tmp_path):
    command = f"{sys.executable} -m tacit train --keys > /dev/full"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "No space left" in done.stderr


def test_a_folder_whose_name_is_not_utf8_is_refused_before_training(capsys, table, tmp_path, monkeypatch):
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("this file system takes only UTF-8 names")
    (folder / "a.csv").write_text(table.read_text())
    assert main(["train", "--data", str(folder), *TABLE, "-q"]) == 2
    assert "not UTF-8" in capsys.readouterr().err
    monkeypatch.chdir(folder)
    assert main(["train", "--data", ".", *TABLE, "-q"]) == 2
    assert "is not Unicode" in capsys.readouterr().err
    assert [path.name for path in folder.iterdir()] == ["a.csv"]


def test_help_and_keys_teach(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["train", "--help"])
    assert stop.value.code == 0
    assert "examples:" in capsys.readouterr().out
    assert main(["train", "--keys"]) == 0
    assert "privacy.epsilon" in capsys.readouterr().out


def test_interrupting_saves_and_says_how_to_go_on(tmp_path):
    arguments = [sys.executable, "-m", "tacit", *SMALL[:-1], "100000", "--out", "run", "-v"]
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        for line in process.stderr:
            if line.startswith("t="):
                break
        os.kill(process.pid, signal.SIGINT)
        rest = process.stderr.read()
    assert process.returncode == 130
    assert "continue with: tacit train --resume run" in rest
    assert "Traceback" not in rest
    assert (tmp_path / "run" / "checkpoint.npz").exists()


def test_a_reader_that_leaves_early_is_no_error(tmp_path):
    command = f"{sys.executable} -m tacit train --keys | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.stderr == ""


def test_a_warning_of_many_runs_is_shown_once(tmp_path, capsys):
    grid = tmp_path / "grid.toml"
    grid.write_text('[data]\nsource = "synthetic"\nagents = 3\nrecords = 60\n[run]\npreset = "released"\nrounds = 2\n'
                    "seed = [0, 1, 2]\n")  # fmt: skip
    assert main(["sweep", "--config", str(grid), "--out", str(tmp_path / "out"), "-q"]) == 0
    assert capsys.readouterr().err.count("not private") == 1


def test_keys_are_those_of_sound_and_say_so(capsys):
    assert main(["train", "--keys"]) == 0
    title, *lines = capsys.readouterr().out.splitlines()
    values = {line.split()[0]: line.split()[1] for line in lines}
    assert title.startswith("# The values of --preset sound --algorithm objt.")
    assert (values["privacy.covers"], values["privacy.epsilon"], values["features.map"]) == ("run", "1.0", "auto")
    assert main(["train", "--keys", "--preset", "released"]) == 0
    title, *lines = capsys.readouterr().out.splitlines()
    assert "--preset released" in title
    assert {line.split()[0]: line.split()[1] for line in lines}["privacy.covers"] == "round"


@pytest.mark.parametrize("extra", [[], ["--seed", "0"]])
def test_what_is_not_covered_is_three_lines_and_a_link_and_stays_whole_in_the_result(
    capsys, tmp_path, extra, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "120")
    arguments = ["train", "--data", "heart", "--rounds", "2", "--out", "run", "-qq", *extra]
    assert main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("not covered"))
    last = next(i for i, line in enumerate(lines) if line.startswith("time"))
    told, link = " ".join(lines[first : last - 1]), lines[last - 1]
    assert last - first <= 4
    assert max(map(len, lines[first:last])) <= 120
    assert link.strip() == "in full: run/result.json (not_covered), and docs/guarantees.md"
    items = json.loads((tmp_path / "run" / "result.json").read_text())["not_covered"]
    assert len(items) >= 5
    assert told.count(";") == len(items) - 1  # every one is named
    assert ("whoever knows the seed" in told) == bool(extra)


def test_many_things_that_are_not_covered_are_counted(tmp_path):
    from tacit.cli.train import _not_covered

    every = tuple(one for one in Exclusion if one not in OF_A_SEED)
    told, link = _not_covered(guarantee(not_covered=every, own_map="own.py:f"), tmp_path).split("\n")
    assert len(told) <= 320
    assert told.startswith("what own.py:f does beyond one record at a time; the test results in result.json")
    assert told.endswith("; and 4 more")
    assert str(tmp_path / "result.json") in link
    assert _not_covered(guarantee(reasons=("no noise is added.",)), tmp_path) == ""


def test_train_says_what_the_ledgers_have_spent_over_all_runs(capsys):
    words = ["train", "--data", "heart", "--rounds", "2", "-qq", "--ledger", "books"]
    spent = []
    for run in ("first", "second"):
        assert main([*words, "--out", run]) == 0
        spent.append([line for line in capsys.readouterr().out.splitlines() if line.startswith("ledgers")])
    assert spent == [[], ["ledgers     epsilon 1.455 is spent over all runs, and no limit is set (tacit ledger limit)"]]
    assert main([*words[:-1], "limited", "--limit", "3", "--out", "third"]) == 0
    assert "ledgers     epsilon 1 is spent over all runs, of 3 allowed" in capsys.readouterr().out
