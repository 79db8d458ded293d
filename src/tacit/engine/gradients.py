"""Gradients of one agent for many runs: compiled over non-zeros, or dense through BLAS."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Protocol

import numpy as np

from tacit.admm.agent import Agent
from tacit.engine.layout import aligned, lane, width
from tacit.engine.records import Records, pack
from tacit.problem.sensitivity import Clipped, Declared, Observed
from tacit.problem.softmax import Softmax
from tacit.problem.squared import Squared
from tacit.types import Array, Norm, Shard

BLOCK = 1000  # records at a time through BLAS: residuals of all runs stay small

Lane = Sequence[Agent]  # one run: its agents


class Gradients(Protocol):
    """sum_i x_i a_i^T of agent p at a packed point, (J, width), and the bound of each run, (R,)."""

    name: str

    def __call__(self, p: int, point: Array) -> tuple[Array, Array]: ...


class Sparse:
    """Compiled: one pass over the non-zeros, softmax, bound, clipping and gradient in it."""

    def __init__(self, lanes: Sequence[Lane], n_classes: int, kernels: ModuleType) -> None:
        self.name = f"sparse ({kernels.use()})"
        self.kernels, self.runs, self.classes = kernels, len(lanes), n_classes
        self.scratch: dict[int, Array] = {}
        agents = lanes[0]
        self.squared = isinstance(agents[0].problem.loss, Squared)
        self.norm = next(iter(bound_norms(lanes)), Norm.L2)
        self.clip = np.array([_clip(run[0]) for run in lanes], np.float32)
        self.records = [pack(agent.shard, width(self.runs, n_classes)) for agent in agents]
        norms = {norm: [norm.of_rows(agent.shard.x) for agent in agents] for norm in {self.norm, *_norms(lanes)}}
        self.x_norm = [sizes.astype(np.float32) for sizes in norms[self.norm]]
        self.measured = np.array([isinstance(run[0].method.bound, Observed) for run in lanes])
        self.constant = np.array(
            [[constant(run[p], norms[run[p].method.bound.norm][p]) for run in lanes] for p in range(len(agents))]
        )

    def __call__(self, p: int, point: Array) -> tuple[Array, Array]:
        grad = self._buffer(point.shape)
        bound = sparse_sums(
            self.kernels, self.records[p], point, self.classes, self.squared, self.norm, self.x_norm[p], self.clip, grad
        )
        return grad, np.where(self.measured, bound, self.constant[p])

    def _buffer(self, shape: tuple[int, ...]) -> Array:
        """Room for one gradient, one a thread: it is used up before the thread turns to its next agent."""
        thread = threading.get_ident()
        if thread not in self.scratch:
            self.scratch[thread] = aligned(*shape)
        return self.scratch[thread]


class Dense:
    """NumPy in float32, a block of records at a time; any loss and any bound."""

    name = "dense (BLAS)"

    def __init__(self, lanes: Sequence[Lane], n_classes: int) -> None:
        self.lanes, self.classes = lanes, n_classes
        norms = _norms(lanes)
        self.x_norm = [{norm: norm.of_rows(agent.shard.x) for norm in norms} for agent in lanes[0]]

    def __call__(self, p: int, point: Array) -> tuple[Array, Array]:
        shard, bounds = self.lanes[0][p].shard, np.zeros(len(self.lanes))

        def answer(r: int, score: Array, rows: slice) -> Array:
            agent = self.lanes[r][p]
            bound, x_norm = agent.method.bound, self.x_norm[p][agent.method.bound.norm][rows]
            residual = agent.problem.loss.residual(score, shard.y[rows])
            bounds[r] = max(bounds[r], bound.bound(residual, x_norm))
            return bound.shrink(residual, x_norm)

        return dense_sums(shard, point, self.classes, len(self.lanes), answer), bounds


def sparse_sums(
    kernels: ModuleType, own: Records, point: Array, n_classes: int, squared: bool, norm: Norm, x_norm: Array,
    clip: Array, out: Array,
) -> Array:  # fmt: skip
    """sum_i x_i a_i^T of one agent into `out`, run r clipped to clip[r]; returns each run's largest |x_i a_i^T|."""
    bound = np.zeros(len(clip), np.float32)
    kernels.gradient(
        own.rows, own.columns, own.scale, own.block, own.label, x_norm, point, n_classes, len(clip), squared,
        1 if norm is Norm.L1 else 2, clip, out, bound,
    )  # fmt: skip
    return bound


def dense_sums(
    shard: Shard, point: Array, n_classes: int, n_runs: int, answer: Callable[[int, Array, slice], Array]
) -> Array:
    """The same through BLAS; answer(r, scores, rows) gives the a_i of run r for a block of records."""
    out = np.zeros_like(point)
    for start in range(0, len(shard), BLOCK):
        rows = slice(start, start + BLOCK)
        score = shard.x[rows] @ point
        for r in range(n_runs):
            own = lane(score, r, n_classes)
            own[...] = answer(r, own, rows)
        score[:, n_runs * n_classes :] = 0
        out += shard.x[rows].T @ score
    return out


def choose(lanes: Sequence[Lane], n_classes: int, kernels: ModuleType | None) -> Gradients:
    """Sparse where it is compiled, applies, and has few enough non-zeros to win; else dense."""
    if kernels is not None and _sparse_applies(lanes) and few_nonzeros([agent.shard for agent in lanes[0]]):
        return Sparse(lanes, n_classes, kernels)
    return Dense(lanes, n_classes)


def few_nonzeros(shards: Sequence[Shard]) -> bool:
    """Whether lists of non-zeros are the smaller form of the records."""
    nonzero = sum(int(np.count_nonzero(shard.x)) for shard in shards)
    return nonzero <= SPARSE_BELOW * max(1, sum(shard.x.size for shard in shards))


# of non-zeros. Sparse is faster up to 80 % or more, at any width (docs/performance.md), but beyond a third its lists
# by row and by column take more room than the records themselves
SPARSE_BELOW = 0.33


def bound_norms(lanes: Sequence[Lane]) -> set[Norm]:
    """The norms that the runs' bounds are measured in; declared ones are not measured."""
    return {run[0].method.bound.norm for run in lanes if not isinstance(run[0].method.bound, Declared)}


def _sparse_applies(lanes: Sequence[Lane]) -> bool:
    losses = {type(run[0].problem.loss) for run in lanes}
    bounds = {type(run[0].method.bound) for run in lanes}
    one_pass = len(losses) == 1 and len(bound_norms(lanes)) <= 1
    return one_pass and losses <= {Softmax, Squared} and bounds <= {Observed, Declared, Clipped}


def _norms(lanes: Sequence[Lane]) -> set[Norm]:
    return {run[0].method.bound.norm for run in lanes}


def _clip(agent: Agent) -> float:
    bound = agent.method.bound
    return bound.target if isinstance(bound, Clipped) else np.inf


def constant(agent: Agent, x_norm: Array) -> float:
    """A constant bound, after one check that the records keep it; zero where it is measured instead."""
    bound = agent.method.bound
    if isinstance(bound, Observed):
        return 0.0
    nothing = np.zeros((len(x_norm), 1))
    bound.shrink(nothing, x_norm)
    return bound.bound(nothing, x_norm)
