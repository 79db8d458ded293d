"""The tuning rule: the same number of choices for every method, judged on records that no run tests on."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tacit.compare.job import Job
from tacit.jsontext import Values
from tacit.methods.method import TRIALS, Budget, Choice
from tacit.run.spec import Spec

TUNING_SEED = 1000  # of no reported run

NOT_ACCOUNTED = (
    "tuning looked at the data as they are: what the choice of constants reveals is in no guarantee above",
    "noise is simulated, from the seed: whoever knows it can take it off, so none of these models is for release",
)


def rule(seeds: int, rounds: int | None = None) -> str:
    """In words, for the output."""
    most = f" (of at most {rounds} rounds)" if rounds else ""
    last = f"seeds 0 to {seeds - 1}" if seeds > 1 else "seed 0"
    return (
        f"each method tries up to {TRIALS} choices of its constants{most}, fixed in advance, at the same total budget, "
        "on all but the last sixth of each agent's training records, with the noise that these records need; the error "
        f"on that sixth decides (seed {TUNING_SEED}), and the best choice trains on all training records ({last})"
    )


def capped(grid: Sequence[Choice], rounds: int | None) -> tuple[Choice, ...]:
    """The grid with no more rounds than these."""
    return tuple(
        {**choice, "rounds": min(choice["rounds"], rounds)} if rounds and "rounds" in choice else choice
        for choice in grid
    )


def trials(base: Spec, method: str, grid: Sequence[Choice], budget: Budget) -> list[Job]:
    """One job a choice."""
    return [Job(base, method, choice, budget, TUNING_SEED, "trial") for choice in grid]


def best(records: Sequence[Values]) -> int | None:
    """Which trial had the least error, the first of equals; None where none gave a model."""
    errors = [math.inf if one["error"] is None else one["error"] for one in records]
    least = min(errors)
    return None if math.isinf(least) else errors.index(least)


def runs(base: Spec, method: str, choice: Choice, budget: Budget, seeds: int) -> list[Job]:
    """One job a seed."""
    return [Job(base, method, choice, budget, seed, "run") for seed in range(seeds)]
