"""Charts and pictures for print, by matplotlib: equal charts give equal bytes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit import toml
from tacit.arguments import path_text
from tacit.errors import RunDirectoryError, SpecError, missing_extra
from tacit.report.chart import COLOURS, Chart, DotChart, Line, shortened
from tacit.report.curves import standard
from tacit.report.runs import Recorded

try:
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator
except ImportError as error:
    raise missing_extra("figures need matplotlib", "figures") from error

if TYPE_CHECKING:
    from tacit.run.result import Result

INK = "#222222"
COLUMNS = 2  # charts of one run beside one another
PANEL = (4.6, 3.5)  # inches of a chart
WIDTH, AROUND, ROW = 6.7, 1.25, 0.25  # inches of a dot chart: its width, its height without rows, a row
CELL = (1.25, 1.6)  # inches of a record with its caption
BESIDE = 1.14  # where a point without a place on the x axis goes, in widths of the frame
LONGEST = 24  # letters of the name of a level
ROOM = 0.06  # share of its range that a logarithmic axis adds, so that no line lies on the frame
LEAST = 0.6  # decades of a logarithmic axis: noise around a constant should look like a constant
FINEST = 0.04  # range of a linear axis, as a share of the largest value, for the same reason
MARKS = ((3.0, (1,)), (1.0, (1, 2, 5)), (0.0, (1, 1.5, 2, 3, 5, 7)))  # numbers in a decade, by decades of an axis
STYLE = {
    "svg.hashsalt": "tacit",  # ids are random without it
    "text.parse_math": False,  # a name with a dollar sign is a name
    "font.size": 9, "axes.titlesize": 10, "legend.fontsize": 8, "axes.edgecolor": INK, "text.color": INK,
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.color": "#dddddd",
    "axes.axisbelow": True, "legend.frameon": False, "figure.constrained_layout.w_pad": 0.1,
    "figure.constrained_layout.h_pad": 0.1,
}  # fmt: skip
UNDATED: dict[str, dict[str, Any]] = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}


def draw(charts: Sequence[Chart], stem: Path, columns: int = 1) -> list[Path]:
    """Write the charts as one figure, `columns` wide, to stem.svg and stem.png; and once more for averaged iterates."""
    shown = [chart for chart in charts if not chart.empty]
    if not shown:
        return []
    written = []
    for averaged in (False, True) if any(chart.averaged for chart in shown) else (False,):
        with _style():
            figure = figure_of(shown, columns, averaged)
            for kind in UNDATED:
                written.append(stem.with_name(f"{stem.name}{'-averaged' * averaged}.{kind}"))
                _save(figure, written[-1], kind)
    return written


def figure_of(charts: Sequence[Chart], columns: int, averaged: bool = False) -> Figure:
    """Return the charts as one figure, `columns` wide; charts without a line are left out."""
    shown = [chart for chart in charts if not chart.empty]
    columns = max(1, min(columns, len(shown)))
    rows = max(1, math.ceil(len(shown) / columns))
    with _figure(PANEL[0] * columns, PANEL[1] * rows) as figure:
        for n, chart in enumerate(shown, 1):
            lines, suffix = (chart.averaged, ", averaged iterate") if averaged and chart.averaged else (chart.lines, "")
            _panel(figure.add_subplot(rows, columns, n), chart, lines, suffix)
    return figure


def draw_dots(chart: DotChart, path: Path) -> None:
    """Write a dot chart as SVG: each row's value as a dot and its range as a bar."""
    with _figure(WIDTH, AROUND + ROW * len(chart.rows)) as figure:
        place = figure.add_subplot()
        for hollow, means in ((False, chart.full_means), (True, chart.hollow_means)):
            rows = {n: row for n, row in enumerate(chart.rows) if row.hollow is hollow}
            if rows:
                colour, dashes = COLOURS[int(hollow)], ":" if hollow else "-"
                lows, highs = [row.low for row in rows.values()], [row.high for row in rows.values()]
                place.hlines(list(rows), lows, highs, color=colour, linewidth=2.5, linestyle=dashes)
                place.plot([row.value for row in rows.values()], list(rows), "o", color=colour, label=means,
                           markeredgewidth=1.5, markerfacecolor="white" if hollow else colour)  # fmt: skip
        place.set_yticks(range(len(chart.rows)), [row.label for row in chart.rows])
        place.set(xlabel=chart.x_label, ylim=(len(chart.rows) - 0.5, -0.5))
        place.tick_params(axis="y", length=0)
        place.grid(visible=False, axis="y")
        # on a linear axis, a few rows far off would press the others together
        _scale(place, "x", log=min(row.low for row in chart.rows) > 0)
        figure.legend(loc="outside upper center", ncols=2, title=chart.title, title_fontsize=10)
        _save(figure, path, "svg")


