"""What a page says is what the records say."""

import base64
import csv
import io
import json
import re

import numpy as np
import pytest

from tacit import record
from tacit.cli import main
from tacit.errors import RecordError
from tacit.report import curves, output, printed
from tacit.report.chart import COLOURS
from tacit.report.markup import figure as figure_of
from tacit.report.runs import grouped
from tacit.report.source import read
from tests.report import made


@pytest.fixture
def sweep(tmp_path):
    return made.write(tmp_path / "sweep")


@pytest.fixture
def figure(tmp_path):
    return made.write_artefact(tmp_path / "fig9")


def page_of(path, tmp_path):
    return output.write([path], tmp_path / "page.html").read_text()


def test_runs_that_differ_in_the_seed_alone_are_one_group(sweep):
    groups = grouped(read(sweep).runs)
    assert [(group.label, len(group.runs)) for group in groups] == [("epsilon 1", 5), ("epsilon 3", 2)]


def test_a_band_is_the_percentiles_of_the_seeds_and_a_line_their_mean(sweep):
    error = next(chart for chart in curves.standard(read(sweep).runs) if chart.key == "test-error")
    for line, errors in zip(error.lines, made.ERRORS.values(), strict=True):
        assert line.x == made.ROUNDS
        for values, y, low, high in zip((np.full(len(errors), 0.9), 2 * np.array(errors), errors),
                                        line.y, line.low, line.high, strict=True):  # fmt: skip
            np.testing.assert_allclose(y, 100 * np.mean(values))
            np.testing.assert_allclose([low, high], 100 * np.percentile(values, [20, 80]))
    averaged = [line.y[-1] for line in error.averaged]
    np.testing.assert_allclose(averaged, [110 * np.mean(errors) for errors in made.ERRORS.values()])


