"""Runs as their records tell them; runs that differ in the seed alone form a group, and are averaged."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from tacit import toml
from tacit.report.privacy_text import PrivacyText, privacy_text

FREE = ("run.seed", "run.name", "run.record_every")  # they change nothing that a mean over runs should not absorb
FIRST = ("algorithm.name", "privacy.epsilon", "data.source", "run.preset")  # named first where runs differ in them
SPEAK_FOR_THEMSELVES = ("algorithm.name", "data.source", "run.preset")
LOW, HIGH = 20, 80  # percentiles of a band

Item = TypeVar("Item")
Key = TypeVar("Key")


@dataclass(frozen=True)
class Recorded:
    """A run as it was read from records: its spec, its result and its curves.

    The curves are lists of equal length, one a quantity. A run that diverged has none.
    """

    name: str
    spec: str
    summary: Mapping[str, Any]
    curve: Mapping[str, Sequence[float | None]]
    values: Mapping[str, Any] = field(init=False)  # the spec by dotted keys

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", toml.parsed(self.spec, f"the spec of {self.name}"))

    @property
    def diverged(self) -> bool:
        return "diverged" in self.summary

    @cached_property
    def privacy(self) -> PrivacyText:
        """What the record says about privacy."""
        return privacy_text(self.summary)

    @property
    def private(self) -> bool:
        """Whether the record holds a total for the whole run."""
        return self.privacy.private


@dataclass(frozen=True)
class Spread:
    """Mean and percentiles over seeds."""

    mean: float
    low: float
    high: float
    count: int


@dataclass(frozen=True)
class Group:
    """Runs that differ in the seed alone."""

    label: str
    runs: tuple[Recorded, ...]

    @property
    def finished(self) -> tuple[Recorded, ...]:
        return tuple(run for run in self.runs if not run.diverged)

    @property
    def first(self) -> Recorded:
        """A run that speaks for the group."""
        return (self.finished or self.runs)[0]

    def final(self, quantity: str) -> Spread | None:
        """Return a number of the results over the seeds; None where they have none."""
        return spread([run.summary.get(quantity) for run in self.finished])

    def curve(self, quantity: str) -> tuple[list[float], list[Spread]]:
        """Return the rounds that every seed measured, and the quantity at each."""
        pairs = [zip(run.curve["t"], run.curve.get(quantity, []), strict=False) for run in self.finished]
        curves = [{t: y for t, y in own if t is not None and y is not None} for own in pairs]
        rounds = [t for t in curves[0] if all(t in curve for curve in curves)] if curves else []
        found = [spread([curve[t] for curve in curves]) for t in rounds]
        return rounds, [one for one in found if one is not None]


def spread(values: Iterable[Any]) -> Spread | None:
    """Return mean, 20th and 80th percentile of the numbers that are there."""
    numbers = [float(value) for value in values if value is not None and math.isfinite(value)]
    if not numbers:
        return None
    low, high = np.percentile(numbers, [LOW, HIGH])
    return Spread(float(np.mean(numbers)), float(low), float(high), len(numbers))


def gathered(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Gather items in lists by their key, in the order in which the keys first occur."""
    found: dict[Key, list[Item]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return found


def grouped(runs: Sequence[Recorded]) -> list[Group]:
    """Group runs that differ in the seed alone, in the order of their first runs, labelled by what sets them apart."""
    keys = telling(runs)
    return [Group(label(own[0].values, keys) or str(own[0].values["algorithm.name"]), tuple(own))
            for own in gathered(runs, lambda run: identity(run, FREE)).values()]  # fmt: skip


def varied(runs: Sequence[Recorded]) -> list[str]:
    """Return the keys in which runs differ, the seed apart."""
    keys = dict.fromkeys(key for run in runs for key in run.values)
    found = [key for key in keys if key not in FREE and len({repr(run.values.get(key)) for run in runs}) > 1]
    return sorted(found, key=lambda key: FIRST.index(key) if key in FIRST else len(FIRST))


def telling(runs: Sequence[Recorded]) -> list[str]:
    """Return as few of the varied keys as tell all groups apart: an algorithm brings others with it."""
    kept: list[str] = []
    for key in varied(runs):
        if len({label(run.values, [*kept, key]) for run in runs}) > len({label(run.values, kept) for run in runs}):
            kept.append(key)
    return kept


def label(values: Mapping[str, Any], keys: Sequence[str]) -> str:
    """Name a setting by some keys: objt, epsilon 0.05."""
    return ", ".join(
        text(values.get(key)) if key in SPEAK_FOR_THEMSELVES else f"{short(key)} {text(values.get(key))}"
        for key in keys
    )


def short(key: str) -> str:
    """Shorten a key: privacy.epsilon is epsilon, schedule.rho_factor is rho factor."""
    return key.rpartition(".")[2].replace("_", " ")


def text(value: Any) -> str:
    """Write a value in a few letters."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} = {text(one)}" for key, one in value.items()) or "none"
    return "; ".join(map(text, value)) if isinstance(value, (list, tuple)) else str(value)


def identity(run: Recorded, free: Sequence[str]) -> str:
    """Return what names a run: its spec without the keys that are `free`."""
    return repr(sorted((key, value) for key, value in run.values.items() if key not in free))
