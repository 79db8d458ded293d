"""Whether releases fit under the limit of a ledger, beside what was released and what open runs may still release.

A run holds budget for all that it may still release, from its join until it ends or is silent for too long
(tacit.privacy.terms). So two runs that do not fit together are not both admitted, to starve each other half-way.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from pathlib import Path

from tacit.errors import BudgetExhausted
from tacit.privacy.budget import upward
from tacit.privacy.history import History, Limit, Price
from tacit.privacy.release import Release
from tacit.privacy.terms import Key


class Admission:
    """The checks of one ledger, the file at `path`."""

    def __init__(self, path: Path, price: Price) -> None:
        self._path, self._price = path, price
        self._safe: tuple[str, Limit, Counter[Release]] | None = None  # of a data set, known to fit under this limit

    def check_run(
        self, history: History, data_id: str, run: str, release: Release, count: int, now: datetime
    ) -> None:
        """Refuse a run, with `count` more releases, that does not fit beside what other open runs hold."""
        self._check(history, data_id, run, release, count, history.reserved(data_id, now, run))

    def check_release(self, history: History, key: Key, release: Release, now: datetime) -> None:
        """Refuse a new release for which there is no room.

        A run that holds its budget needs room for this release. A run whose reservation has lapsed is admitted anew,
        to its end. A run without a reservation needs room beside all reservations.
        """
        place = history.place(key.data_id, key.run)
        if place.is_held(now):
            self._check(history, key.data_id, key.run, release, 1, Counter())
        else:
            self.check_run(history, key.data_id, key.run, release, place.remaining if place.reserves else 1, now)

    def _check(
        self, history: History, data_id: str, run: str, release: Release, count: int, others: Counter[Release]
    ) -> None:
        """Refuse releases that would pass the limit, beside those that `others` may still make.

        If they fit, check more such releases, as many as already made, then half as many, ...: fewer cost less, so
        that the rounds up to there need no composition of their own.
        """
        limit = history.limit
        if limit is None:
            return
        after = history.spent.get(data_id, Counter()) + others + Counter({release: count})
        if self._safe and self._safe[:2] == (data_id, limit) and after <= self._safe[2]:
            return
        epsilon = self._price(tuple(after.items()), limit.dp_delta)
        if not epsilon <= limit.epsilon:  # NaN is refused too
            held = f", beside {others.total()} that open runs hold," if others else ""
            close = f" or close an open run (tacit ledger close {self._path} RUN)," if others else ""
            raise BudgetExhausted(
                f"{'one more release' if count == 1 else f'{count} more releases'} of {data_id!r} in run {run!r}{held} "
                f"would bring the total to epsilon = {upward(epsilon)} at delta = {limit.dp_delta:g}, beyond the limit "
                f"of {limit.epsilon:g}: ask for a smaller epsilon,{close} or the owner may raise it (tacit ledger "
                "limit)."
            )
        self._safe = data_id, limit, after
        more = after[release]
        while more:
            ahead = after + Counter({release: more})
            if self._price(tuple(ahead.items()), limit.dp_delta) <= limit.epsilon:
                self._safe = data_id, limit, ahead
                break
            more //= 2
