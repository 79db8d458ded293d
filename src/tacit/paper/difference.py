"""What could explain that our MNIST errors lie above the printed ones: each thing by itself, and what it is worth."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from tacit.jsontext import Values
from tacit.paper.archive import select

LENGTH = 20_000  # the paper's T
COLUMNS = (
    "number", "paper", f"tacit after {LENGTH:,}", "reaches it after", "one round more", "records shuffled", "float64",
    "gradients by 1/I_p",
)  # fmt: skip
NOTHING = "-"


def table(printed: Sequence[Values], records: Sequence[Values]) -> Values:
    """One row for each printed number; differences are in points, and of means over the same seeds."""
    rows = [[one["label"], *_row(select(records, one["where"]), one["paper"])] for one in printed]
    return {"columns": list(COLUMNS), "rows": rows}


def _row(own: Sequence[Values], printed: float) -> list[str]:
    longer = [one for one in select(own, {"data.partition": None}) if one["rounds"] > LENGTH]
    shuffled = select(own, {"data.partition": "shuffled", "run.rounds": LENGTH})
    curve = mean_curve(longer)
    reached = next((t for t, error in curve.items() if error <= printed), None)
    after = NOTHING if not curve else f"{reached:,}" if reached else f"not by {max(curve):,}"
    same = [one for one in longer if one["seed"] in {other["seed"] for other in shuffled}]
    order = _points(mean_curve(shuffled).get(LENGTH), mean_curve(same).get(LENGTH))
    double = _points(_error(select(own, {"run.engine": "plain"})), _error(_short(own)))
    local = _percent(_error(select(own, {"algorithm.gradient_weight": "local", "run.rounds": LENGTH})))
    return [f"{100 * printed:.2f} %", _percent(curve.get(LENGTH)), after, _one_more(longer), order, double, local]


def _short(own: Sequence[Values]) -> list[Values]:
    """The runs of the fast engine that are as long as those in float64."""
    lengths = {one["rounds"] for one in select(own, {"run.engine": "plain"})}
    return [one for one in select(own, {"run.engine": "fast", "data.partition": None}) if one["rounds"] in lengths]


def mean_curve(records: Sequence[Values]) -> dict[int, float]:
    """The mean test error by round, at the rounds that all records measured."""
    curves = [dict(zip(one["curve"]["t"], one["curve"]["test_error"], strict=True)) for one in records]
    shared = set.intersection(*(set(curve) for curve in curves)) if curves else set()
    return {t: fmean(curve[t] for curve in curves) for t in sorted(shared)}


def _one_more(longer: Sequence[Values]) -> str:
    """What the last round of a run changes, where the round before it was measured too; the largest over seeds."""
    ends = [one["curve"] for one in longer if one["curve"]["t"][-1] - one["curve"]["t"][-2] == 1]
    changes = [curve["test_error"][-1] - curve["test_error"][-2] for curve in ends]
    return f"at most {100 * max(map(abs, changes)):.2f}" if changes else NOTHING


def _error(records: Sequence[Values]) -> float | None:
    return fmean(one["test_error"] for one in records) if records else None


def _points(one: float | None, other: float | None) -> str:
    return NOTHING if one is None or other is None else f"{100 * (one - other):+.2f}"


def _percent(error: float | None) -> str:
    return NOTHING if error is None else f"{100 * error:.2f} %"
