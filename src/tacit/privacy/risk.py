"""Risk of one record in plain words: how often a guess about it is right, and whether its protection is weak.

Report, card, live page, terminal and `notes_` take both from here, so that they agree. The numbers are those that a
result holds; tacit.privacy.budget.best_guess has computed how often a guess is right.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tacit.errors import RecordError
from tacit.privacy.budget import any_guess, upward

GUESSED = {  # by adjacency: what somebody who attacks the run may want to know
    "zero_out": "whether one given record was used",
    "replace_one": "which of two given records was used",
    "client": "whether one given agent, with all of its records, took part",
}
IF_EXACT = "if the noise were exact"  # of simulated noise
WEAK_ABOVE = 3.0  # total epsilon


@dataclass(frozen=True)
class Risk:
    """What a result says about the risk of one record, or of one agent: the same words on every page."""

    guess: float  # the largest probability with which a guess at even odds is right
    guessed: str  # what is guessed
    weak: str  # why the protection is weak; empty if it is not
    simulated: bool  # all of this would hold if the noise were exact

    def __str__(self) -> str:
        condition = f" {IF_EXACT}" if self.simulated else ""
        right = f"right at most {percent(self.guess)} of the time{condition}"
        return f"a guess {self.guessed} {self._is} {right}; a coin is right 50%"

    @property
    def verdict(self) -> str:
        """Whether and why the protection is weak, in words; empty if it is not."""
        return f"protection {self._is} weak: {self.weak}" if self.weak else ""

    @property
    def _is(self) -> str:
        return "would be" if self.simulated else "is"


def weakness(epsilon: float, dp_delta: float, units: int | None = None, unit: str = "training records") -> str:
    """Return why a guarantee is weak: epsilon above 3, or delta of at least one over the units; "" if it is not."""
    if epsilon > WEAK_ABOVE:
        return f"a total epsilon of {upward(epsilon)} is above {WEAK_ABOVE:g}"
    if units and dp_delta >= 1 / units:
        allowed = f"allows one of the {units:,} {unit} to be published in full"
        return f"a delta of {dp_delta:g} {allowed}: it must be well below 1/{units}"
    return ""


def stated(summary: Mapping[str, Any]) -> Risk:
    """Return the risk of a run with a guarantee, from its result.

    A result of an earlier version has no `best_guess`: it gets the bound that holds for any mechanism.
    """
    epsilon, dp_delta = _number(summary, "epsilon", 0, math.inf), _number(summary, "dp_delta", 0, 1, missing=0.0)
    guess = _number(summary, "best_guess", 0.5, 1, missing=any_guess(epsilon, dp_delta))
    adjacency = str(summary.get("adjacency"))
    key, unit = ("agents", "agents") if adjacency == "client" else ("records", "training records")
    units = summary.get(key)
    weak = weakness(epsilon, dp_delta, units if isinstance(units, int) and 0 < units < 2**53 else None, unit)
    guessed = GUESSED.get(adjacency, GUESSED["zero_out"])
    return Risk(guess, guessed, weak, bool(summary.get("simulated_noise")))


def _number(summary: Mapping[str, Any], key: str, low: float, high: float, missing: float | None = None) -> float:
    """Return a number of a result, and `missing` if the result has none; refuse one that cannot be."""
    value = missing if summary.get(key) is None else summary[key]
    try:
        found = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    except OverflowError:  # a whole number that no float holds
        found = math.nan
    if not low <= found <= high:
        raise RecordError(f"{key} of a result lies between {low:g} and {high:g}, and this one makes no sense.")
    return found


def percent(share: float) -> str:
    """Write a share as per cent, rounded up: a promise must not become stronger on paper."""
    return f"{min(100.0, math.ceil(round(1000 * share, 9)) / 10):g}%"
