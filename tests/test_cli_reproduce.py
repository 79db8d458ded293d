"""tacit reproduce at the command line."""

import json

import pytest

from tacit import record
from tacit.cli import main
from tacit.paper import artefact

TINY = """
title = "tiny"
about = "two runs"
[[grid]]
[grid.data]
source = "synthetic"
agents = 3
records = 60
[grid.algorithm]
name = "objt"
[grid.run]
preset = "released"
rounds = 6
seed = [0, 1]
[[printed]]
label = "ObjT"
where = { "algorithm.name" = "objt" }
y = "test_error"
paper = 0.1
tolerance = 0.01
"""

pytestmark = pytest.mark.filterwarnings("ignore::tacit.errors.TacitWarning")


@pytest.fixture(autouse=True)
def _tiny_paper(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "paper").mkdir()
    (tmp_path / "paper" / "tiny.toml").write_text(TINY)
    (tmp_path / "paper" / "leaf.toml").write_text(
        TINY.replace('"synthetic"\nagents = 3\nrecords = 60', '"femnist"')
    )
    read_all = artefact.read_all
    monkeypatch.setattr(artefact, "read_all", lambda: read_all(tmp_path / "paper"))


def test_all_runs_what_can_be_run_says_what_cannot_and_succeeds(capsys, tmp_path):
    assert main(["reproduce", "--scale", "full"]) == 0
    out, err = capsys.readouterr()
    assert "skipped: 2 runs of leaf. FEMNIST is not shipped: give --femnist DIR" in err
    assert "2 runs, about" in err
    assert "misses by" in out
    assert "not run: leaf\n" in out
    assert len(record.read(tmp_path / "runs/paper-full/records.jsonl")) == 2
    assert (tmp_path / "runs/paper-full/tiny/artefact.json").exists()
    assert not (tmp_path / "runs/paper-full/leaf").exists()
    assert main(["reproduce", "--scale", "full", "--resume"]) == 0
    again, err = capsys.readouterr()
    assert again == out
    assert "0 runs; 2 recorded" in err


