"""sum_i x_i a_i^T of one agent for all runs of a batch: compiled over non-zeros, or dense through BLAS.

The fast engine asks `choose` once for a Gradients, and calls it for every agent in every round. `sparse_sums` and
`dense_sums` are the two passes over an agent's records; tacit.engine.sums uses both as well.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from types import ModuleType
from typing import Protocol

import numpy as np

from tacit.engine import forms
from tacit.engine.layout import aligned, of_run, width
from tacit.engine.nonzeros import NonZeros, pack
from tacit.engine.registry import Agents
from tacit.problem.loss import Loss, Squared
from tacit.problem.sensitivity import Clipped, Declared, Observed, RecordBound
from tacit.types import Array, Norm, Shard

BLOCK = 1000  # records at a time through BLAS: residuals of all runs stay small

# of non-zeros. Sparse is faster up to 80 % or more, at any width (docs/performance.md), but beyond a third its lists
# by row and by column take more room than the records themselves
SPARSE_BELOW = 0.33

RowNorms = dict[Norm, Array]  # |x_i| of one agent's records


class Gradients(Protocol):
    """sum_i x_i a_i^T of agent p at a packed point, (J, width), and the bound of each run, (R,)."""

    name: str

    def __call__(self, p: int, point: Array) -> tuple[Array, Array]: ...


def choose(runs: Sequence[Agents], n_classes: int, kernels: ModuleType | None) -> Gradients:
    """Sparse where it is compiled, applies, and has few enough non-zeros to win; else dense."""
    one_pass = len({type(run[0].problem.loss) for run in runs}) == 1 and len(bound_norms(runs)) <= 1
    applies = one_pass and all(forms.all_known(forms.of_gradient(run[0])) for run in runs)
    if kernels is not None and applies and few_nonzeros([agent.shard for agent in runs[0]]):
        return Sparse(runs, n_classes, kernels)
    return Dense(runs, n_classes)


class Sparse:
    """Compiled: one pass over the non-zeros, softmax, bound, clipping and gradient in it."""

    def __init__(self, runs: Sequence[Agents], n_classes: int, kernels: ModuleType) -> None:
        self.name = f"sparse ({kernels.use()})"
        self.kernels, self.classes = kernels, n_classes
        self.scratch: dict[int, Array] = {}
        first, bounds = runs[0][0], [run[0].variant.bound for run in runs]
        self.squared = isinstance(first.problem.loss, Squared)
        self.norm = next(iter(bound_norms(runs)), first.variant.bound.norm)
        self.clip = clips(bounds)
        self.records = [pack(agent.shard, width(len(runs), n_classes)) for agent in runs[0]]
        x_norm = row_norms(runs)
        self.x_norm = [own[self.norm].astype(np.float32) for own in x_norm]
        self.measured = np.array([isinstance(bound, Observed) for bound in bounds])
        self.constant = np.array(
            [[constant(run[p].variant.bound, own) for run in runs] for p, own in enumerate(x_norm)]
        )

    def __call__(self, p: int, point: Array) -> tuple[Array, Array]:
        grad = self._buffer(point.shape)
        bound = sparse_sums(
            self.kernels, self.records[p], point, self.classes, self.squared, self.norm, self.x_norm[p], self.clip, grad
        )
        return grad, np.where(self.measured, bound, self.constant[p])

    def _buffer(self, shape: tuple[int, ...]) -> Array:
        """Room for one gradient, one a thread: a gradient is used up before the thread turns to its next agent."""
        thread = threading.get_ident()
        if thread not in self.scratch:
            self.scratch[thread] = aligned(*shape)
        return self.scratch[thread]


class Dense:
    """NumPy in float32, a block of records at a time; any loss and any bound."""

    name = "dense (BLAS)"

    def __init__(self, runs: Sequence[Agents], n_classes: int) -> None:
        self.runs, self.classes = runs, n_classes
        self.x_norm = row_norms(runs)

    def __call__(self, p: int, point: Array) -> tuple[Array, Array]:
        asked = [(run[p].problem.loss, run[p].variant.bound) for run in self.runs]
        return dense_sums(self.runs[0][p].shard, self.x_norm[p], point, self.classes, asked)


def sparse_sums(
    kernels: ModuleType, own: NonZeros, point: Array, n_classes: int, squared: bool, norm: Norm, x_norm: Array,
    clip: Array, out: Array,
) -> Array:  # fmt: skip
    """Writes sum_i x_i a_i^T of one agent to `out`, run r clipped to clip[r]; gives each run's largest |x_i a_i^T|."""
    bound = np.zeros(len(clip), np.float32)
    kernels.gradient(
        own.rows, own.columns, own.scale, own.block, own.label, x_norm, point, n_classes, len(clip), squared,
        1 if norm is Norm.L1 else 2, clip, out, bound,
    )  # fmt: skip
    return bound


def dense_sums(
    shard: Shard, x_norm: RowNorms, point: Array, n_classes: int, asked: Sequence[tuple[Loss, RecordBound]]
) -> tuple[Array, Array]:
    """sum_i x_i a_i^T of one agent through BLAS, with the loss and the bound of each run; and each run's bound."""
    out, largest = np.zeros_like(point), np.zeros(len(asked))
    for start in range(0, len(shard), BLOCK):
        rows = slice(start, start + BLOCK)
        score = shard.x[rows] @ point
        for r, (loss, bound) in enumerate(asked):
            own, size = of_run(score, r, n_classes), x_norm[bound.norm][rows]
            residual = loss.residual(own, shard.y[rows])
            largest[r] = max(largest[r], bound.bound(residual, size))
            own[...] = bound.shrink(residual, size)
        score[:, len(asked) * n_classes :] = 0
        out += shard.x[rows].T @ score
    return out, largest


def few_nonzeros(shards: Sequence[Shard]) -> bool:
    """Whether lists of non-zeros are the smaller form of the records."""
    nonzero = sum(int(np.count_nonzero(shard.x)) for shard in shards)
    return nonzero <= SPARSE_BELOW * max(1, sum(shard.x.size for shard in shards))


def bound_norms(runs: Sequence[Agents]) -> set[Norm]:
    """The norms that the runs' bounds are measured in; declared ones are not measured."""
    return {run[0].variant.bound.norm for run in runs if not isinstance(run[0].variant.bound, Declared)}


def row_norms(runs: Sequence[Agents]) -> list[RowNorms]:
    """|x_i| of every agent's records, in every norm that a bound of these runs is in."""
    norms = {run[0].variant.bound.norm for run in runs}
    return [{norm: norm.of_rows(agent.shard.x) for norm in norms} for agent in runs[0]]


def clips(bounds: Sequence[RecordBound]) -> Array:
    """What the compiled pass clips each run to; inf where a run does not clip."""
    return np.array([bound.target if isinstance(bound, Clipped) else np.inf for bound in bounds], np.float32)


def constant(bound: RecordBound, x_norm: RowNorms) -> float:
    """A constant bound, after one check that the records keep it; zero where it is measured instead."""
    if isinstance(bound, Observed):
        return 0.0
    size = x_norm[bound.norm]
    nothing = np.zeros((len(size), 1))
    bound.shrink(nothing, size)
    return bound.bound(nothing, size)
