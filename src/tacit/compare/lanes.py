"""Runs of one method of tacit.methods side by side: a thread each, and one pass over the records for all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from time import perf_counter

import numpy as np

from tacit.compare.job import Outcome
from tacit.engine.rendezvous import Rendezvous
from tacit.engine.sums import Question, SharedSums
from tacit.errors import Interrupted, TacitError
from tacit.methods.method import Method
from tacit.methods.task import Sums, Task, plain_sums
from tacit.problem.objective import Problem
from tacit.problem.sensitivity import RecordBound
from tacit.run.interrupt import Patience
from tacit.run.metrics import error_rate
from tacit.types import Array, Shard

Meeting = Rendezvous[Question, Array]


def side_by_side(
    runs: Sequence[tuple[Method, Task]], sums: Callable[[], SharedSums], judge: Shard,
    done: Callable[[int, Outcome], None],
) -> None:  # fmt: skip
    """Each run to its end; done(r, outcome) as each gets there. An interruption waits for the end of a round."""
    shared = sums()  # packed before the clock starts
    meeting: Meeting = Rendezvous(shared, len(runs))
    with Patience() as stop, ThreadPoolExecutor(len(runs)) as pool:
        try:
            lanes = {
                pool.submit(_run, method, replace(task, sums=_asking(meeting, r, shared)), judge, meeting, r, stop): r
                for r, (method, task) in enumerate(runs)
            }
            for lane in as_completed(lanes):
                done(lanes[lane], lane.result())
            if stop.asked:  # in the last round: these runs are done, and no others begin
                raise Interrupted("stopped")
        except BaseException:
            stop.asked = True  # the other runs end with their round
            raise


def _run(method: Method, task: Task, judge: Shard, meeting: Meeting, r: int, stop: Patience) -> Outcome:
    try:
        return _rounds(method, task, judge, lambda: len(meeting.here), stop)
    finally:
        meeting.leave(r)


def _rounds(method: Method, task: Task, judge: Shard, sharing: Callable[[], int], stop: Patience) -> Outcome:
    """The lanes share the machine, so a round counts its time divided by how many there are."""
    fate = Outcome(method.rounds, method.promise(task))
    tick, state = perf_counter(), method.init(task)
    for t in range(1, method.rounds + 1):
        if stop.asked:
            raise Interrupted(f"stopped in round {t} of {method.rounds}")
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is looked for
                state, info = method.run_round(task, state)
        except TacitError as error:  # a local solve that does not end, a record that is refused
            return replace(fate, failed=f"round {t}: {error}")
        now = perf_counter()
        fate = replace(fate, seconds=fate.seconds + (now - tick) / sharing(), sent=fate.sent + info.sent)
        tick = now
        if not np.isfinite(state.w).all():
            return replace(fate, failed=f"diverged in round {t}: w is not finite.")
    return replace(fate, error=error_rate(state.w, judge))


def _asking(meeting: Meeting, r: int, shared: SharedSums) -> Sums:
    """Sums for run r: at the meeting where they can be shared, else by itself."""

    def sums(shards: Sequence[Shard], problem: Problem, points: Array, bound: RecordBound) -> Array:
        if not shared.serves(shards, problem.loss, bound):
            return plain_sums(shards, problem, points, bound)
        return meeting.ask(r, Question(points, bound))

    return sums
