"""What every method works on: public facts, agents' records, and gradients of these with noise or without."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np

from tacit.admm.agent import ROUNDING
from tacit.message import Body
from tacit.privacy import noise
from tacit.problem.objective import Problem
from tacit.problem.sensitivity import Adjacency, Clipped, RecordBound
from tacit.query.gradient import Gradient
from tacit.query.query import AgentQuery, Query
from tacit.query.records import InMemory
from tacit.schedule import LARGEST_STEP, Cooling, cooled_step
from tacit.types import Array, Norm, Shard

# (shards, problem, points (J, K) or (P, J, K), bound) -> sum_i x_i a_i^T of every agent, (P, J, K), each record shrunk
# to the bound. An engine may offer a faster one
Sums = Callable[[Sequence[Shard], Problem, Array, RecordBound], Array]
# (key, t, step, shape) -> standard Gaussian noise, as privacy.noise draws it
Normals = Callable[[tuple[int, int], int, int, tuple[int, ...]], Array]

SAMPLING = 2**32  # no method takes so many local steps: from here on streams are for sampling
SLACK = 1 - 1e-6  # the coins are float32: with it none falls more often than the rate that is accounted


def plain_sums(shards: Sequence[Shard], problem: Problem, points: Array, bound: RecordBound) -> Array:
    """The sums of every agent, one agent after another, in NumPy."""
    each = np.broadcast_to(points, (len(shards), *points.shape[-2:]))
    return np.stack([record_sum(shard, problem, u, bound) for shard, u in zip(shards, each, strict=True)])


def record_sum(
    shard: Shard, problem: Problem, u: Array, bound: RecordBound, rows: Array | slice = slice(None)
) -> Array:
    """sum_i x_i a_i^T over the records of one shard, or over some rows of it."""
    x = shard.x[rows].astype(np.float64, copy=False)  # once: each product with u would do it again
    residual = problem.loss.residual(x @ u, shard.y[rows])
    return np.asarray(x.T @ bound.shrink(residual, bound.norm.of_rows(x)))


@dataclass(frozen=True, eq=False)
class Facts:
    """What is public about a federation: all that the server's half of a method may know of it."""

    sizes: tuple[int, ...]  # I_p of every agent
    problem: Problem  # weight = 1 / I
    shape: tuple[int, int]
    row_norm: float  # |x_i|_2 <= row_norm for every record there can be
    seed: int = 0  # names the streams of noise and of sampling
    normals: Normals = noise.gaussian
    largest_step: float = LARGEST_STEP  # of gradient descent on the objective

    @property
    def n_agents(self) -> int:
        """P, the number of agents."""
        return len(self.sizes)

    @property
    def n_records(self) -> int:
        """I, the number of records of all agents."""
        return sum(self.sizes)

    @property
    def gradient_bound(self) -> float:
        """|x a^T|_2 <= row_norm sup|a| of any record."""
        return self.row_norm * self.problem.loss.residual_bound(Norm.L2)

    @cached_property
    def rounding(self) -> float:
        """1 + what float32 sums may add to a sensitivity: a record lives at one agent, and moves its sum alone."""
        return 1 + ROUNDING * max(self.sizes)

    def sensitivity(self, query: Query, adjacency: Adjacency) -> float:
        """How far one record moves a value of a query in l2, as `Task.values` computes it."""
        least = query.bound(Norm.L2, adjacency)
        if isinstance(query, Gradient):  # summed by the engine of a simulation
            return least * self.rounding
        return least * query.evaluator.allowance(query, max(self.sizes))

    def gaussian(self, agent: int, t: int, step: int = 0) -> Array:
        """Standard Gaussian noise from an agent's stream; agent P is the server or the curator."""
        return self.normals((self.seed, agent), t, step, self.shape).astype(np.float64)

    def radial(self, agent: int, t: int, step: int = 0) -> Array:
        """Noise of density proportional to exp(-|b|_2), from the same stream as `gaussian`."""
        return noise.radial((self.seed, agent), t, step, self.shape).astype(np.float64)

    def uniform(self, agent: int, t: int, n: int, step: int = 0) -> Array:
        """n numbers in (0, 1] for sampling, from streams that no noise uses."""
        return noise.unit(noise.integers((self.seed, agent), t, SAMPLING + step, n), 32)


