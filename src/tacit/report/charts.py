"""Charts from runs: every measured quantity against rounds, the budget, and the panels of an artefact."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from tacit.errors import RecordError
from tacit.privacy.budget import total
from tacit.privacy.release import restored
from tacit.report.artefact import Artefact, Panel, alike, chosen
from tacit.report.chart import MOST, Chart, Line, banded
from tacit.report.quantities import AVERAGED, KNOWN, factor, with_unit
from tacit.report.runs import Group, Run, grouped, label, telling

PRICED = 24  # rounds at most at which a budget is composed


def standard(runs: Sequence[Run]) -> list[Chart]:
    """Test error, objective, budget, noise and consensus; in several charts each where lines are many."""
    parts = facets(grouped(runs))
    makers: list[Callable[[Sequence[Group]], Chart]] = [
        partial(_measured, quantity) for quantity in KNOWN if quantity not in AVERAGED.values()
    ]
    makers.insert(2, _budget)
    charts = []
    for make in makers:
        for n, (name, groups) in enumerate(parts, 1):
            chart = make(groups)
            if not chart.empty and any(y for line in chart.lines for y in line.y):  # a run without noise has zeros
                named = replace(chart, title=f"{chart.title}, {name}", key=f"{chart.key}-{n}")
                charts.append(named if name else chart)
    return charts


def facets(groups: Sequence[Group]) -> list[tuple[str, list[Group]]]:
    """Groups in parts that one chart can show, split along a key of the spec; each part by the key's value."""
    if len(groups) <= MOST:
        return [("", list(groups))]
    keys = telling([group.first for group in groups])
    parts: list[dict[str, list[Group]]] = []
    for key in keys:
        part: dict[str, list[Group]] = {}
        for group in groups:
            part.setdefault(label(group.first.values, [key]), []).append(group)
        parts.append(part)
    small = [part for part in parts if max(map(len, part.values())) <= MOST]
    best = min(small, key=len) if small else min(parts, key=lambda part: max(map(len, part.values())))
    found = []
    for name, own in best.items():
        runs = [run for group in own for run in group.runs]
        pieces = [grouped(runs)[n : n + MOST] for n in range(0, len(own), MOST)]
        found += [(name if len(pieces) == 1 else f"{name}, part {n}", piece) for n, piece in enumerate(pieces, 1)]
    return found


def panels(artefact: Artefact, runs: Sequence[Run]) -> list[Chart]:
    """The panels of an artefact, with the series that are no runs; a line looks the same in all of them."""
    charts = []
    styles: dict[str, int] = {}
    for n, panel in enumerate(artefact.panels):
        chart = _panel(panel, runs, f"panel-{n + 1}", styles)
        unit = factor(panel.y)
        extra = tuple(
            Line(one.name, one.x, tuple(unit * y for y in one.y), style=_style(one.name, styles), aside=True)
            for one in artefact.series if one.panel == n
        )  # fmt: skip
        averaged = (*chart.averaged, *extra) if chart.averaged else ()
        charts.append(replace(chart, lines=(*chart.lines, *extra), averaged=averaged))
    return charts


def _style(name: str, styles: dict[str, int]) -> int:
    return styles.setdefault(name, len(styles))


def _measured(quantity: str, groups: Sequence[Group]) -> Chart:
    """One quantity against rounds, one line a group."""
    known = KNOWN[quantity]

    def lines(name: str) -> tuple[Line, ...]:
        return tuple(banded(group.label, *group.curve(name), n, known.factor) for n, group in enumerate(groups))

    averaged = lines(AVERAGED[quantity]) if quantity in AVERAGED else ()
    return Chart(quantity.replace("_", "-"), known.title, "round", known.label, lines(quantity), averaged,
                 log_y=known.log)  # fmt: skip


