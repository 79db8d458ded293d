"""The charts of a report: a quantity against rounds, or at the end of a run against a key of the spec.

`standard` makes the charts that every report shows, and `panels` the charts that an artefact asks for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from tacit.errors import RecordError
from tacit.privacy.budget import total
from tacit.privacy.release import events_of
from tacit.report.artefact_file import ArtefactFile, Panel, alike, chosen
from tacit.report.chart import AVERAGED, CHARTED, MOST, Chart, Line, banded, factor, over_rounds
from tacit.report.runs import Group, Recorded, gathered, grouped, label, telling

PRICED = 24  # rounds at most at which a budget is composed


def standard(runs: Sequence[Recorded]) -> list[Chart]:
    """Return charts of measures, objective, budget, noise and consensus; several of each where lines are many."""
    makers: list[Callable[[Sequence[Group]], Chart]] = [partial(_measured, quantity) for quantity in CHARTED]
    makers.insert(CHARTED.index("objective") + 1, _budget)
    parts = facets(grouped(runs))
    found = []
    for make in makers:
        for n, (name, groups) in enumerate(parts, 1):
            chart = make(groups)
            if not chart.blank:
                named = replace(chart, title=f"{chart.title}, {name}", key=f"{chart.key}-{n}")
                found.append(named if name else chart)
    return found


def facets(groups: Sequence[Group]) -> list[tuple[str, list[Group]]]:
    """Split groups along a key of the spec into parts that one chart can show; return each part with its name."""
    if len(groups) <= MOST:
        return [("", list(groups))]

    def along(key: str) -> dict[str, list[Group]]:
        return gathered(groups, lambda group: label(group.first.values, [key]))

    splits = [along(key) for key in telling([group.first for group in groups])]
    # the fewest parts among the splits that fit, or else the split whose largest part is least
    best = min(splits, key=lambda parts: (max(MOST, *map(len, parts.values())), len(parts)))
    found = []
    for name, own in best.items():
        runs = [run for group in own for run in group.runs]
        pieces = [grouped(runs)[n : n + MOST] for n in range(0, len(own), MOST)]
        found += [(name if len(pieces) == 1 else f"{name}, part {n}", piece) for n, piece in enumerate(pieces, 1)]
    return found


def _measured(quantity: str, groups: Sequence[Group]) -> Chart:
    """Draw one quantity against rounds, one line a group."""

    def lines(name: str, factor: float) -> tuple[Line, ...]:
        return tuple(banded(group.label, *group.curve(name), n, factor) for n, group in enumerate(groups))

    return over_rounds(quantity, lines)


def _budget(groups: Sequence[Group]) -> Chart:
    """Draw the total epsilon after t rounds, of the runs that have a guarantee."""
    private = {n: group for n, group in enumerate(groups) if group.first.private}
    lines = tuple(replace(spent(group.first), name=group.label, style=n) for n, group in private.items())
    deltas = sorted({f"{group.first.summary['dp_delta']:g}" for group in private.values()})
    at = f" (at delta = {' or '.join(deltas)})" if deltas else ""
    return Chart("budget", "Budget spent", "round", f"total epsilon{at}", lines)


def spent(run: Recorded) -> Line:
    """epsilon(t) = the total of t rounds, at the delta the run accounts for, from the releases its result states."""
    stated = run.summary.get("releases")
    if not stated:  # results of version 0.1.0 do not state them
        return Line(run.name, (), ())
    rounds = int(run.values["run.rounds"])
    delta, pld = run.summary["accounted_delta"], run.summary["accountant"] == "pld"
    ts = sorted({max(1, round(rounds * (n / PRICED) ** 2)) for n in range(1, PRICED + 1)})  # dense where it is steep
    return Line(run.name, tuple(map(float, ts)), tuple(total(events_of(stated, t), delta, pld).epsilon for t in ts))


def panels(artefact: ArtefactFile, runs: Sequence[Recorded]) -> list[Chart]:
    """Return the charts of all panels, with the series that are no runs; a line looks the same in all of them."""
    found = []
    styles: dict[str, int] = {}
    for n, panel in enumerate(artefact.panels):
        chart = _panel(panel, runs, f"panel-{n + 1}", styles)
        extra = tuple(
            Line(one.name, one.x, tuple(factor(panel.y) * y for y in one.y), style=_style(one.name, styles), aside=True)
            for one in artefact.series if one.panel == n
        )  # fmt: skip
        averaged = (*chart.averaged, *extra) if chart.averaged else ()
        found.append(replace(chart, lines=(*chart.lines, *extra), averaged=averaged))
    return found


def _style(name: str, styles: dict[str, int]) -> int:
    """Return the number of a name: the next free number for a name that is new."""
    return styles.setdefault(name, len(styles))


def _panel(panel: Panel, runs: Sequence[Recorded], key: str, styles: dict[str, int]) -> Chart:
    """Draw one panel, a line for each setting of the keys in `lines_by`."""
    shown = chosen(runs, panel.where)
    # a key in which no two lines differ says nothing, unless it is all there is to say
    keys = [key for key in panel.lines_by if len({repr(run.values.get(key)) for run in shown}) > 1] or panel.lines_by
    by_line = gathered(shown, lambda run: label(run.values, keys) or panel.y.replace("_", " "))
    draw = _over_rounds if panel.x == "t" else _over_key(panel, shown)

    def lines(y: str) -> tuple[Line, ...]:
        one = replace(panel, y=y)
        return tuple(line for name, own in by_line.items() for line in draw(one, name, own, _style(name, styles)))

    averaged = lines(AVERAGED[panel.y]) if panel.y in AVERAGED else ()
    unit = " (%)" if factor(panel.y) == 100 and "%" not in panel.y_label else ""
    y_label = panel.y_label + unit
    title = panel.title or y_label
    return Chart(key, title, panel.x_label, y_label, lines(panel.y), averaged, panel.log_x, panel.log_y)


def _over_rounds(panel: Panel, name: str, runs: Sequence[Recorded], n: int) -> list[Line]:
    """Draw a curve over rounds, averaged over seeds."""
    group = Group(name, tuple(alike(runs, f"panel {panel.title!r}, line {name!r}")))
    return [banded(name, *group.curve(panel.y), n, factor(panel.y))]


def _over_key(panel: Panel, shown: Sequence[Recorded]) -> Callable[[Panel, str, Sequence[Recorded], int], list[Line]]:
    """Draw final values against a key; where the key is infinite, a level line across the panel."""
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
    """Return where a run stands on the x axis of a panel."""
    x = run.values.get(panel.x)
    if isinstance(x, bool) or not isinstance(x, (int, float)):
        raise RecordError(f"panel {panel.title!r}: {panel.x} of {run.name} is {x!r}, no number to draw against.")
    return float(x)