@dataclass(frozen=True, eq=False, kw_only=True)
class Task(Facts):
    """The records of the agents that are here: of all agents in a simulation, of one agent where it is deployed.

    Arrays that agents keep or send have a leading axis, with a row for each agent of `index`.
    """

    shards: tuple[Shard, ...]
    index: tuple[int, ...]  # which agents these are
    sums: Sums = plain_sums

    @classmethod
    def whole(
        cls, shards: tuple[Shard, ...], problem: Problem, shape: tuple[int, int], row_norm: float, seed: int = 0
    ) -> Task:
        """The task of a federation whose agents are all here."""
        sizes = tuple(map(len, shards))
        return cls(sizes, problem, shape, row_norm, seed, shards=shards, index=tuple(range(len(shards))))

    @property
    def facts(self) -> Facts:
        """What is public of the federation, without any record."""
        return Facts(*(getattr(self, known.name) for known in fields(Facts)))

    def alone(self, p: int) -> Task:
        """The task of agent p by itself."""
        return replace(self, shards=(self.shards[self.index.index(p)],), index=(p,))

    @property
    def zeros(self) -> Array:
        """One model for each agent here, all zero: (P, J, K)."""
        return np.zeros((len(self.index), *self.shape))

    def asked(self, to: Array | None) -> Array:
        """Which rows belong to agents that a Broadcast with this `to` asks; None asks all."""
        return np.arange(len(self.index)) if to is None else np.flatnonzero(np.isin(self.index, to))

    @property
    def own_sizes(self) -> Array:
        """I_p of the agents here: (P, 1, 1)."""
        return np.array([float(self.sizes[p]) for p in self.index])[:, None, None]

    def gradients(self, points: Array, bound: RecordBound) -> Array:
        """f'_p at points[p], or at one point for all: (P, J, K)."""
        slope = self.data_gradients(points, bound)  # in place: with many agents it is large
        slope += self.problem.regularization * self.problem.regularizer.gradient(points)
        return slope

    def data_gradients(self, points: Array, bound: RecordBound) -> Array:
        """f'_p without the slope of the regulariser."""
        slope = self.sums(self.shards, self.problem, points, bound)
        slope *= self.problem.weight
        return slope

    def values(self, query: Query, each: Sequence[Body]) -> Array:
        """The values of a query over the records of every agent here, with the parameters of each: (P, size)."""
        if isinstance(query, Gradient):
            points = [own["point"] for own in each]
            shared = all(point is points[0] for point in points)
            at = points[0] if shared else np.stack(points)
            found = self.sums(self.shards, self.problem, at, query.record_bound)
            found *= query.weight
            return found.reshape(len(each), -1)
        asked = [AgentQuery(query, InMemory.of(shard), query.evaluator) for shard in self.shards]
        return np.stack([one.value(own) for one, own in zip(asked, each, strict=True)])

    def agents_gaussian(self, t: int, step: int = 0) -> Array:
        """Standard noise of every agent here, (P, J, K)."""
        xi = np.empty((len(self.index), *self.shape))
        for row, p in zip(xi, self.index, strict=True):
            row[...] = self.normals((self.seed, p), t, step, self.shape)
        return xi


def poisson(facts: Facts, agent: int, t: int, n: int, rate: float, step: int = 0) -> Array:
    """Which of n are in a Poisson sample: each by a coin of its own that falls with probability `rate`."""
    return np.arange(n) if rate == 1 else np.flatnonzero(facts.uniform(agent, t, n, step) < rate * SLACK)


def noise_std(facts: Facts, multiplier: float, clip: float) -> float:
    """The std of the noise on one agent's gradient, which one record moves by at most clip / I."""
    return multiplier * facts.problem.weight * clip * facts.rounding


def noisy_gradients(agents: Task, points: Array, clip: float, std: float, t: int, step: int = 0) -> Array:
    """f'_p + xi_p at points[p], or at one point for all; |x_i a_i^T| <= clip and xi_p ~ N(0, std^2): (P, J, K)."""
    slope = agents.gradients(points, Clipped(Norm.L2, clip))
    if std:
        xi = agents.agents_gaussian(t, step)
        xi *= std
        slope += xi
    return slope


def cooled_penalty(facts: Facts, score_noise: float, std: float, rounds: int) -> Cooling:
    """rho^t = 1 / (P step^t): the mean of the z_p then does gradient descent on sum_p f_p.

    step^t falls in a straight line to zero. With its first value a score of w gathers noise of std score_noise over
    the run, where `std` is that of the noise on one agent's f'_p in one round.
    """
    step = cooled_step(score_noise, math.sqrt(facts.n_agents) * std * facts.row_norm, rounds, facts.largest_step)
    return Cooling(1 / (facts.n_agents * step), rounds)