def test_json_is_one_object(capsys, tmp_path):
    assert main(["reproduce", "tiny", "--json", "-qq"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    (number,) = json.loads(out)["numbers"]
    errors = [one["test_error"] for one in record.read(tmp_path / "runs/paper-quick/records.jsonl")]
    assert number["tacit"] == pytest.approx(sum(errors) / 2)
    assert (number["artefact"], number["label"], number["paper"], number["seeds"]) == ("tiny", "ObjT", 0.1, 2)
    assert number["difference"] == pytest.approx(number["tacit"] - 0.1)
    assert number["verdict"] == "shown, not claimed"
    assert "quick scale" in number["note"]


def test_the_table_says_what_the_page_says(capsys, tmp_path):
    """A run that diverged is counted in the note of both; a quantity that is no error is in no per cent."""
    number = TINY[TINY.index("[[printed]]") :]
    (tmp_path / "paper" / "tiny.toml").write_text(TINY + number.replace("test_error", "objective"))
    main(["reproduce", "tiny", "--scale", "full", "-qq"])
    path = tmp_path / "runs/paper-full/records.jsonl"
    first, second = record.read(path)
    lost = {key: second[key] for key in ("name", "spec")} | {"diverged": "in round 1"}
    path.write_text(record.lines([first, record.sealed(lost)]))
    capsys.readouterr()
    assert main(["reproduce", "tiny", "--scale", "full", "--recorded"]) == 0
    _, error, objective, *_ = capsys.readouterr().out.splitlines()
    page = (tmp_path / "runs/paper-full/report.html").read_text()
    for row in (error, objective):
        assert "1 of 2 runs diverged" in row
        verdict = row[row.index("misses by") : row.index(" (")]
        assert f">{verdict}<" in page
    assert f"{100 * first['test_error']:.2f}%" in error
    assert "%" not in objective
    assert f"{first['objective']:.4g}" in objective


def test_plan_lists_what_is_left_and_runs_nothing(capsys, tmp_path):
    assert main(["reproduce", "tiny", "--plan", "--json"]) == 0
    out, _ = capsys.readouterr()
    assert len(json.loads(out)["runs"]) == 2
    assert not (tmp_path / "runs").exists()


def test_the_announcement_says_that_jobs_share_the_cores(capsys):
    for n, said in ((1, False), (2, True)):
        assert main(["reproduce", "tiny", "--plan", "--jobs", str(n)]) == 0
        assert ("one batch at a time (2 jobs share the cores)" in capsys.readouterr().err) == said


def test_list_names_the_artefacts(capsys):
    assert main(["reproduce", "--list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert {one["name"]: one["runs"] for one in listed} == {"tiny": 2, "leaf": 2}
    assert {one["scale"] for one in listed} == {"quick"}
    assert main(["reproduce", "--list"]) == 0
    assert "2 runs  tiny\n" in capsys.readouterr().out


def test_the_folder_of_an_artefact_is_a_source_of_report(tmp_path):
    main(["reproduce", "tiny", "-qq"])
    pages = []
    for source in ("runs/paper-quick/tiny", "runs/paper-quick/tiny/artefact.json", "runs/paper-quick"):  # one, or all
        assert main(["report", source, "-qq"]) == 0
        pages.append((tmp_path / "report.html").read_text())
    assert "quick scale" in pages[0]
    assert pages[0] == pages[1] == pages[2]


def test_adopted_runs_are_not_done_again(capsys):
    main(["reproduce", "tiny", "--out", "first", "-qq"])
    capsys.readouterr()
    assert main(["reproduce", "--records", "kept.jsonl", "--adopt", "first"]) == 0
    out, err = capsys.readouterr()
    assert out.count("adopted synthetic-objt") == 2
    assert "2 adopted into kept.jsonl" in err
    assert main(["reproduce", "tiny", "--records", "kept.jsonl", "--plan"]) == 0
    assert "0 runs; 2 recorded in kept.jsonl" in capsys.readouterr().err


def test_an_edited_record_stops_everything_and_names_the_run(capsys, tmp_path):
    main(["reproduce", "tiny", "-qq"])
    path = tmp_path / "runs/paper-quick/records.jsonl"
    first, second = record.read(path)
    path.write_text(record.lines([first, second | {"test_error": 0.1}]))
    before = path.read_bytes()
    capsys.readouterr()
    assert main(["reproduce", "tiny"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert f"Run {second['name']} again" in err
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["tinny"], "unknown artefact 'tinny': did you mean 'tiny'?"),
        (["--femnist", "nowhere"], "no LEAF directory"),
        (["--adopt", "nowhere"], "is no directory"),
        (["--jobs", "0"], "--jobs must be at least 1"),
        (["--plan", "--recorded"], "give one of them"),
        (["--records", "paper/tiny.toml"], "line 2"),
        (["--out", "paper/tiny.toml"], "cannot write into paper/tiny.toml: give another --out"),
        (["--records", "paper/tiny.toml/r.jsonl"], "cannot write into paper/tiny.toml: give another --records"),
        (["--recorded", "--records", "none.jsonl"], "none.jsonl does not exist: give --records"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, says, capsys):
    assert main(["reproduce", *arguments]) == 2
    err = capsys.readouterr().err
    assert says in err
    assert err.count("\n") == 1


def test_records_of_the_other_scale_are_refused_with_a_hint(capsys, tmp_path):
    (tmp_path / "paper" / "tiny.toml").write_text(TINY + "[quick.run]\nrounds = 3\n")
    main(["reproduce", "tiny", "--records", "kept.jsonl", "-qq"])
    capsys.readouterr()
    assert main(["reproduce", "tiny", "--scale", "full", "--records", "kept.jsonl", "--recorded"]) == 2
    says = "kept.jsonl holds 2 records, and none for tiny at the full scale: try the other --scale"
    assert says in capsys.readouterr().err


def test_what_needs_no_records_is_shown_without_any(tmp_path):
    (tmp_path / "paper" / "sizes.toml").write_text('title = "sizes"\nabout = "of data"\ncompute = "instances"\n')
    assert main(["reproduce", "sizes", "--recorded", "-qq"]) == 0
    assert (tmp_path / "runs/paper-quick/sizes/artefact.json").exists()
    assert main(["reproduce", "sizes", "--recorded", "--records", "none.jsonl", "-qq"]) == 2


def test_the_page_is_of_every_artefact_that_is_there(tmp_path, capsys):
    (tmp_path / "paper" / "sizes.toml").write_text('title = "sizes"\nabout = "of data"\ncompute = "instances"\n')
    main(["reproduce", "tiny", "-qq"])
    capsys.readouterr()
    assert main(["reproduce", "sizes", "-qq"]) == 0
    assert "ObjT" not in capsys.readouterr().out  # the numbers of what was asked for
    page = (tmp_path / "runs/paper-quick/report.html").read_text()
    assert 'id="tiny"' in page
    assert 'id="sizes"' in page
    (tmp_path / "runs/paper-quick/tiny/records.jsonl").write_text("")
    assert main(["reproduce", "sizes", "-qq"]) == 0
    assert "left out of the page" in capsys.readouterr().err
    assert 'id="tiny"' not in (tmp_path / "runs/paper-quick/report.html").read_text()


def test_help_says_what_starts_anew(capsys):
    with pytest.raises(SystemExit):
        main(["reproduce", "--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert "batch of convergence or trust, some minutes long, starts anew" in told
