"""Run a plan: tune each method, run the best choice from every seed, and never run the same job twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tacit import record
from tacit.compare import tune
from tacit.compare.job import Job, Outcome, completed, content
from tacit.compare.job import run as run_jobs
from tacit.compare.plan import Plan
from tacit.compare.split import Splits
from tacit.errors import Interrupted
from tacit.jsontext import Values
from tacit.methods.method import AnyEntry, Budget
from tacit.methods.registry import METHODS
from tacit.record import RecordFile
from tacit.run.directory import check_writable

Hear = Callable[[Values], None]


@dataclass(frozen=True)
class Standing:
    """One method at one budget: its trials, and its runs with the choice that they led to."""

    method: str
    budget: Budget
    trials: tuple[Values, ...]
    runs: tuple[Values, ...]


def records_in(out: Path) -> RecordFile:
    """The records of a comparison by the hash of their specs; the first one that is added makes the file."""
    check_writable(out, "give --out a new directory, or that of a comparison")
    return RecordFile(out / "records.jsonl", accept=completed)


def run(plan: Plan, out: Path, hear: Hear = lambda _record: None) -> list[Standing]:
    """Every method at every budget; records that are in `out` already are read."""
    kept, splits = records_in(out), Splits(plan.base)
    try:
        return [
            _standing(plan, METHODS[name], Budget(epsilon, plan.dp_delta), kept, splits, hear)
            for epsilon in plan.epsilons
            for name in plan.methods
        ]
    except Interrupted as stop:
        raise Interrupted(f"{stop}; run the same comparison again to go on") from None


def _standing(plan: Plan, who: AnyEntry, budget: Budget, kept: RecordFile, splits: Splits, hear: Hear) -> Standing:
    grid = tune.capped(who.grid, plan.rounds)
    trials = tune.trials(plan.base, who.name, grid, budget)
    tried = _settle(trials, kept, splits, hear)
    chosen = tune.best(tried)
    if chosen is None:
        return Standing(who.name, budget, tuple(tried), ())
    jobs = tune.runs(plan.base, who.name, grid[chosen], budget, plan.seeds)
    return Standing(who.name, budget, tuple(tried), tuple(_settle(jobs, kept, splits, hear)))


def _settle(jobs: Sequence[Job], kept: RecordFile, splits: Splits, hear: Hear) -> list[Values]:
    """The record of each job of one role; those that have none yet are run."""
    named = {record.spec_hash(job.spec): job for job in jobs}
    left = [job for key, job in named.items() if key not in kept]

    def done(job: Job, outcome: Outcome) -> None:
        one = record.sealed(content(job, outcome))
        kept.add([one])
        hear(one)

    if left:
        run_jobs(left, splits[jobs[0].role], done)
    return [kept[record.spec_hash(job.spec)] for job in jobs]


def outline(plan: Plan, out: Path) -> list[str]:
    """What a run would do, a line for each method and budget."""
    kept, lines = records_in(out), []
    for epsilon in plan.epsilons:
        for name in plan.methods:
            grid = tune.capped(METHODS[name].grid, plan.rounds)
            trials = tune.trials(plan.base, name, grid, Budget(epsilon, plan.dp_delta))
            done = sum(record.spec_hash(job.spec) in kept for job in trials)
            lines.append(f"epsilon {epsilon:g}  {name}: {len(trials)} trials ({done} done), {plan.seeds} runs")
    return lines
