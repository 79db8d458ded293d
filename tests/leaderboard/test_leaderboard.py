"""A comparison is shown as a leaderboard wherever runs are shown: on the page, on the live page, from records alone."""

import json
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from tacit import record
from tacit.cli import main
from tacit.compare import comparison
from tacit.compare.plan import plan
from tacit.compare.plan import read as read_plan
from tacit.errors import RecordError
from tacit.leaderboard import standing, table
from tacit.report.leaderboard import boards
from tacit.report.output import write
from tacit.report.source import read
from tacit.ui import index
from tacit.ui.place import Place
from tacit.ui.views import Views

RECORDS = Path(__file__).parents[2] / "records"
FLAGS = ["--data", "synthetic", "--agents", "4", "--set", "data.records=240", "--set", "data.features=6"]
EVIL = "</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """The directory that `tacit compare` has just written."""
    out = tmp_path_factory.mktemp("runs") / "compare-synthetic"
    assert main(["compare", *FLAGS, "--methods", "objt,fedgd,fedavg", "--seeds", "2", "--out", str(out), "-q"]) == 0
    return out


@pytest.fixture
def copy(compared, tmp_path):
    return Path(shutil.copytree(compared, tmp_path / "copy"))


def changed(folder, change):
    """Change the records of a comparison, and seal them again, as a forger can."""
    path = folder / "records.jsonl"
    records = [record.sealed(one) for one in change(record.read(path))]
    path.write_text(record.lines(records), encoding="utf-8")


@pytest.mark.parametrize("board", ["mnist", "mnist-pixels", "femnist", "adult", "heart"])
def test_records_alone_give_the_rows_that_the_comparison_printed(board):
    out = RECORDS / f"leaderboard-{board}"
    wanted = table.rows(comparison.run(plan(read_plan(out.with_suffix(".toml"))), out))
    (standings,) = standing.read(record.read(out / "records.jsonl"), board)
    found = {(row["method"], row["budget_epsilon"]): row for row in table.rows(standings)}
    assert len(found) == len(wanted)
    for row in wanted:
        own = found[row["method"], row["budget_epsilon"]]
        assert table.cells(own) == table.cells(row)
        assert own["errors"] == row["errors"]


def test_a_report_of_a_comparison_is_its_leaderboard(compared, tmp_path, capsys):
    page = tmp_path / "page.html"
    assert main(["report", str(compared), "--out", str(page), "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["leaderboards"]
    text = page.read_text(encoding="utf-8")
    assert "Comparison of methods on synthetic" in text
    assert {row["method"] for row in told["rows"]} == {"fedgd", "objt", "fedavg"}
    for row in told["rows"]:
        assert f'<th scope="row">{row["method"]}</th>' in text
        assert f"{100 * row['error_mean']:.2f}%" in text
    assert "Test error of each method, total epsilon 1" in text
    assert "none of these models is for release" in text
    assert "http" not in text.replace("http://www.w3.org", "")  # it needs no other file


def test_a_report_of_a_comparison_draws_its_figures(compared, tmp_path):
    pytest.importorskip("matplotlib")
    write([compared], tmp_path / "page.html", tmp_path / "figures")
    assert [path.name for path in sorted((tmp_path / "figures").iterdir())] == [
        "compare-synthetic-0.png", "compare-synthetic-0.svg",
    ]  # fmt: skip


def test_a_comparison_and_a_run_stand_on_one_page(compared, tmp_path):
    assert main(["train", *FLAGS, "--rounds", "2", "--out", str(tmp_path / "run"), "-qq"]) == 0
    write([compared, tmp_path / "run"], tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Comparison of methods on synthetic" in text
    assert "A private model on synthetic" in text


def test_a_comparison_that_was_stopped_says_what_is_not_finished(copy):
    changed(copy, lambda all_: [one for one in all_ if (one["method"], one["role"]) != ("objt", "run")])
    (board,) = read(copy).boards
    by_method = {row["method"]: table.cells(row) for row in board.rows}
    assert by_method["objt"][1:] == (*"--------", "not finished: run the same tacit compare again")
    assert by_method["fedgd"][1].endswith("%")
    write([copy], copy / "page.html")


def test_a_record_that_is_there_twice_is_refused(copy):
    path = copy / "records.jsonl"
    path.write_text(path.read_text() + path.read_text().splitlines(keepends=True)[-1])
    with pytest.raises(RecordError, match="is there twice, and would count twice"):
        read(copy)


def test_runs_of_a_choice_that_did_not_win_its_trials_do_not_count(copy, compared):
    """As after a comparison with another limit of rounds in the same directory."""

    def with_loser(all_):
        run = next(one for one in all_ if (one["method"], one["role"]) == ("fedgd", "run"))
        loser = next(one for one in all_ if one["method"] == "fedgd" and one["choice"] != run["choice"])
        lucky = run | {"choice": loser["choice"], "error": 0.0, "spec": run["spec"] + "\n[other]\nkey = 1\n"}
        return [lucky, *(one | {"error": 0.99} if one is loser else one for one in all_)]

    changed(copy, with_loser)
    found, wanted = ({row["method"]: row["errors"] for row in read(out).boards[0].rows} for out in (copy, compared))
    assert found == wanted


@pytest.mark.parametrize("damage", ["{", "", "[]\n", '{"role": "trial"}\n', "\0\xff"])
def test_a_damaged_comparison_is_refused_in_one_line(damage, copy, capsys):
    path = copy / "records.jsonl"
    text = path.read_text(encoding="utf-8")
    path.write_text(damage + text[10:] if damage else "", encoding="utf-8")
    assert main(["report", str(copy), "--out", str(copy / "page.html")]) == 2
    err = capsys.readouterr().err
    assert err.startswith("tacit: ")
    assert err.count("\n") == 1
    assert not (copy / "page.html").exists()


HOSTILE = (None, True, -1, 10**400, 1e308, "", EVIL, [], [EVIL], {}, {"a": EVIL}, [1, 2, 3], [1, 10**400], "9" * 5000)


@pytest.mark.parametrize("key", [*standing._KINDS, "measure", "seed", "name", "role"])
def test_a_forged_record_is_refused_or_shown_and_never_runs(key, copy):
    original = record.read(copy / "records.jsonl")
    for value in HOSTILE:
        (copy / "page.html").write_text("")
        with suppress(RecordError):
            changed(copy, lambda all_, value=value: [*all_[:-1], all_[-1] | {key: value}])
            write([copy], copy / "page.html")
        assert EVIL not in (copy / "page.html").read_text(encoding="utf-8")
        (copy / "records.jsonl").write_text(record.lines(original), encoding="utf-8")


def test_names_are_text_on_the_page_and_not_markup(copy):
    changed(copy, lambda all_: [one | {"guarantee": EVIL, "features": EVIL} for one in all_])
    write([copy], copy / "page.html")
    text = (copy / "page.html").read_text(encoding="utf-8")
    assert EVIL not in text
    assert "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;" in text


def test_records_of_a_comparison_and_of_a_sweep_do_not_mix(copy):
    one = record.read(copy / "records.jsonl")[0]
    other = {key: value for key, value in one.items() if key != "role"}
    with pytest.raises(RecordError, match="none of a comparison"):
        boards([one, record.sealed(other)], "here")


def test_settings_of_the_data_have_a_board_each(copy, compared):
    out = ["--out", str(copy), "-q"]
    assert main(["compare", *FLAGS, "--set", "data.seed=1", "--methods", "fedgd", "--seeds", "1", *out]) == 0
    first, second = read(copy).boards
    assert first.rows == read(compared).boards[0].rows
    assert [row["method"] for row in second.rows] == ["fedgd"]


@pytest.fixture
def views(copy, monkeypatch):
    monkeypatch.setattr(index, "FRESH", 0.0)
    found = Views(Place(copy.parent))
    yield found
    found.place.close()


def test_the_live_page_lists_a_comparison_and_shows_its_leaderboard(views):
    (row,) = (row for row in views.listing("", "", "name", 0)["rows"] if row["name"] == "copy")
    assert (row["kind"], row["state"]) == ("comparison", "finished")
    told = views.more(row["id"])
    assert told["damaged"] == ""
    (board,) = told["boards"]
    (shown,) = board["tables"]
    assert {line[0] for line in shown["lines"]} == {"objt", "fedgd", "fedavg"}
    assert [chart["title"] for chart in told["charts"]] == ["Test error of each method, total epsilon 1"]


def test_the_live_page_says_what_is_wrong_with_a_comparison(views, copy):
    lines = (copy / "records.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (copy / "records.jsonl").write_text("".join([lines[0].replace("0.", "1.", 1), *lines[1:]]), encoding="utf-8")
    (row,) = (row for row in views.listing("", "", "name", 0)["rows"] if row["name"] == "copy")
    told = views.more(row["id"])
    assert "was changed after it was written" in told["damaged"]
    assert str(copy.parent) not in told["damaged"]


@pytest.mark.parametrize("columns", [60, 80])
def test_a_terminal_names_every_method_in_full_and_each_guarantee_once(columns, monkeypatch, capsys, tmp_path):
    out = RECORDS / "leaderboard-heart"
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.chdir(tmp_path)
    assert main(["compare", "--config", f"{out}.toml", "--out", str(shutil.copytree(out, Path("board"))), "-q"]) == 0
    shown = capsys.readouterr().out
    first, _, _ = shown.partition("\n\n")
    lines = first.splitlines()
    rows = {row["method"]: row for row in read(out).boards[0].rows if row["budget_epsilon"] == 1}
    assert max(map(len, lines)) <= columns
    assert lines[1].split() == ["method", "test", "error", "20-80", "%", "AUC", "trusts"]
    for line, name in zip(lines[2:], rows, strict=False):
        assert line.split()[:2] == [name, f"{100 * rows[name]['error_mean']:.2f}%"]
    words = " ".join(first.split())
    assert words.count(": (1, 1e-06)-DP in all (gdp), one record present or absent") == 1
