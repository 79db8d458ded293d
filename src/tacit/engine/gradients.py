"""Gradients of one agent for many runs: compiled over non-zeros, or dense through BLAS."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from types import ModuleType
from typing import Protocol

import numpy as np

from tacit.admm.agent import Agent
from tacit.engine.layout import aligned, lane, width
from tacit.engine.records import pack
from tacit.problem.sensitivity import Clipped, Declared, Observed
from tacit.problem.softmax import Softmax
from tacit.problem.squared import Squared
from tacit.types import Array, Norm

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
        own, grad, bound = self.records[p], self._buffer(point.shape), np.zeros(self.runs, np.float32)
        self.kernels.gradient(
            own.rows, own.columns, own.scale, own.block, own.label, self.x_norm[p], point, self.classes, self.runs,
            self.squared, 1 if self.norm is Norm.L1 else 2, self.clip, grad, bound,
        )  # fmt: skip
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
        shard, grad, bounds = self.lanes[0][p].shard, np.zeros_like(point), np.zeros(len(self.lanes))
        for start in range(0, len(shard), BLOCK):
            x, y = shard.x[start : start + BLOCK], shard.y[start : start + BLOCK]
            score = x @ point
            for r, run in enumerate(self.lanes):
                own, bound = lane(score, r, self.classes), run[p].method.bound
                x_norm = self.x_norm[p][bound.norm][start : start + BLOCK]
                residual = run[p].problem.loss.residual(own, y)
                bounds[r] = max(bounds[r], bound.bound(residual, x_norm))
                own[...] = bound.shrink(residual, x_norm)
            score[:, len(self.lanes) * self.classes :] = 0
            grad += x.T @ score
        return grad, bounds


def choose(lanes: Sequence[Lane], n_classes: int, kernels: ModuleType | None) -> Gradients:
    """Sparse where it is compiled, applies, and has few enough non-zeros to win; else dense."""
    shards = [agent.shard for agent in lanes[0]]
    nonzero = sum(int(np.count_nonzero(shard.x)) for shard in shards)
    density = nonzero / max(1, sum(shard.x.size for shard in shards))
    if kernels is not None and _sparse_applies(lanes) and density <= SPARSE_BELOW:
        return Sparse(lanes, n_classes, kernels)
    return Dense(lanes, n_classes)


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
