"""Run a plan: tune each method, run the best choice from every seed, and never run the same job twice.

The tuning rule: each method has the same number of choices, which are judged on records that no run tests on.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path

from tacit import record
from tacit.compare.job import Job, Outcome, completed, record_of
from tacit.compare.plan import Plan
from tacit.errors import DataError, Diverged, InputError, Interrupted, NotPrivateWarning
from tacit.jsontext import Values
from tacit.leaderboard.standing import Standing
from tacit.leaderboard.table import TUNING_SEED
from tacit.measures import AUC, ERROR, judge
from tacit.methods.method import Budget, Choice, Entry
from tacit.methods.promise import Promise, Trusted, Unit
from tacit.methods.registry import METHODS
from tacit.privacy.summed import InSum
from tacit.record import RecordFile
from tacit.run import build, guarantee, ranks, sweep, train
from tacit.run.directory import check_writable
from tacit.run.hosted import is_curated
from tacit.run.in_sum import check_agents
from tacit.run.result import Result
from tacit.run.run import Run
from tacit.run.setup import Setup
from tacit.run.spec import Spec
from tacit.run.train import GracefulInterrupt
from tacit.types import Federation

Hear = Callable[[Values], None]  # called with each new record
Settle = Callable[[Sequence[Job]], list[Values]]  # jobs -> their records

HELD_OUT = 6  # one in six of each agent's records tunes
NOTHING = Promise(Unit.RECORD, Trusted.NOBODY, caveats=("it did not run.",))


def records_in(out: Path) -> RecordFile:
    """The records of a comparison by the hash of their specs; the first one that is added makes the file."""
    check_writable(out, "give --out a new directory, or that of a comparison")
    return RecordFile(out / "records.jsonl", accept=completed)


def run(plan: Plan, out: Path, hear: Hear = lambda _record: None) -> list[Standing]:
    """The standing of every method at every budget. Records that are in `out` already are read, and not made again."""
    splits = Splits(plan.base)
    if plan.trust == "sum":
        check_agents(InSum(), splits["trial"].n_agents)  # once, and before anything is written
    settle = partial(_settle, records_in(out), splits, hear)
    try:
        return [_standing(plan, who, budget, settle) for who, budget in _contestants(plan)]
    except Interrupted as stop:
        raise Interrupted(f"{stop}; run the same comparison again to go on") from None


def outline(plan: Plan, out: Path) -> list[str]:
    """What a run would do, a line for each method and budget."""
    kept, lines = records_in(out), []
    for who, budget in _contestants(plan):
        trials = _trials(plan, who, budget)
        done = sum(record.spec_hash(job.spec) in kept for job in trials)
        lines.append(f"epsilon {budget.epsilon:g}  {who.name}: {len(trials)} trials ({done} done), {plan.seeds} runs")
    return lines


def _contestants(plan: Plan) -> Iterator[tuple[Entry, Budget]]:
    for epsilon in plan.epsilons:
        for name in plan.methods:
            yield METHODS[name], Budget(epsilon, plan.dp_delta)


def _trials(plan: Plan, who: Entry, budget: Budget) -> list[Job]:
    grid = capped(who.grid, plan.rounds)
    return [Job(plan.base, who.name, choice, budget, TUNING_SEED, "trial", plan.trust) for choice in grid]


def _standing(plan: Plan, who: Entry, budget: Budget, settle: Settle) -> Standing:
    trials = _trials(plan, who, budget)
    tried = settle(trials)
    chosen = best(tried)
    runs = [] if chosen is None else [replace(trials[chosen], seed=seed, role="run") for seed in range(plan.seeds)]
    return Standing(who.name, budget.epsilon, budget.dp_delta, tuple(tried), tuple(settle(runs)))


def _settle(kept: RecordFile, splits: Splits, hear: Hear, jobs: Sequence[Job]) -> list[Values]:
    """The record of each job of one role; jobs that have none yet are run."""
    left = [job for key, job in {record.spec_hash(job.spec): job for job in jobs}.items() if key not in kept]
    for job, outcome in run_jobs(left, _records_for(left[0], splits)) if left else ():
        one = record_of(job, outcome)
        kept.add([one])
        hear(one)
    return [kept[record.spec_hash(job.spec)] for job in jobs]


def _records_for(job: Job, splits: Splits) -> Federation:
    """The records that the jobs of one method and one role run on: a curator has them all in one place."""
    federation = splits[job.role]
    if not ranks.is_spread(federation):
        return federation
    with suppress(InputError):  # which `run_jobs` notes
        if is_curated(build.setup(job.run_spec, federation)):
            return splits.in_one_place[job.role]
    return federation


def run_jobs(jobs: Sequence[Job], federation: Federation) -> Iterator[tuple[Job, Outcome]]:
    """The outcome of each job as the job ends. Jobs are of one method, and as many run at once as one pass serves."""
    lanes: list[tuple[tuple[Job, Outcome], Run]] = []
    for job in jobs:
        try:
            spec = job.run_spec
            setup = build.setup(spec, federation)
        except InputError as error:
            yield job, Outcome(0, NOTHING, failed=str(error))
        else:
            lanes.append(((job, Outcome(spec.run.rounds, promise_of(spec, setup))), Run(spec, federation, setup)))
    stop = GracefulInterrupt()
    for batch in sweep.in_lockstep(lanes):
        for (job, begun), found in train.settled(batch, partial(_quietly, stop)):
            if isinstance(found, Diverged):
                yield job, replace(begun, failed=str(found))
            else:
                seconds, sent = found.summary["seconds"], found.summary["sent_bytes"]
                measure = judge(found.summary) or ERROR
                told = {"auc": found.summary.get(AUC.key), "features": found.summary["features"]}
                yield job, replace(begun, error=found.judged, measure=measure, seconds=seconds, sent=sent, **told)
        if stop.asked:  # in the last round: these runs are done, and no others begin
            raise Interrupted("stopped")


def promise_of(spec: Spec, setup: Setup) -> Promise:
    """What a run promises, with all reasons against it."""
    return replace(setup.promise, caveats=tuple(guarantee.reasons(spec, setup)))


def _quietly(stop: GracefulInterrupt, runs: Sequence[Run]) -> list[Result]:
    """Run together. The table says which runs are not private, so no warning does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        return train.together(runs, stop=stop)

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
