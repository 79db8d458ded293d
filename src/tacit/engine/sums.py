"""Sums of several runs in one pass over the records: runs of tacit.methods meet here, each with a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from tacit.engine.kernels import SUPPORTED_BOUNDS, SUPPORTED_LOSSES, aligned, of_run, spread, width
from tacit.engine.passes import LossesAndBounds, choose, constant, cut, in_pieces, row_norms
from tacit.machine import cores
from tacit.problem.loss import Loss
from tacit.problem.sensitivity import Clipped, Declared, RecordBound
from tacit.types import Array, Norm, Shard


@dataclass(frozen=True, eq=False)
class SumsAsked:
    """What one run asks: sums at its points, (J, K) for all agents or (P, J, K), each record shrunk to the bound."""

    points: Array
    bound: RecordBound


class SharedSums:
    """The shards of one federation, packed once for any number of runs; `n_runs` is how many a pass mostly serves.

    Sums are taken in float32 and given back in float64. Pieces of an agent's records are added in their order, so the
    number of threads never changes a result; the number of runs may change last digits. `counts` is of the records of
    all agents where some are in other processes.
    """

    def __init__(
        self, shards: Sequence[Shard], loss: Loss, n_classes: int, n_runs: int, counts: Array | None = None
    ) -> None:
        self.shards, self.loss, self.classes = tuple(shards), loss, n_classes
        self.x_norm = row_norms(shards, (Norm.L1, Norm.L2))
        self.sums = choose(self.shards, self.x_norm, n_classes, n_runs, type(loss) in SUPPORTED_LOSSES, counts)
        self.pool = ThreadPoolExecutor(cores())

    def serves(self, shards: Sequence[Shard], loss: Loss, bound: RecordBound) -> bool:
        """Whether a question over these shards can be put here; records kept in float64 ask for float64 sums."""
        known = type(bound) in SUPPORTED_BOUNDS and bound.norm in self.x_norm[0]
        return known and shards is self.shards and loss == self.loss and self.shards[0].dtype is np.float32

    def __call__(self, questions: Sequence[SumsAsked]) -> list[Array]:
        """The answer to each question, (P, J, K). A pass clips in one norm; what does not clip goes with the first."""
        answers = [np.empty((len(self.shards), *question.points.shape[-2:])) for question in questions]
        clipped = {r: q.bound.norm for r, q in enumerate(questions) if isinstance(q.bound, Clipped)}
        first, *others = sorted(set(clipped.values()), key=lambda norm: norm.value) or [Norm.L2]
        for norm in (first, *others):
            members = [r for r in range(len(questions)) if clipped.get(r, first) is norm]
            self._pass([questions[r] for r in members], [answers[r] for r in members])
        return answers

    def _pass(self, questions: Sequence[SumsAsked], answers: Sequence[Array]) -> None:
        """One pass over all records, into the answers."""
        asked = LossesAndBounds([self.loss] * len(questions), [question.bound for question in questions])
        for bound, x_norm in product((bound for bound in asked.bounds if isinstance(bound, Declared)), self.x_norm):
            constant(bound, x_norm)  # refuses records beyond the norm that is declared, which no loop looks at
        packed = (questions[0].points.shape[-2], width(len(questions), self.classes))
        common = all(question.points.ndim == 2 for question in questions)
        shared = spread([question.points for question in questions], aligned(*packed)) if common else None

        agents = range(len(self.shards))

        def point(p: int) -> Array:
            points = [q.points if q.points.ndim == 2 else q.points[p] for q in questions]
            return spread(points, aligned(*packed)) if shared is None else shared

        def keep(p: int, out: Array) -> None:
            for r, answer in enumerate(answers):
                answer[p] = of_run(out, r, self.classes)

        sums = self.sums
        if cut(sums, len(agents), cores(), point(0)):
            points = [point(p) for p in agents]
            for p, own in enumerate(in_pieces(sums, points, [asked] * len(agents), self._share_out)):
                keep(p, own.sums)
        else:
            self._share_out(lambda p: keep(p, sums(p, point(p), asked)[0]), agents)

    def _share_out(self, work: Callable[[int], Any], tasks: Sequence[int]) -> list[Any]:
        return list(self.pool.map(work, tasks))


class Rendezvous:
    """Where runs meet; `answer` takes the questions of the runs that have not left, in order.

    A question waits until every run that has not left has asked one. The thread of the last run then answers all
    questions, in the order of the runs. So the n-th pass serves the n-th question of every run that asks so many,
    whatever the scheduler does. Nobody waits for ever: while a run waits, another run computes, and that run will ask
    or leave.
    """

    def __init__(self, answer: Callable[[Sequence[SumsAsked]], Sequence[Array]], n_runs: int) -> None:
        self.answer = answer
        self.here = set(range(n_runs))
        self.asked: dict[int, SumsAsked] = {}
        self.answered: dict[int, Array | Exception] = {}
        self.turn = threading.Condition()

    def ask(self, run: int, question: SumsAsked) -> Array:
        """Returns the answer to this run's question, or raises the error that answering met."""
        with self.turn:
            self.asked[run] = question
            self._answer_if_all_asked()
            self.turn.wait_for(lambda: run in self.answered)
            found = self.answered.pop(run)
        if isinstance(found, Exception):
            raise found
        return found

    def leave(self, run: int) -> None:
        """Tell that this run asks no more, so that the others do not wait for it."""
        with self.turn:
            self.here.discard(run)
            self._answer_if_all_asked()

    def _answer_if_all_asked(self) -> None:
        if not self.asked or self.asked.keys() != self.here:
            return
        runs = sorted(self.asked)
        try:
            found: Sequence[Array | Exception] = self.answer([self.asked[run] for run in runs])
        except Exception as error:
            found = [error] * len(runs)
        self.asked.clear()
        self.answered.update(zip(runs, found, strict=True))
        self.turn.notify_all()
