"""Charts as PNG and SVG files, by matplotlib: equal charts give equal bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tacit.errors import MissingDependency
from tacit.report.axis import number
from tacit.report.chart import Chart, Line, axes

try:
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullLocator
except ImportError as error:
    raise MissingDependency("--figures needs matplotlib: pip install 'tacit[figures]'") from error

INK = "#222222"
PANEL, MARGINS = (4.6, 3.5), (0.75, 0.25, 0.35, 0.5)  # inches; left, right, top, bottom
STYLE = {
    "svg.hashsalt": "tacit",  # ids are random without it
    "font.size": 9, "axes.titlesize": 10, "legend.fontsize": 8, "axes.edgecolor": INK, "text.color": INK,
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.color": "#dddddd",
}  # fmt: skip
UNDATED: dict[str, dict[str, Any]] = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}


def draw(charts: Sequence[Chart], stem: Path, columns: int = 1) -> list[Path]:
    """Write the charts as one figure, `columns` wide, to stem.svg and stem.png; and once more for averaged iterates."""
    shown = [chart for chart in charts if not chart.empty]
    if not shown:
        return []
    written = _draw([(chart, chart.lines) for chart in shown], stem, columns, "")
    if any(chart.averaged for chart in shown):
        lines = [(chart, chart.averaged or chart.lines) for chart in shown]
        written += _draw(lines, stem.with_name(f"{stem.name}-averaged"), columns, ", averaged iterate")
    return written


def _draw(shown: Sequence[tuple[Chart, Sequence[Line]]], stem: Path, columns: int, suffix: str) -> list[Path]:
    columns = min(columns, len(shown))
    width, height = PANEL[0] * columns, PANEL[1] * math.ceil(len(shown) / columns)
    left, right, top, bottom = MARGINS
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # a reader's own style would change the bytes
        matplotlib.rcParams.update(STYLE)
        figure = Figure(figsize=(width, height))
        FigureCanvasAgg(figure)
        for n, (chart, lines) in enumerate(shown):
            x, y = PANEL[0] * (n % columns) + left, height - PANEL[1] * (n // columns + 1) + bottom
            size = (PANEL[0] - left - right) / width, (PANEL[1] - top - bottom) / height
            _panel(figure.add_axes((x / width, y / height, *size)), chart, lines, suffix if chart.averaged else "")
        paths = []
        for kind, undated in UNDATED.items():
            path = stem.with_name(f"{stem.name}.{kind}")
            figure.savefig(path, dpi=160, metadata=undated)
            paths.append(path)
    return paths


def _panel(place: Any, chart: Chart, lines: Sequence[Line], suffix: str) -> None:
    log_y = chart.log_y and bool(chart.visible(lines, True))
    shown = chart.visible(lines, log_y)
    for line in shown:
        look: dict[str, Any] = {"color": line.colour or INK, "linewidth": 1.6}
        if line.dashes:
            look["linestyle"] = (0, tuple(n / 1.6 for n in line.dashes))  # matplotlib counts in widths of the line
        if line.marked:
            look["marker"], look["markersize"] = "o", 3.5
        place.plot(line.x, line.y, label=line.name, **look)
        if line.low:
            place.fill_between(line.x, line.low, line.high, color=line.colour or INK, alpha=0.2, linewidth=0)
    place.set(title=chart.title + suffix, xlabel=chart.x_label, ylabel=chart.y_label)
    place.set(xscale="log" if chart.log_x else "linear", yscale="log" if log_y else "linear")
    across, up = axes(shown, chart.log_x, log_y)
    for own, ruler, ends in ((across, place.xaxis, place.set_xlim), (up, place.yaxis, place.set_ylim)):
        ends(*own.ends)
        ruler.set_ticks(own.ticks, [number(tick) for tick in own.ticks])
        ruler.set_minor_locator(NullLocator())
    place.legend(frameon=False)
