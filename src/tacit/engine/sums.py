"""sum_i x_i a_i^T of every agent for several questions in one pass, as the methods of tacit.methods ask for them.

The passes are those of tacit.engine.gradients. Sums are taken in float32 and given back in float64. One thread takes
the whole sum of an agent, so the number of threads never changes a result; the number of runs may change last digits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from tacit.engine import forms
from tacit.engine.gradients import clips, constant, dense_sums, few_nonzeros, sparse_sums
from tacit.engine.kernels import compiled, cores
from tacit.engine.layout import aligned, of_run, spread, width
from tacit.engine.nonzeros import pack
from tacit.problem.loss import Loss, Squared
from tacit.problem.sensitivity import Clipped, Declared, RecordBound
from tacit.types import Array, Norm, Shard


@dataclass(frozen=True, eq=False)
class Question:
    """What one run asks: sums at its points, (J, K) for all agents or (P, J, K), each record shrunk to the bound."""

    points: Array
    bound: RecordBound


class SharedSums:
    """The shards of one federation, packed once for any number of runs; `n_runs` is how many a pass mostly serves."""

    def __init__(
        self, shards: Sequence[Shard], loss: Loss, n_classes: int, n_runs: int, threads: int | None = None
    ) -> None:
        self.shards, self.loss, self.classes = tuple(shards), loss, n_classes
        self.x_norm = [{norm: norm.of_rows(shard.x) for norm in (Norm.L1, Norm.L2)} for shard in shards]
        self.kernels = compiled() if type(loss) in forms.LOSSES and few_nonzeros(shards) else None
        self.records = [pack(shard, width(n_runs, n_classes)) for shard in shards] if self.kernels else []
        self.pool = ThreadPoolExecutor(threads or cores())

    def serves(self, shards: Sequence[Shard], loss: Loss, bound: RecordBound) -> bool:
        """Whether a question over these shards can be put here; records kept in float64 ask for float64 sums."""
        known = type(bound) in forms.BOUNDS and bound.norm in self.x_norm[0]
        return known and shards is self.shards and loss == self.loss and self.shards[0].dtype is np.float32

    def __call__(self, questions: Sequence[Question]) -> list[Array]:
        """The answer to each question, (P, J, K)."""
        answers = [np.empty((len(self.shards), *question.points.shape[-2:])) for question in questions]
        for norm, members in _passes(questions):
            self._pass(norm, [questions[r] for r in members], [answers[r] for r in members])
        return answers

    def _pass(self, norm: Norm, questions: Sequence[Question], answers: Sequence[Array]) -> None:
        """One pass over all records, into the answers."""
        for bound in (question.bound for question in questions if isinstance(question.bound, Declared)):
            for x_norm in self.x_norm:
                constant(bound, x_norm)  # refuses records beyond the norm that is declared, which no loop looks at
        packed = (questions[0].points.shape[-2], width(len(questions), self.classes))
        common = all(question.points.ndim == 2 for question in questions)
        shared = spread([question.points for question in questions], aligned(*packed)) if common else None
        sums = self._sparse if self.records else self._dense

        def work(p: int) -> None:
            points = [q.points if q.points.ndim == 2 else q.points[p] for q in questions]
            out = sums(p, norm, questions, spread(points, aligned(*packed)) if shared is None else shared)
            for r, answer in enumerate(answers):
                answer[p] = of_run(out, r, self.classes)

        list(self.pool.map(work, range(len(self.shards))))

    def _sparse(self, p: int, norm: Norm, questions: Sequence[Question], point: Array) -> Array:
        assert self.kernels is not None
        clip = clips([question.bound for question in questions])
        out, x_norm = aligned(*point.shape), self.x_norm[p][norm].astype(np.float32)
        squared = isinstance(self.loss, Squared)
        sparse_sums(self.kernels, self.records[p], point, self.classes, squared, norm, x_norm, clip, out)
        return out

    def _dense(self, p: int, _norm: Norm, questions: Sequence[Question], point: Array) -> Array:
        asked = [(self.loss, question.bound) for question in questions]
        return dense_sums(self.shards[p], self.x_norm[p], point, self.classes, asked)[0]


def _passes(questions: Sequence[Question]) -> Iterator[tuple[Norm, list[int]]]:
    """Which questions share a pass: it clips in one norm, and what is not clipped goes with the first."""
    norms = sorted({q.bound.norm for q in questions if isinstance(q.bound, Clipped)}, key=lambda norm: norm.value)
    first, *others = norms or [Norm.L2]
    apart = {r: q.bound.norm for r, q in enumerate(questions) if isinstance(q.bound, Clipped)}
    for norm in (first, *others):
        yield norm, [r for r in range(len(questions)) if apart.get(r, first) is norm]