def test_the_table_holds_the_mean_and_the_percentiles(sweep, tmp_path, capsys):
    text = page_of(sweep, tmp_path)
    low, high = 100 * np.percentile(made.ERRORS[1.0], [20, 80])
    assert '<span class="last">16.00</span>' in text
    assert f'<span class="last">{low:.2f} to {high:.2f}</span>' in text
    assert '<span class="averaged">17.60</span>' in text
    assert main(["report", str(sweep), "--out", str(tmp_path / "page.html"), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["comparison"]
    assert [row["test_error"]["mean"] for row in rows] == pytest.approx([0.16, 0.055])
    assert [row["seeds"] for row in rows] == [5, 2]


def test_the_csv_holds_the_curves(sweep, tmp_path):
    content = re.search(r'href="data:text/csv;charset=utf-8;base64,([^"]*)"', page_of(sweep, tmp_path))
    rows = list(csv.DictReader(io.StringIO(base64.b64decode(content[1]).decode())))
    assert [(row["runs"], row["t"]) for row in rows] == [
        (runs, str(t)) for runs in ("epsilon 1", "epsilon 3") for t in made.ROUNDS
    ]
    assert float(rows[2]["test_error_mean"]) == pytest.approx(0.16)
    assert float(rows[2]["test_error_p80"]) == pytest.approx(np.percentile(made.ERRORS[1.0], 80))


def test_the_budget_grows_to_the_total_that_the_run_states(tmp_path):
    arguments = ["train", "--data", "synthetic", "--agents", "3", "--set", "data.records=60", "--rounds", "7", "-qq"]
    for name, more in (("gaussian", []), ("laplace", ["--set", "privacy.mechanism=laplace"])):
        assert main([*arguments, *more, "--out", str(tmp_path / name)]) == 0
        (run,) = read(tmp_path / name).runs
        spent = curves.spent(run)
        assert spent.x[-1] == 7
        assert spent.y[-1] == pytest.approx(run.summary["epsilon"], rel=1e-9)
        assert list(spent.y) == sorted(spent.y)
        assert "Budget spent" in (tmp_path / name / "report.html").read_text()


def test_what_is_not_private_says_so_and_has_no_budget(tmp_path):
    bare = made.write(tmp_path / "bare", [made.not_private(0.04, made.spec(float("inf")), "bare")])
    text = page_of(bare, tmp_path)
    assert '<strong class="badge bare">not private</strong>' in text
    assert "Budget spent" not in text
    assert "badge private" not in text


def test_the_paper_beside_ours(figure):
    source = read(figure)
    near, far, shown, missing = printed.compare(source.artefact, source.runs)
    assert (near.verdict, near.ours.mean, near.difference) == ("within 1.0", pytest.approx(16), pytest.approx(1))
    assert (far.verdict, far.missed) == ("misses by 1.50", True)
    assert (shown.verdict, shown.ours.count) == ("shown, not claimed", 1)
    assert (missing.verdict, missing.ours) == ("not run", None)


@pytest.mark.parametrize(("error", "tolerance", "verdict"), [
    (0.138, 0.010, "within 1.0"),
    (0.118, 0.010, "within 1.0"),
    (0.1405, 0.010, "misses by 0.25"),
    (0.1405, 0.025, "within 2.5"),
    (0.100, 0.010, "misses by 1.80"),
    (0.5, None, "shown, not claimed"),
])  # fmt: skip
def test_a_verdict_says_whether_the_difference_is_within_the_tolerance(tmp_path, error, tolerance, verdict):
    number = {"label": "ObjT", "y": "test_error", "paper": 0.128, "tolerance": tolerance}
    shown = made.ARTEFACT | {"printed": [number]}
    source = read(made.write(tmp_path / "fig", [made.one(error, made.spec(), "one")], shown))
    (found,) = printed.compare(source.artefact, source.runs)
    assert found.verdict == verdict


def test_a_number_is_the_mean_over_seeds_without_those_that_diverged(tmp_path):
    lost = record.sealed({"name": "lost", "diverged": "diverged in round 3", "spec": made.spec(1.0, 9)})
    source = read(made.write(tmp_path / "lost", [*made.records(), lost], made.ARTEFACT))
    near, *_ = printed.compare(source.artefact, source.runs)
    assert (near.ours.mean, near.ours.count) == (pytest.approx(16), 5)
    assert near.note == "1 of 6 runs diverged"


def test_panels_draw_rounds_keys_series_and_a_level_line(figure, tmp_path):
    source = read(figure)
    by_round, by_epsilon = curves.panels(source.artefact, source.runs)
    error, bound = by_round.lines
    assert error.y[-1] == pytest.approx(16)
    assert (bound.name, bound.y, bound.aside) == ("bound", (50.0, 20.0), True)
    private, level = by_epsilon.lines
    assert (private.x, private.y) == ((1.0, 3.0), pytest.approx((16, 5.5)))
    assert (level.name, level.x, level.y, level.aside) == ("iadmm-trust", (1.0, 3.0), (4.0, 4.0), True)
    text = page_of(figure, tmp_path)
    assert "Figure 9: &lt;error&gt;" in text
    for word in ("An example.", "A note.", "<th scope=\"row\">U1</th>", "misses by 1.50"):
        assert word in text


def test_a_name_is_text_wherever_the_page_shows_it(tmp_path):
    evil = '"><script>alert(1)</script><!--'
    panels = [panel | {"title": evil} for panel in made.ARTEFACT["panels"]]
    shown = made.ARTEFACT | {"name": evil, "title": evil, "scale": evil, "notes": [evil], "panels": panels}
    text = page_of(made.write(tmp_path / "fig9", None, shown), tmp_path)
    assert "<script>alert" not in text
    assert "<!--" not in text
    assert text.count("</script>") == 1 + text.count('<script type="application/json">')
    assert re.findall(r'<figure id="([^"]*)"', text)[:2] == ["fig9-panel-1", "fig9-panel-2"]
    assert 'id="a&lt;b-test-error"' in figure_of(curves.standard(read(tmp_path / "fig9").runs)[0], "a<b-test-error")


def test_a_panel_that_would_mix_settings_is_refused(tmp_path):
    wide = made.one(0.5, made.spec(1.0, 9, radius=2.0), "wide")
    path = made.write(tmp_path / "mixed", [*made.records(), wide], made.ARTEFACT)
    with pytest.raises(RecordError, match=r"differ in schedule.radius_a: name it in where or lines_by"):
        page_of(path, tmp_path)


def test_a_run_that_diverged_is_counted_and_not_averaged(tmp_path):
    lost = record.sealed({"name": "lost", "diverged": "diverged in round 3", "spec": made.spec(1.0, 9)})
    path = made.write(tmp_path / "lost", [*made.records(), lost])
    (first, _) = grouped(read(path).runs)
    assert (len(first.runs), first.final("test_error").count) == (6, 5)
    assert "5 (1 diverged)" in page_of(path, tmp_path)
    alone = made.write(tmp_path / "alone", [lost])
    assert "diverged in round 3" in page_of(alone, tmp_path)


def test_many_groups_are_split_into_charts_that_can_be_read(tmp_path):
    many = [made.one(0.1, made.spec(epsilon, 0, name), f"{name}{epsilon}")
            for name in ("objt", "objp", "outp") for epsilon in (1.0, 2.0, 3.0, 4.0)]  # fmt: skip
    errors = [chart for chart in curves.standard(read(made.write(tmp_path / "many", many)).runs)
              if chart.key.startswith("test-error")]  # fmt: skip
    assert [chart.title for chart in errors] == [f"Test error, {name}" for name in ("objt", "objp", "outp")]
    assert sum(len(chart.lines) for chart in errors) == 12


def test_a_panel_of_errors_names_the_unit_and_the_keys_that_differ(tmp_path):
    panel = made.ARTEFACT["panels"][1] | {"y_label": "error", "lines_by": ["algorithm.name", "schedule.radius_a"]}
    other = [made.one(0.1, made.spec(2.0, 0, radius=2.0), "other")]
    found = made.ARTEFACT | {"panels": [panel], "series": []}
    source = read(made.write(tmp_path / "two", [*made.records(), *other], found))
    (chart,) = curves.panels(source.artefact, source.runs)
    assert chart.y_label == "error (%)"
    assert [line.name for line in chart.lines] == ["radius a 1", "radius a 2"]


def test_the_page_holds_the_description_of_each_chart(sweep, tmp_path):
    found = re.findall(r'<script type="application/json">(.*?)</script>', page_of(sweep, tmp_path))
    charts = {chart["key"]: chart for chart in map(json.loads, found)}
    assert list(charts) == [chart.key for chart in curves.standard(read(sweep).runs)]
    error = charts["test-error"]
    assert (error["title"], error["x_label"], error["y_label"], error["log_y"]) == (
        "Test error", "round", "test error (%)", False)  # fmt: skip
    first, second = error["lines"]
    assert (first["name"], first["x"], first["y"]) == ("epsilon 1", [1, 5, 10], pytest.approx([90, 32, 16]))
    assert (first["low"][-1], first["high"][-1]) == pytest.approx((11.6, 18.4))
    assert (first["colour"], first["dashes"], second["dashes"], first["marked"]) == (COLOURS[0], [], [7, 3], True)
    assert charts["noise-gradient-units"]["log_y"] is True


def test_a_page_without_javascript_says_what_is_missing_and_keeps_its_tables(sweep, tmp_path):
    text = page_of(sweep, tmp_path)
    assert "<noscript><p>Charts need JavaScript" in text
    assert '<th scope="row">epsilon 1</th>' in text


def test_lines_differ_in_colour_and_dashes():
    from tacit.report.chart import Line

    looks = {(line.colour, line.dashes) for line in (Line("", (), (), style=n) for n in range(2 * len(COLOURS)))}
    assert len(looks) == 2 * len(COLOURS)


def test_the_page_asks_for_nothing_outside(figure, sweep, tmp_path):
    text = output.write([figure, sweep, sweep], tmp_path / "page.html").read_text()
    assert not re.search(r"(src|href)=\"(?!#|data:)", text)
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")  # the name of a language, not an address
    assert "url(" not in text
    ids = re.findall(r' id="([^"]*)"', text)
    assert len(ids) == len(set(ids))
