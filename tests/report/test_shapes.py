"""A report draws what each column of a model adds, where that is true, and says why where it is not."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.cli import main
from tacit.report import output, shapes
from tacit.report.source import read
from tests.report.test_browser import CHROMIUM, probed

pytestmark = pytest.mark.filterwarnings("ignore::tacit.errors.TacitWarning")
EVIL = "</script><!--\u2028<script><b>\"'&x"
ADDITIVE = ["--features", "columns", "--set", "data.row_mode=clip"]


def trained(folder: Path, *options: str, extra: int = 0, level: str = "now", column: str = "age") -> Path:
    """A run of three rounds over a table of four columns and as many more as asked for."""
    rng = np.random.default_rng(0)
    names = ["site", column, "smoker", "outcome", *(f"more {n}" for n in range(extra))]
    folder.mkdir(exist_ok=True)
    with (folder / "t.csv").open("w", newline="", encoding="utf-8") as file:
        rows = ([f"s{i % 2}", *rng.integers(20, 90, 1), [level, "never"][i % 2], f"{EVIL}{i % 2}",
                 *rng.random(extra)] for i in range(40))  # fmt: skip
        csv.writer(file).writerows([names, *rows])
    tables: dict[str, dict[str, Any]] = {
        "site": {"kind": "agent"}, column: {"kind": "numeric", "lo": 20, "hi": 90},
        "smoker": {"kind": "categorical", "values": [level, "never"]},
        "outcome": {"kind": "label", "classes": [f"{EVIL}0", f"{EVIL}1"]},
        **{name: {"kind": "numeric", "lo": 0, "hi": 1} for name in names[4:]},
    }  # fmt: skip
    lines = [line for name, keys in tables.items() for line in (
        f"[columns.{json.dumps(name)}]", *(f"{key} = {json.dumps(value)}" for key, value in keys.items()))]  # fmt: skip
    (folder / "s.toml").write_text("\n".join(lines), encoding="utf-8")
    given = ["--data", str(folder / "t.csv"), "--schema", str(folder / "s.toml"), "--rounds", "3", "-qq"]
    assert main(["train", *given, "--out", str(folder / "run"), *options]) == 0
    return folder / "run"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # so that the column of levels, which tells the outcome, is drawn
    strong = [*ADDITIVE, "--epsilon", "1000", "--seed", "0"]
    return trained(tmp_path_factory.mktemp("shapes"), *strong, extra=shapes.SHOWN, level=EVIL, column=EVIL)


def told(path: Path, tmp_path: Path) -> str:
    return output.write([path], tmp_path / "page.html").read_text(encoding="utf-8")


def test_the_largest_shapes_are_drawn_on_one_scale_that_holds_them(run: Path, tmp_path: Path) -> None:
    found = read(run).learnt
    assert found is not None
    assert found.last is not None
    charts = shapes.charts(found)
    assert [chart.x_label for chart in charts] == [one.column for one in found.last.columns[: shapes.SHOWN]]
    assert len(charts) == shapes.SHOWN < len(found.last.columns)
    ends = charts[0].y_ends
    assert ends is not None
    assert {chart.y_ends for chart in charts} == {ends}
    for line in (line for chart in charts for line in (*chart.lines, *chart.averaged)):
        assert ends[0] < min(*line.low, *line.missing, 0) <= max(*line.high, *line.missing, 0) < ends[1]
        assert all(low <= y <= high for low, y, high in zip(line.low, line.y, line.high, strict=True))
    text = told(run, tmp_path)
    assert f"{shapes.SHOWN} of {shapes.SHOWN + 2} columns are drawn" in text
    assert "the noise for privacy alone" in text
    assert "What the model has learnt" in text


def test_json_holds_every_shape(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(run), "--out", str(tmp_path / "page.html"), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["shapes"]
    assert found["source"] == "run"
    assert found["reason"] is None
    assert {one["column"] for one in found["last"]["columns"]} == {EVIL, "smoker", *(f"more {n}" for n in range(24))}
    assert found["averaged"]["outputs"] == [f"{EVIL}1"]


def test_figures_draw_shapes_in_one_file_the_same_bytes_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    from tacit.report.figures import draw

    monkeypatch.setattr("tacit.report.curves.standard", lambda _runs: [])  # other tests draw those
    source = read(trained(tmp_path, *ADDITIVE, level="long " * 20))
    output.write_figures([source], tmp_path / "figures")
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    wanted = ("run-agents", "run-shapes", "run-shapes-averaged")
    assert names == {f"{name}.{kind}" for name in wanted for kind in ("png", "svg")}
    drawn = (tmp_path / "figures" / "run-shapes.svg").read_text()
    assert "<!-- missing -->" in drawn
    assert "long long long long lon\u2026" in drawn
    assert source.learnt is not None
    svg, _ = draw([replace(chart, averaged=()) for chart in shapes.charts(source.learnt)], tmp_path / "again", 3)
    assert svg.read_text() == drawn


@pytest.mark.parametrize(("options", "says"), [
    (["--features", "none", "--set", "data.row_mode=unit"], "divided by its own norm"),
    (["--set", "data.row_mode=unit"], "divided by its own norm"),
    (["--features", "fourier"], "mixes the columns"),
    (["--features", "tests.features.mine:squares"], "a function of the user&#x27;s own"),
])  # fmt: skip
def test_where_no_column_has_an_effect_of_its_own_the_page_says_why(
    tmp_path: Path, options: list[str], says: str
) -> None:
    run = trained(tmp_path, *options)
    found = read(run).learnt
    assert found is not None
    assert shapes.charts(found) == []
    assert found.plain()["last"] is None
    text = told(run, tmp_path)
    assert says in text
    assert "What the model has learnt" not in text


def shape(column: str, effects: list[list[float]], values: list[Any]) -> Any:
    from tacit.run.shapes import Shape

    return Shape(column, values, effects, [], [0.0] * len(effects), None, number=False)


def test_of_many_levels_and_many_classes_the_strongest_are_drawn() -> None:
    from tacit.run.shapes import Shapes

    levels = [f"level {n}" for n in range(15)]
    effects = [[(n - 7) * (k + 1) / 10 for n in range(15)] for k in range(8)]
    found = Shapes([f"class {k}" for k in range(8)], [0.0] * 8, [shape("place", effects, levels)], ["note"])
    learnt = shapes.Learnt("", found, found, classes=tuple(found.outputs))
    (chart,) = shapes.charts(learnt)
    assert [line.name for line in chart.lines] == ["class 3", "class 4", "class 5", "class 6", "class 7"]
    assert chart.levels == (*levels[:5], *levels[10:], "missing")
    assert "10 of 15 levels" in chart.title
    text = shapes.section(learnt, "run")
    assert "Of 8 classes, the 5 with" in text
    assert "cannot be drawn: note." in text
    assert "noise" not in text


DRAWN = """
const plotted = (key) => document.querySelector(`#run-shape-${key} .plot`);
const keys = [...document.querySelectorAll("figure[id^=run-shape]")].map((node) => node.id.split("-").at(-1));
const texts = (key) => [...plotted(key).querySelectorAll("text")].map((node) => node.firstChild.textContent);
const number = keys.find((key) => document.querySelector(`#run-shape-${key} figcaption`).textContent.includes("more"));
const levels = keys.find((key) => texts(key).includes("never"));
const read = (key, name) => {
  plotted(key).querySelector("svg").dispatchEvent(new KeyboardEvent("keydown", { key: name }));
  return [...plotted(key).querySelectorAll(".tip span")].map((node) => node.textContent);
};
const zeros = (key) => [plotted(key).querySelectorAll(".zero").length, plotted(key).querySelectorAll(".apart").length];
found.count = keys.length;
found.markup = document.querySelectorAll("figure b, figure i, figcaption > :not(small)").length;
found.zeros = [zeros(number), zeros(levels)];
found.levels = texts(levels);
found.titles = [...plotted(levels).querySelectorAll("title")].map((node) => node.textContent);
found.caption = document.querySelector(`#run-shape-${levels} small`).textContent;
found.level = read(levels, "ArrowRight");
for (let n = 0; n < 200; n += 1) { read(number, "ArrowRight"); }
found.missing = read(number, "ArrowRight");
document.querySelector('button[data-sets="y"]').click();
document.querySelector('button[data-sets="y"]').click();
found.logged = plotted(number).tagName + document.querySelector(`#run-shape-${number} small`).textContent;
document.querySelector('button[data-sets="iterate"]').click();
found.averaged = document.querySelector(`#run-shape-${levels} small`).textContent;
found.legends = document.querySelectorAll("figure[id^=run-shape] .legend").length;
found.ticks = [[1e6, 1e6 + 1], [-3.2, 6.1], [18, 95], [0, 1e-9]].map(([low, high]) => {
  const { ticks, share } = tightAxis(low, high);
  const held = ticks.every((tick) => share(tick) >= -1e-6 && share(tick) <= 1 + 1e-6);
  return held && ticks.length >= 2 && ticks.length <= 8;
});
found.width = [document.documentElement.scrollWidth, document.documentElement.clientWidth];
"""


@pytest.mark.skipif(not CHROMIUM, reason="needs chromium")
def test_shapes_are_drawn_as_text_and_read_by_keys_on_a_narrow_screen(run: Path, tmp_path: Path) -> None:
    found = probed(run, tmp_path, DRAWN)  # type: ignore[no-untyped-call]
    assert found["count"] == shapes.SHOWN
    assert found["markup"] == 0
    assert found["zeros"] == [[1, 1], [1, 0]]
    assert {"never", "missing", "effect on log-odds"} <= set(found["levels"])
    assert found["titles"] == [EVIL, "never", "missing"]
    assert found["caption"] == ""
    assert found["level"][0] == "smoker never"
    assert found["level"][1].startswith("effect on log-odds ")
    assert found["level"][2].startswith("odds times ")
    assert found["missing"][0].startswith("more ")
    assert found["missing"][0].endswith(" missing")
    assert found["logged"] == "DIV"
    assert found["averaged"] == "averaged iterate"
    assert found["legends"] == 0
    assert found["ticks"] == [True] * 4
    assert found["width"][0] <= found["width"][1] <= 360