def _budget(groups: Sequence[Group]) -> Chart:
    """The total epsilon after t rounds, of the runs that have a guarantee."""
    lines = [replace(spent(group.first), name=group.label, style=n) for n, group in enumerate(groups)
             if group.first.private]  # fmt: skip
    deltas = sorted({f"{group.first.summary['dp_delta']:g}" for group in groups if group.first.private})
    at = f" (at delta = {' or '.join(deltas)})" if deltas else ""
    return Chart("budget", "Budget spent", "round", f"total epsilon{at}", tuple(lines))


def spent(run: Run) -> Line:
    """epsilon(t) = the total of t rounds, at the delta the run accounts for, from the releases its result states."""
    stated = run.summary.get("releases")
    if not stated:  # results of version 0.1.0 do not state them
        return Line(run.name, (), ())
    releases, rounds = [restored(one) for one in stated], int(run.values["run.rounds"])
    delta, pld = run.summary["accounted_delta"], run.summary["accountant"] == "pld"
    ts = sorted({max(1, round(rounds * (n / PRICED) ** 2)) for n in range(1, PRICED + 1)})  # dense where it is steep
    return Line(run.name, tuple(map(float, ts)),
                tuple(max(total([(one, t)], delta, pld).epsilon for one in releases) for t in ts))  # fmt: skip


def _panel(panel: Panel, runs: Sequence[Run], key: str, styles: dict[str, int]) -> Chart:
    shown = chosen(runs, panel.where)
    # a key in which no two lines differ says nothing, unless it is all there is to say
    keys = [key for key in panel.lines_by if len({repr(run.values.get(key)) for run in shown}) > 1] or panel.lines_by
    by_line: dict[str, list[Run]] = {}
    for run in shown:
        by_line.setdefault(label(run.values, keys) or panel.y.replace("_", " "), []).append(run)
    draw = _over_rounds if panel.x == "t" else _over_key(panel, shown)

    def lines(y: str) -> tuple[Line, ...]:
        one = replace(panel, y=y)
        return tuple(line for name, own in by_line.items() for line in draw(one, name, own, _style(name, styles)))

    averaged = lines(AVERAGED[panel.y]) if panel.y in AVERAGED else ()
    y_label = with_unit(panel.y_label, panel.y)
    return Chart(key, panel.title or y_label, panel.x_label, y_label, lines(panel.y), averaged,
                 panel.log_x, panel.log_y)  # fmt: skip


def _over_rounds(panel: Panel, name: str, runs: Sequence[Run], n: int) -> list[Line]:
    group = Group(name, tuple(alike(runs, f"panel {panel.title!r}, line {name!r}")))
    return [banded(name, *group.curve(panel.y), n, factor(panel.y))]


def _over_key(panel: Panel, shown: Sequence[Run]) -> Callable[[Panel, str, Sequence[Run], int], list[Line]]:
    """Final values against a key; where the key is infinite, a level line across the panel."""
    finite = [x for x in (_place(panel, run) for run in shown) if math.isfinite(x)] or [1.0]
    ends = (min(finite), max(finite)) if len(set(finite)) > 1 else (0.5 * finite[0], 2 * finite[0])

    def draw(panel: Panel, name: str, runs: Sequence[Run], n: int) -> list[Line]:
        by_x: dict[float, list[Run]] = {}
        for run in runs:
            by_x.setdefault(_place(panel, run), []).append(run)
        points = {}
        for x in sorted(by_x):
            what = f"panel {panel.title!r}, line {name!r} at {panel.x} = {x:g},"
            value = Group(name, tuple(alike(by_x[x], what))).final(panel.y)
            if value is not None:
                points[x] = value
        level = points.pop(math.inf, None)
        lines = [banded(name, list(points), list(points.values()), n, factor(panel.y))] if points else []
        if level is not None:
            name = f"{name}, {panel.x_label} infinite" if points else name
            lines.append(banded(name, ends, [level, level], n, factor(panel.y), aside=True))
        return lines

    return draw


def _place(panel: Panel, run: Run) -> float:
    x = run.values.get(panel.x)
    if isinstance(x, bool) or not isinstance(x, (int, float)):
        raise RecordError(f"panel {panel.title!r}: {panel.x} of {run.name} is {x!r}, no number to draw against.")
    return float(x)
