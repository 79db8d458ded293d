"""Records that cannot be trusted or read are refused in one line, with exit code 2 and the run to repeat."""

import json

import pytest

from tacit import record
from tacit.cli import main
from tests.report import made


def refusal(path, tmp_path, capsys):
    out = tmp_path / "page.html"
    assert main(["report", str(path), "--out", str(out)]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert not out.exists()
    return err


@pytest.mark.parametrize("change", [
    {"test_error": 0.01}, {"curve": {"t": [1]}}, {"spec": made.spec(2.0)}, {"guarantee": "private"}, {"seal": None},
])  # fmt: skip
def test_an_edited_record_is_refused_and_the_run_named(tmp_path, capsys, change):
    path = made.write(tmp_path / "sweep") / "records.jsonl"
    first, *rest = path.read_text().splitlines()
    path.write_text("\n".join([json.dumps(json.loads(first) | change), *rest]) + "\n")
    assert "Run epsilon1.0-seed0 again" in refusal(path, tmp_path, capsys)


def test_a_record_without_a_seal_or_a_curve_is_refused(tmp_path, capsys):
    path = tmp_path / "old.jsonl"
    path.write_text(json.dumps({"name": "old", "test_error": 0.1}) + "\n")
    assert "Run it again with this version" in refusal(path, tmp_path, capsys)
    found = made.one(0.1, made.spec(), "flat")
    path.write_text(record.lines([record.sealed({key: found[key] for key in found if key != "curve"})]))
    assert "flat has no curve. Run flat again" in refusal(path, tmp_path, capsys)


@pytest.mark.parametrize("wrong", [{"rounds": 9}, {"algorithm": "objp"}, {"test_error": 0.0}, {"test_error": None}])
def test_a_record_that_does_not_fit_its_spec_or_its_curve_is_refused_though_sealed(tmp_path, capsys, wrong):
    path = made.write(tmp_path / "sweep", [made.one(0.1, made.spec(2.0), "odd", **wrong)])
    assert "Run odd again" in refusal(path, tmp_path, capsys)


def test_a_run_that_is_there_twice_is_refused(tmp_path, capsys):
    again = made.one(0.11, made.spec(1.0, 0), "again")
    assert "again is there twice" in refusal(made.write(tmp_path / "sweep", [*made.records(), again]), tmp_path, capsys)


def test_a_run_that_was_measured_twice_is_no_second_seed(tmp_path, capsys):
    again = made.one(0.11, made.spec(1.0, 0) + "record_every = 5\n", "again")
    assert "again is there twice" in refusal(made.write(tmp_path / "sweep", [*made.records(), again]), tmp_path, capsys)


@pytest.mark.parametrize(("content", "says"), [
    (None, "does not exist"), ("", "holds no records"), ("\x00\xff", "not a whole record"),
])  # fmt: skip
def test_files_without_records_are_refused(tmp_path, capsys, content, says):
    path = tmp_path / "file.jsonl"
    if content is not None:
        path.write_text(content)
    assert says in refusal(path, tmp_path, capsys)


def test_a_directory_of_nothing_and_an_unfinished_run_are_refused(tmp_path, capsys):
    path = tmp_path / "run"
    path.mkdir()
    assert "neither a run" in refusal(path, tmp_path, capsys)
    (path / "spec.toml").write_text(made.spec())
    assert f"tacit train --resume {path}" in refusal(path, tmp_path, capsys)


def test_a_run_whose_result_is_not_that_of_its_last_round_is_refused(tmp_path, capsys):
    path = tmp_path / "run"
    arguments = ["train", "--data", "synthetic", "--agents", "3", "--set", "data.records=60", "--rounds", "3", "-qq"]
    assert main([*arguments, "--seed", "0", "--out", str(path)]) == 0
    capsys.readouterr()
    result = json.loads((path / "result.json").read_text())
    (path / "result.json").write_text(json.dumps(result | {"test_error": 0.0}))
    assert "run run again" in refusal(path, tmp_path, capsys)
    (path / "result.json").write_text("{")
    assert "is damaged" in refusal(path, tmp_path, capsys)


@pytest.mark.parametrize(("change", "says"), [
    ({"name": None, "panels": [{"x": "t"}]}, "has no 'y'"),
    ({"series": [{"panel": 7, "name": "s", "x": [], "y": []}]}, "panel 7"),
    ({"table": {"columns": ["a"], "rows": [[1, 2]]}}, "2 cells for 1 columns"),
    ({"panels": [{"x": "algorithm.name", "y": "test_error"}]}, "no number to draw against"),
    ({"panels": 3}, "is no artefact"),
])  # fmt: skip
def test_an_artefact_that_breaks_its_form_is_refused(tmp_path, capsys, change, says):
    path = made.write(tmp_path / "fig", None, made.ARTEFACT | {"series": []} | change)
    assert says in refusal(path, tmp_path, capsys)


@pytest.mark.parametrize(("change", "says"), [
    ({"table": {"columns": ["constant", "value"], "rows": [["U1", 0.5]]}}, "was changed after it was written"),
    ({"series": [{"panel": 0, "name": "bound", "x": [1, 10], "y": [0.5, 9.0]}]}, "was changed after it was written"),
    ({"seal": None}, "was changed after it was written"),
    ({}, "has no seal"),
])  # fmt: skip
def test_an_edited_artefact_is_refused(tmp_path, capsys, change, says):
    path = made.write_artefact(tmp_path / "fig9")
    found = json.loads((path / "artefact.json").read_text())
    if not change:
        del found["seal"]
    (path / "artefact.json").write_text(json.dumps(found | change))
    err = refusal(path, tmp_path, capsys)
    assert says in err
    assert "un `tacit reproduce` again" in err


@pytest.mark.parametrize("kept", [0, 3])
def test_an_artefact_without_some_of_its_records_is_refused(tmp_path, capsys, kept):
    path = made.write_artefact(tmp_path / "fig9")
    lines = (path / "records.jsonl").read_text().splitlines(keepends=True)
    (path / "records.jsonl").write_text("".join(lines[:kept]))
    assert "bare is missing, new or another" in refusal(path, tmp_path, capsys)
    other = made.one(0.3, made.spec(seed=7), "bare")
    (path / "records.jsonl").write_text(record.lines([other]) + "".join(lines))
    assert "bare is missing, new or another" in refusal(path, tmp_path, capsys)
    (path / "records.jsonl").unlink()
    assert "bare is missing" in refusal(path, tmp_path, capsys)


@pytest.mark.parametrize(("old", "new", "says"), [
    ('"test_error": 0.1', '"test_error": 0.2, "test_error": 0.1', "not a whole record"),
    ('"seconds": 2.0', '"seconds": NaN', "not a whole record"),
    (', "seal"', "", "not a whole record"),
])  # fmt: skip
def test_a_line_that_is_no_record_is_refused_and_its_run_named(tmp_path, capsys, old, new, says):
    path = made.write(tmp_path / "sweep") / "records.jsonl"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    err = refusal(path, tmp_path, capsys)
    assert says in err
    assert "run epsilon1.0-seed0 again" in err


@pytest.mark.parametrize("wrong", [
    {"test_error": "a"}, {"seconds": "long"}, {"seconds": 10**400}, {"seconds": True},
    {"curve": {"t": ["x"]}}, {"curve": {"t": 3}}, {"curve": 3},
])  # fmt: skip
def test_text_where_numbers_belong_is_refused_though_sealed(tmp_path, capsys, wrong):
    odd = record.sealed(made.one(0.1, made.spec(2.0), "odd") | wrong)
    assert "Run odd again" in refusal(made.write(tmp_path / "sweep", [odd]), tmp_path, capsys)


def test_a_mark_before_the_first_record_is_no_damage(tmp_path):
    path = made.write(tmp_path / "sweep") / "records.jsonl"
    path.write_text("\ufeff" + path.read_text())
    assert main(["report", str(path), "--out", str(tmp_path / "page.html"), "-q"]) == 0


def test_a_page_cannot_replace_a_directory(tmp_path, capsys):
    assert main(["report", str(made.write(tmp_path / "sweep")), "--out", str(tmp_path)]) == 2
    assert "give --out a file" in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--out", "--figures"])
def test_a_page_or_figures_that_cannot_be_written_are_refused(tmp_path, capsys, flag):
    (tmp_path / "file").write_text("")
    places = {"--out": tmp_path / "page.html", "--figures": tmp_path / "figures"} | {flag: tmp_path / "file" / "in"}
    options = [str(word) for pair in places.items() for word in pair]
    assert main(["report", str(made.write(tmp_path / "sweep")), *options]) == 2
    assert f"Give another {flag}" in capsys.readouterr().err
