"""Count the fits on the same records and warn of their total cost; choosing among fits by their scores is not private.

Each fit accounts only for its own budget. So this process remembers, for every record, the total cost of the fits that
held it: by a hash of the record under a key that is drawn when the process starts and stays in memory. A warning comes
before a fit begins. Other processes, those of a parallel search included, have counts of their own: a ledger
(ledger=...) adds up the cost over all processes.
"""

from __future__ import annotations

import math
import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from tacit.errors import InputError, RepeatedFitWarning
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


def tell(records: Array, cost: Cost) -> None:
    """Warn before a fit if earlier fits of this process held some of its records: at the 2nd, 4th, 8th, ... fit."""
    fits, together = ODOMETER.with_one_more(records, cost)
    if fits > 1 and fits & (fits - 1) == 0:
        message = (
            f"some records of this fit were in {fits - 1} other{'s' if fits > 2 else ''} of this process. With this "
            f"one, whose budget is {cost.composed(1)}, they cost {together} together. {NOT_PRIVATE}"
        )
        warnings.warn(message, RepeatedFitWarning, stacklevel=5)


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
