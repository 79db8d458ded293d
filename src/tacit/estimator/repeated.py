"""Several fits on the same records: what they cost together, and that choosing among them by scores is not private.

Every fit pays for itself and knows of no other. So this process remembers, of each record that was fitted on, what the
fits that held it cost together: by a hash of the record under a key that was drawn when the process began, which stays
in memory. A fit is told of before it begins. Trials of a search in other processes are counted by what scikit-learn
tells each of them about the search; what earlier processes have spent is for ledgers (ledger=...).
"""

from __future__ import annotations

import math
import os
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from weakref import WeakSet

import numpy as np

from tacit.errors import InputError, RepeatedFitWarning
from tacit.estimator.searches import Search, search_of
from tacit.privacy.budget import multiplier_of, total, upward
from tacit.privacy.release import GaussianRelease
from tacit.types import Array, blocks

NOT_PRIVATE = (
    "Choosing among fits by scores on private records is not private, whatever the fits cost: scores carry no noise, "
    "and fold scores neither. Choose on public records, or by theory (docs/estimator.md)."
)


@dataclass(frozen=True)
class Cost:
    """The budget of a fit. Gaussian fits compose as one release; epsilons and deltas of others are added up."""

    epsilon: float
    dp_delta: float
    gaussian: bool

    @property
    def row(self) -> Array:
        """One fit; its mu^2 if it is Gaussian, its epsilon and delta if it is not; its delta if it is Gaussian."""
        if self.gaussian and math.isfinite(self.epsilon):
            return np.array([1.0, multiplier_of(self.epsilon, self.dp_delta) ** -2, 0.0, 0.0, self.dp_delta])
        return np.array([1.0, 0.0, self.epsilon, self.dp_delta, 0.0])

    def composed(self, fits: int) -> str:
        """Say what so many fits cost together."""
        return self.said(np.append(fits * self.row[:-1], self.row[-1]))

    def said(self, costs: Array) -> str:
        """Say the total of fits, of which this is the last: Gaussian ones at its delta if it is one, beside others."""
        _, square, epsilon, dp_delta, largest = costs.tolist()
        if square:  # Gaussian releases have an epsilon at any delta
            at = self.dp_delta if self.row[-1] else largest
            epsilon += total([(GaussianRelease(1 / math.sqrt(square)), 1)], at).epsilon
            dp_delta += at
        return "without any bound" if math.isinf(epsilon) else f"({upward(epsilon)}, {min(dp_delta, 1.0):g})-DP"


class Odometer:
    """What the fits of this process have cost each record, by the hash of the record."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self._hashes = np.empty(0, np.uint64)  # sorted
        self._costs = np.empty((0, 5))  # as `Cost.row`: sums, and the largest delta of a Gaussian fit
        self._told: WeakSet[Any] = WeakSet()  # searches
        self._told_elsewhere: set[tuple[int, int]] = set()  # sizes of searches that another process makes

    def first_time(self, search: Search) -> bool:
        """Tell whether a search was not spoken of before."""
        told: Any = self._told_elsewhere if search.own is None else self._told
        key = (search.candidates, search.splits) if search.own is None else search.own
        with self._lock:
            known = key in told
            told.add(key)
            return not known

    def with_one_more(self, records: Array, cost: Cost) -> tuple[int, str]:
        """Return in how many fits the most used of these records would be with one more, and what they would cost."""
        with self._lock:
            at, known = self._places(records)
            most = _plus(self._costs[at[known]].max(axis=0, initial=0.0), cost)
        return int(most[0]), cost.said(most)

    def add(self, records: Array, cost: Cost) -> None:
        """Count one more fit on these records."""
        with self._lock:
            at, known = self._places(records)
            self._costs[at[known]] = _plus(self._costs[at[known]], cost)
            hashes = np.concatenate([self._hashes, records[~known]])
            costs = np.concatenate([self._costs, np.broadcast_to(cost.row, (int((~known).sum()), 5))])
            order = np.argsort(hashes, kind="stable")
            self._hashes, self._costs = hashes[order], costs[order]

    def _places(self, records: Array) -> tuple[Array, Array]:
        """Return (where each record is, whether it is there)."""
        at = np.searchsorted(self._hashes, records)
        known = at < len(self._hashes)
        known[known] = self._hashes[at[known]] == records[known]
        return at, known


ODOMETER = Odometer()
_KEY = int.from_bytes(os.urandom(8), "big")


def hashed(x: Array) -> Array:
    """Return the hashes of all rows, each once: equal rows have equal hashes, and without the key no more shows."""
    rng = np.random.Generator(np.random.PCG64(_KEY))
    factors = rng.integers(0, 2**64, x.shape[1], np.uint64) | np.uint64(1)
    found = np.empty(len(x), np.uint64)
    for some in blocks(len(x)):
        with np.errstate(over="ignore", invalid="ignore"):
            words = np.ascontiguousarray(x[some], np.float32).view(np.uint32).astype(np.uint64)
        words = (words + np.uint64(1)) * factors
        found[some] = (words ^ (words >> np.uint64(29))).sum(axis=1, dtype=np.uint64)
    return np.unique(found)


def _plus(costs: Array, cost: Cost) -> Array:
    """Return costs (..., 5) with one more fit."""
    row = cost.row
    return np.concatenate([costs[..., :-1] + row[:-1], np.maximum(costs[..., -1:], row[-1:])], axis=-1)


def tell(records: Array, cost: Cost, kind: type) -> None:
    """Warn before a fit of a kind if earlier fits of this process held some of its records, or if a search makes it."""
    fits, together = ODOMETER.with_one_more(records, cost)
    search, alone = search_of(sys._getframe(1)), cost.composed(1)
    if search is not None and ODOMETER.first_time(search):
        last = " and a last one on all records" if search.refits else ""
        _warn(f"a search makes {search.trials} fits{last}. {_planned(search, cost, kind)} {NOT_PRIVATE}")
    elif fits > 1 and (search.ends if search is not None else fits & (fits - 1) == 0):  # the 2nd, 4th, 8th, ... fit
        _warn(
            f"some records of this fit were in {fits - 1} other{'s' if fits > 2 else ''} of this process. With this "
            f"one, whose budget is {alone}, they cost {together} together. {NOT_PRIVATE}"
        )


def _planned(search: Search, cost: Cost, kind: type) -> str:
    """Say what the fits of a search cost together. Every candidate has its own budget, and the last fit anyone's."""
    alone, models = cost.composed(1), search.models(kind)
    try:
        rows = None if not models else np.array([model._cost().row for model in models])
    except (InputError, ValueError):  # a candidate that is refused
        rows = None
    if rows is None:
        return (
            f"The budget of this one is {alone}. Those of the others are not known here, and may be larger, and so is "
            "what all cost together not known."
        )
    most = rows.max(axis=0)
    whole = np.append(search.splits * rows.sum(axis=0)[:-1] + (most[:-1] if search.refits else 0.0), most[-1])
    each = f"a budget of {alone} each" if (rows == cost.row).all() else f"budgets that differ, {alone} of this one"
    return f"With {each}, they cost up to {cost.said(whole)} together."


@contextmanager
def counted(records: Array, cost: Cost) -> Iterator[None]:
    """Count a fit, also one that is stopped; a fit that is refused before its first round has released nothing."""
    try:
        yield
    except InputError:
        raise
    except BaseException:
        ODOMETER.add(records, cost)
        raise
    ODOMETER.add(records, cost)


def _warn(message: str) -> None:
    warnings.warn(message, RepeatedFitWarning, stacklevel=6)
