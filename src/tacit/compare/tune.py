"""The tuning rule: the same number of choices for every method, judged on records that no run tests on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

from tacit.errors import DataError
from tacit.jsontext import Values
from tacit.methods.method import TRIALS, Choice
from tacit.run import ranks
from tacit.run.spec import Spec
from tacit.types import Federation

TUNING_SEED = 1000  # of no reported run
HELD_OUT = 6  # one in six of each agent's records tunes

NOT_ACCOUNTED = (
    "tuning looked at the data as they are: what the choice of constants reveals is in no guarantee above",
    "noise is simulated, from the seed: whoever knows it can take it off, so none of these models is for release",
)


def rule(seeds: int, rounds: int | None = None) -> str:
    """The rule in words, for the output."""
    most = f" (of at most {rounds} rounds)" if rounds else ""
    last = f"seeds 0 to {seeds - 1}" if seeds > 1 else "seed 0"
    return (
        f"each method tries up to {TRIALS} choices of its constants{most}, fixed in advance, at the same total budget, "
        "on all but a random sixth of each agent's training records, with the noise that these records need; the error "
        f"on that sixth decides (seed {TUNING_SEED}), and the best choice trains on all training records ({last})"
    )


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
