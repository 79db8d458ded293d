"""The charts that every report shows: each measured quantity, and the budget spent, against rounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from tacit.privacy.budget import total
from tacit.privacy.release import events_of
from tacit.report.chart import MOST, Chart, Line, banded
from tacit.report.quantities import AVERAGED, KNOWN
from tacit.report.runs import Group, Recorded, gathered, grouped, label, telling

PRICED = 24  # rounds at most at which a budget is composed


def charts(runs: Sequence[Recorded]) -> list[Chart]:
    """Return charts of test error, objective, budget, noise and consensus; several of each where lines are many."""
    parts = facets(grouped(runs))
    makers: list[Callable[[Sequence[Group]], Chart]] = [
        partial(_measured, quantity) for quantity in KNOWN if quantity not in AVERAGED.values()
    ]
    makers.insert(2, _budget)
    found = []
    for make in makers:
        for n, (name, groups) in enumerate(parts, 1):
            chart = make(groups)
            if not chart.empty and any(y for line in chart.lines for y in line.y):  # a run without noise has zeros
                named = replace(chart, title=f"{chart.title}, {name}", key=f"{chart.key}-{n}")
                found.append(named if name else chart)
    return found


def facets(groups: Sequence[Group]) -> list[tuple[str, list[Group]]]:
    """Groups in parts that one chart can show, split along a key of the spec; each part by the key's value."""
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


def spent(run: Recorded) -> Line:
    """epsilon(t) = the total of t rounds, at the delta the run accounts for, from the releases its result states."""
    stated = run.summary.get("releases")
    if not stated:  # results of version 0.1.0 do not state them
        return Line(run.name, (), ())
    rounds = int(run.values["run.rounds"])
    delta, pld = run.summary["accounted_delta"], run.summary["accountant"] == "pld"
    ts = sorted({max(1, round(rounds * (n / PRICED) ** 2)) for n in range(1, PRICED + 1)})  # dense where it is steep
    return Line(run.name, tuple(map(float, ts)),
                tuple(total(events_of(stated, t), delta, pld).epsilon for t in ts))  # fmt: skip
