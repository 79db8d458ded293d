"""Run a plan: tune each method, run the best choice from every seed, and never run the same job twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tacit import record
from tacit.compare import tune
from tacit.compare.arena import Arena, held_out
from tacit.compare.entries import Contender, contenders
from tacit.compare.job import Job, Outcome, content
from tacit.compare.plan import Plan
from tacit.errors import DataError, Interrupted, RecordError
from tacit.jsontext import Values
from tacit.methods.method import Budget
from tacit.recordfile import RecordFile
from tacit.run import build
from tacit.run.directory import check_writable
from tacit.run.spec import Spec

Hear = Callable[[Values], None]


@dataclass(frozen=True)
class Standing:
    """One method at one budget: its trials, and its runs with the choice that they led to."""

    method: str
    budget: Budget
    trials: tuple[Values, ...]
    runs: tuple[Values, ...]


class Arenas:
    """The records, loaded when a job first needs them."""

    def __init__(self, base: Spec) -> None:
        self.base = base

    @cached_property
    def run(self) -> Arena:
        over = build.federation(self.base)
        if not len(over.test):
            raise DataError(f"{over.name} has no test records to compare on: give --test, or data.test_fraction.")
        return Arena(self.base, over)

    @cached_property
    def trial(self) -> Arena:
        return Arena(self.base, held_out(self.run.over))


def records_in(out: Path) -> RecordFile:
    """The records of a comparison by the hash of their specs; the first one that is added makes the file."""
    check_writable(out, "give --out a new directory, or that of a comparison")
    return RecordFile(out / "records.jsonl", accept=_of_a_job)


def _of_a_job(one: Values, where: str) -> Values:
    if one.get("role") not in ("trial", "run"):
        raise RecordError(f"{where} holds records that are none of a comparison: name another --out.")
    return one


def run(plan: Plan, out: Path, hear: Hear = lambda _record: None) -> list[Standing]:
    """Every method at every budget; records that are in `out` already are read."""
    kept, arenas, known = records_in(out), Arenas(plan.base), contenders()
    try:
        return [
            _standing(plan, known[name], Budget(epsilon, plan.dp_delta), kept, arenas, hear)
            for epsilon in plan.epsilons
            for name in plan.methods
        ]
    except Interrupted as stop:
        raise Interrupted(f"{stop}; run the same comparison again to go on") from None


def _standing(plan: Plan, who: Contender, budget: Budget, kept: RecordFile, arenas: Arenas, hear: Hear) -> Standing:
    grid = tune.capped(who.grid, plan.rounds)
    trials = tune.trials(plan.base, who.name, grid, budget)
    tried = _settle(who, trials, kept, lambda: arenas.trial, hear)
    chosen = tune.best(tried)
    if chosen is None:
        return Standing(who.name, budget, tuple(tried), ())
    jobs = tune.runs(plan.base, who.name, grid[chosen], budget, plan.seeds)
    return Standing(who.name, budget, tuple(tried), tuple(_settle(who, jobs, kept, lambda: arenas.run, hear)))


def _settle(
    who: Contender, jobs: Sequence[Job], kept: RecordFile, arena: Callable[[], Arena], hear: Hear
) -> list[Values]:
    """The record of each job; those that have none yet are run, as many at once as one pass serves."""
    named = {record.spec_hash(job.spec): job for job in jobs}
    left = [job for key, job in named.items() if key not in kept]

    def done(job: Job, outcome: Outcome) -> None:
        one = record.sealed(content(job, outcome))
        kept.add([one])
        hear(one)

    while left:
        size = arena().lanes
        who.run(left[:size], arena(), done)
        left = left[size:]
    return [kept[record.spec_hash(job.spec)] for job in jobs]


def outline(plan: Plan, out: Path) -> list[str]:
    """What a run would do, a line for each method and budget."""
    kept, known, lines = records_in(out), contenders(), []
    for epsilon in plan.epsilons:
        for name in plan.methods:
            grid = tune.capped(known[name].grid, plan.rounds)
            trials = tune.trials(plan.base, name, grid, Budget(epsilon, plan.dp_delta))
            done = sum(record.spec_hash(job.spec) in kept for job in trials)
            lines.append(f"epsilon {epsilon:g}  {name}: {len(trials)} trials ({done} done), {plan.seeds} runs")
    return lines
