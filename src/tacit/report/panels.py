"""The panels of an artefact as charts: a quantity against rounds, or at the end of a run against a key of the spec."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from tacit.errors import RecordError
from tacit.report.artefact_file import ArtefactFile, Panel, alike, chosen
from tacit.report.chart import Chart, Line, banded
from tacit.report.quantities import AVERAGED, factor, with_unit
from tacit.report.runs import Group, Recorded, gathered, label


def charts(artefact: ArtefactFile, runs: Sequence[Recorded]) -> list[Chart]:
    """Return the charts of all panels, with the series that are no runs; a line looks the same in all of them."""
    found = []
    styles: dict[str, int] = {}
    for n, panel in enumerate(artefact.panels):
        chart = _panel(panel, runs, f"panel-{n + 1}", styles)
        unit = factor(panel.y)
        extra = tuple(
            Line(one.name, one.x, tuple(unit * y for y in one.y), style=_style(one.name, styles), aside=True)
            for one in artefact.series if one.panel == n
        )  # fmt: skip
        averaged = (*chart.averaged, *extra) if chart.averaged else ()
        found.append(replace(chart, lines=(*chart.lines, *extra), averaged=averaged))
    return found


def _style(name: str, styles: dict[str, int]) -> int:
    """The number of a name: the next free one for a name that is new."""
    return styles.setdefault(name, len(styles))


def _panel(panel: Panel, runs: Sequence[Recorded], key: str, styles: dict[str, int]) -> Chart:
    """One panel, a line for each setting of the keys in `lines_by`."""
    shown = chosen(runs, panel.where)
    # a key in which no two lines differ says nothing, unless it is all there is to say
    keys = [key for key in panel.lines_by if len({repr(run.values.get(key)) for run in shown}) > 1] or panel.lines_by
    by_line = gathered(shown, lambda run: label(run.values, keys) or panel.y.replace("_", " "))
    draw = _over_rounds if panel.x == "t" else _over_key(panel, shown)

    def lines(y: str) -> tuple[Line, ...]:
        one = replace(panel, y=y)
        return tuple(line for name, own in by_line.items() for line in draw(one, name, own, _style(name, styles)))

    averaged = lines(AVERAGED[panel.y]) if panel.y in AVERAGED else ()
    y_label = with_unit(panel.y_label, panel.y)
    return Chart(key, panel.title or y_label, panel.x_label, y_label, lines(panel.y), averaged,
                 panel.log_x, panel.log_y)  # fmt: skip


def _over_rounds(panel: Panel, name: str, runs: Sequence[Recorded], n: int) -> list[Line]:
    """A curve over rounds, averaged over seeds."""
    group = Group(name, tuple(alike(runs, f"panel {panel.title!r}, line {name!r}")))
    return [banded(name, *group.curve(panel.y), n, factor(panel.y))]


def _over_key(panel: Panel, shown: Sequence[Recorded]) -> Callable[[Panel, str, Sequence[Recorded], int], list[Line]]:
    """Final values against a key; where the key is infinite, a level line across the panel."""
    finite = [x for x in (_place(panel, run) for run in shown) if math.isfinite(x)] or [1.0]
    ends = (min(finite), max(finite)) if len(set(finite)) > 1 else (0.5 * finite[0], 2 * finite[0])

    def draw(panel: Panel, name: str, runs: Sequence[Recorded], n: int) -> list[Line]:
        points = {}
        for x, own in sorted(gathered(runs, partial(_place, panel)).items()):
            what = f"panel {panel.title!r}, line {name!r} at {panel.x} = {x:g},"
            value = Group(name, tuple(alike(own, what))).final(panel.y)
            if value is not None:
                points[x] = value
        level = points.pop(math.inf, None)
        lines = [banded(name, list(points), list(points.values()), n, factor(panel.y))] if points else []
        if level is not None:
            name = f"{name}, {panel.x_label} infinite" if points else name
            lines.append(banded(name, ends, [level, level], n, factor(panel.y), aside=True))
        return lines

    return draw


def _place(panel: Panel, run: Recorded) -> float:
    """Where a run stands on the x axis of a panel."""
    x = run.values.get(panel.x)
    if isinstance(x, bool) or not isinstance(x, (int, float)):
        raise RecordError(f"panel {panel.title!r}: {panel.x} of {run.name} is {x!r}, no number to draw against.")
    return float(x)