def draw_records(rows: Sequence[Sequence[tuple[NDArray[np.float64], str]]], path: Path) -> None:
    """Write records as square pictures over captions, in one PNG: low is white, high is black."""
    width, height = len(rows[0]), len(rows)
    with _figure(CELL[0] * width, CELL[1] * height) as figure:
        for place, (values, caption) in zip(figure.subplots(height, width, squeeze=False).flat,
                                            (cell for row in rows for cell in row), strict=True):  # fmt: skip
            side = math.ceil(math.sqrt(values.size))
            padded = np.full(side * side, values.min())
            padded[: values.size] = values
            place.imshow(padded.reshape(side, side), cmap="gray_r", interpolation="nearest")
            place.set(xlabel=caption, xticks=[], yticks=[])
            place.grid(visible=False)
            place.spines[:].set_visible(False)
        _save(figure, path, "png")


@contextmanager
def _style() -> Iterator[None]:
    """Draw and write in the style of tacit: a reader's own style would change the bytes."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        yield


@contextmanager
def _figure(width: float, height: float) -> Iterator[Figure]:
    """Open an empty figure of so many inches."""
    with _style():
        yield Figure(figsize=(width, height), layout="constrained")


def _save(figure: Figure, path: Path, kind: str) -> None:
    figure.savefig(path, format=kind, dpi=160, metadata=UNDATED[kind])


def _panel(place: Any, chart: Chart, lines: Sequence[Line], suffix: str) -> None:
    if chart.levels:
        _levels(place, chart, lines, suffix)
        return
    log_y = chart.log_y and bool(chart.visible(lines, True))
    for line in chart.visible(lines, log_y):
        look: dict[str, Any] = {"color": line.colour or INK, "linewidth": 1.6, "clip_on": False}
        if line.dashes:
            look["linestyle"] = (0, tuple(n / 1.6 for n in line.dashes))  # matplotlib counts in widths of the line
        if line.marked:
            look["marker"], look["markersize"] = "o", 3.5
        place.plot(line.x, line.y, label=line.name, **look)
        if line.low:
            place.fill_between(line.x, line.low, line.high, color=line.colour or INK, alpha=0.2, linewidth=0)
    place.set(title=chart.title + suffix, xlabel=chart.x_label, ylabel=chart.y_label)
    _scale(place, "x", chart.log_x)
    if chart.y_ends is None:
        _scale(place, "y", log_y)
        place.legend()
        return
    if not chart.log_x:
        place.set_xlim(*place.xaxis.get_data_interval())
    place.set_ylim(chart.y_ends)
    place.axhline(0, color=INK, linewidth=0.8)
    _beside(place, lines)
    if len(lines) > 1:
        place.legend()


def _beside(place: Any, lines: Sequence[Line]) -> None:
    """Mark to the right of the frame what has no place on the x axis."""
    across = place.get_yaxis_transform()  # x as a share of the frame, y as data
    shown = [line for line in lines if line.missing]
    for n, line in enumerate(shown):
        at, colour = BESIDE + 0.03 * (n - (len(shown) - 1) / 2), line.colour or INK
        y, *ends = line.missing
        look: dict[str, Any] = {"color": colour, "transform": across, "clip_on": False}
        place.plot([at] * len(ends), ends, linewidth=5, alpha=0.2, solid_capstyle="butt", **look)
        place.plot([at], [y], "o", markerfacecolor="white", **look)
    if shown:
        place.text(BESIDE, -0.02, "missing", transform=place.transAxes, ha="center", va="top")


def _levels(place: Any, chart: Chart, lines: Sequence[Line], suffix: str) -> None:
    """Draw the marks of levels, which stand below one another."""
    for n, line in enumerate(lines):
        rows = [x + 0.6 * ((n + 0.5) / len(lines) - 0.5) for x in line.x]
        look: dict[str, Any] = {"color": line.colour or INK}
        if line.low:
            place.hlines(rows, line.low, line.high, linewidth=5, alpha=0.2, **look)
        place.hlines(rows, 0, line.y, linewidth=1.6, **look)
        place.plot(line.y, rows, "o", markersize=4, label=line.name, **look)
    place.axvline(0, color=INK, linewidth=0.8)
    place.set_yticks(range(len(chart.levels)), [shortened(name, LONGEST) for name in chart.levels])
    place.set(title=chart.title + suffix, xlabel=chart.y_label, xlim=chart.y_ends, ylim=(len(chart.levels) - 0.5, -0.5))
    place.tick_params(axis="y", length=0)
    place.grid(visible=False, axis="y")
    if len(lines) > 1:
        place.legend()


def _scale(place: Any, axis: str, log: bool) -> None:
    """Scale an axis, wide enough that noise around a constant looks like a constant, and number it plainly."""
    ruler = {"x": place.xaxis, "y": place.yaxis}[axis]
    low, high = ruler.get_data_interval()
    if log:
        decades = math.log10(high / low)
        room = 10 ** (max(ROOM * decades, LEAST - decades) / 2)
        ends = low / room, high * room
        place.set(**{f"{axis}scale": "log"})
        ruler.set_major_locator(LogLocator(subs=next(marks for least, marks in MARKS if decades >= least)))
        ruler.set_minor_locator(NullLocator())
    else:
        if low == high == 0:
            high = 1.0  # as on the page (axes.js): zero is no scale
        room = max(0.0, (FINEST * max(abs(low), abs(high)) - (high - low)) / 2)
        ruler.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        ticks = ruler.get_major_locator().tick_values(low - room, high + room)
        ends = ticks[0], ticks[-1]
    place.set(**{f"{axis}lim": ends})
    ruler.set_major_formatter("{x:g}")

def plot(result: Result, path: Path | str | None = None) -> Any:
    """Return the charts that a report has of a run as a figure: measures, objective, budget, noise, consensus."""
    summary = result.summary
    spec = toml.text({"algorithm.name": summary["algorithm"], "run.rounds": summary["rounds"]})
    curve = {name: [row.get(name) for row in result.rounds] for name in (result.rounds[0] if result.rounds else ())}
    figure = figure_of(standard([Recorded(str(summary["dataset"]), spec, summary, curve)]), COLUMNS)
    if path is not None:
        _write(figure, Path(path_text("path", path)))
    return figure


def _write(figure: Any, path: Path) -> None:
    kinds = figure.canvas.get_supported_filetypes()
    if path.suffix and path.suffix[1:].lower() not in kinds:  # a name without a dot becomes one in .png
        raise SpecError(f"{path}: no figure can be written as {path.suffix}: choose from {', '.join(sorted(kinds))}.")
    try:
        figure.savefig(path)
    except OSError as error:
        raise RunDirectoryError(
            f"{path} cannot be written ({error.strerror or error}): name a file in a folder that is there and is yours."
        ) from None
