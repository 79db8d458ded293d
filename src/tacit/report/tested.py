"""What result.json says of the test records by class and by agent; files of earlier versions say nothing of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from tacit.errors import RecordError
from tacit.measures import ERROR, JUDGES, Measure, judge
from tacit.report.chart import OF_TESTS, Chart, Line

NAMED = 24  # agents at most that a chart shows by name
CONFIDENCE = 0.95  # of an interval
ALL = "all agents"


@dataclass(frozen=True)
class Agent:
    """One agent: its number of test records, and what the model is judged by on them."""

    name: str
    records: int
    value: float | None


@dataclass(frozen=True)
class Confusion:
    """How often each true class (a row) was taken for each class; `binned` where classes are parts of a range."""

    classes: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    binned: bool = False

    @property
    def guessing(self) -> float:
        """The error of whoever always names the most frequent class."""
        rows = [sum(row) for row in self.counts]
        return 1 - max(rows) / sum(rows)

    @property
    def mistakes(self) -> list[tuple[int, str, str]]:
        """(count, true class, class it was taken for) of every mistake that was made, the most frequent first."""
        found = [(count, self.classes[i], self.classes[j]) for i, row in enumerate(self.counts)
                 for j, count in enumerate(row) if i != j and count]  # fmt: skip
        return sorted(found, key=lambda one: -one[0])


@dataclass(frozen=True)
class Tested:
    """The test records of a run: their number, and what the model makes of them."""

    records: int
    confusion: Confusion | None
    agents: tuple[Agent, ...]
    judged: Measure


def tested(summary: Mapping[str, Any]) -> Tested | None:
    """Read what a result says of its test records; None where it says nothing, and an error where it makes no sense."""
    found = summary.get("test")
    if found is None:
        return None
    try:
        judged = judge(summary) or ERROR
        agents = tuple(Agent(_text(one["agent"]), _count(one["records"]), _value(one[judged.key]))
                       for one in found["agents"] or ())  # fmt: skip
        return Tested(_count(found["records"], least=1), _confusion(found["confusion"]), agents, judged)
    except (LookupError, TypeError, ValueError) as error:
        raise RecordError(f"what the result says of its test records makes no sense ({error}): run it again.") from None


def agent_records(summary: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Return each agent with the number of its training records; an empty list where the result does not tell."""
    try:
        return [(_text(name), _count(n)) for name, n in summary.get("agent_records") or ()]
    except (TypeError, ValueError) as error:
        raise RecordError(f"what the result says of its agents makes no sense ({error}): run it again.") from None


def wilson(share: float, n: int) -> tuple[float, float]:
    """Return Wilson's interval for a share that was seen in n independent draws."""
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    center, room = share + z * z / (2 * n), z * math.sqrt(share * (1 - share) / n + (z / (2 * n)) ** 2)
    return max(0.0, (center - room) / (1 + z * z / n)), min(1.0, (center + room) / (1 + z * z / n))


def interval(judged: Measure, value: float | None, n: int) -> tuple[float, float] | None:
    """Return between what an error lies that was measured on n records; None for other measures."""
    return wilson(value, n) if judged is ERROR and value is not None else None


def auc_interval(auc: float, positive: int, negative: int) -> tuple[float, float]:
    """Return between what an AUC lies, by the variance of J. Hanley and B. McNeil, Radiology 143 (1982)."""
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    above, below = auc / (2 - auc) - auc**2, 2 * auc**2 / (1 + auc) - auc**2
    variance = (auc * (1 - auc) + (positive - 1) * above + (negative - 1) * below) / (positive * negative)
    room = z * math.sqrt(max(0.0, variance))
    return max(0.0, auc - room), min(1.0, auc + room)


def agents_chart(found: Tested, overall: float | None) -> Chart | None:
    """Return the measure of each agent: by name where there are few, else all agents in order, the best first."""
    known = [one for one in found.agents if one.value is not None]
    if len(known) < 2:
        return None
    judged, label = found.judged, found.judged.label
    if len(known) > NAMED:
        values = tuple(sorted(judged.factor * (one.value or 0.0) for one in known))
        line = Line("agents", tuple(map(float, range(1, len(values) + 1))), values)
        return Chart("agents", _title(judged), "agent, the best first", label, (line,), note=OF_TESTS)
    rows = [Agent(ALL, found.records, overall), *known] if overall is not None else known
    ends = [interval(judged, one.value, one.records) for one in rows]
    low, high = (tuple(judged.factor * both[n] for both in ends if both) for n in (0, 1))
    y = tuple(judged.factor * (one.value or 0.0) for one in rows)
    line = Line("agent", tuple(map(float, range(len(rows)))), y, low, high)
    most = max((*y, *high)) or 1.0
    return Chart("agents", _title(judged), "agent", label, (line,), levels=tuple(one.name for one in rows),
                 y_ends=(0.0, 1.04 * most), note=OF_TESTS)  # fmt: skip


def _title(judged: Measure) -> str:
    return f"{judged.name[0].upper()}{judged.name[1:]} of each agent"


def _confusion(found: Any) -> Confusion | None:
    if found is None:
        return None
    classes = tuple(map(_text, found["classes"]))
    counts = tuple(tuple(map(_count, row)) for row in found["counts"])
    if len(counts) != len(classes) or any(len(row) != len(classes) for row in counts):
        raise ValueError("the confusion is not of its classes")
    return Confusion(classes, counts, found.get("binned") is True) if any(map(any, counts)) else None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no name")
    return value


def _count(value: Any, least: int = 0) -> int:
    if type(value) is not int or not least <= value < 1 << 53:
        raise ValueError(f"{value!r} is no count")
    return value


def _value(value: Any) -> float | None:
    if value is None:
        return None
    if type(value) not in (int, float) or not math.isfinite(value) or value < 0:
        raise ValueError(f"{value!r} is no {' or '.join(one.name for one in JUDGES)}")
    return float(value)
