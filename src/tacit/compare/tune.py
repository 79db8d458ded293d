"""The tuning rule: the same number of choices for every method, judged on records that no run tests on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

from tacit.errors import DataError
from tacit.jsontext import Values
from tacit.leaderboard.table import TUNING_SEED
from tacit.methods.method import Choice
from tacit.run import ranks
from tacit.run.spec import Spec
from tacit.types import Federation

HELD_OUT = 6  # one in six of each agent's records tunes


def capped(grid: Sequence[Choice], rounds: int | None) -> list[Choice]:
    """The choices of a grid, none of them with more rounds than these."""
    return [
        {**choice, "rounds": min(choice["rounds"], rounds)} if rounds and "rounds" in choice else choice
        for choice in grid
    ]


def best(records: Sequence[Values]) -> int | None:
    """Which trial had the least error, the first of equals; None where none gave a model."""
    errors = [math.inf if one["error"] is None else one["error"] for one in records]
    least = min(errors)
    return None if math.isinf(least) else errors.index(least)


class Splits:
    """The federation of a spec by the role of a job. It is loaded when a job first needs it."""

    def __init__(self, base: Spec) -> None:
        self.base = base

    def __getitem__(self, role: str) -> Federation:
        return self.trial if role == "trial" else self.run

    @cached_property
    def in_one_place(self) -> Splits:
        """The same with all records in this process, for curators; agents are else perhaps spread over ranks."""
        return Splits(self.base.with_values({"run.engine": "fast"}))

    @cached_property
    def run(self) -> Federation:
        """The training records and the test records."""
        federation = ranks.federation(self.base)
        if not len(federation.test):
            raise DataError(f"{federation.name} has no test records to compare on: give --test, or data.test_fraction.")
        return federation

    @cached_property
    def trial(self) -> Federation:
        """The part of the training records that tunes."""
        return held_out(self.run)


def held_out(federation: Federation) -> Federation:
    """The federation with a random sixth of each agent's records as its test set. Absent records test nothing."""
    return ranks.held_out(federation, TUNING_SEED, HELD_OUT)
