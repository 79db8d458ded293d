"""What every method works on: agents' records, the objective (1), and one way to ask the records for gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tacit.admm.agent import ROUNDING
from tacit.privacy import noise
from tacit.problem.objective import Problem
from tacit.problem.sensitivity import RecordBound
from tacit.types import Array, Norm, Shard

# (shards, problem, points (J, K) or (P, J, K), bound) -> sum_i x_i a_i^T of every agent, (P, J, K), each record shrunk
# to the bound. An engine may offer a faster one
Sums = Callable[[Sequence[Shard], Problem, Array, RecordBound], Array]
# (key, t, step, shape) -> standard Gaussian noise, as privacy.noise draws it
Normals = Callable[[tuple[int, int], int, int, tuple[int, ...]], Array]


def plain_sums(shards: Sequence[Shard], problem: Problem, points: Array, bound: RecordBound) -> Array:
    """One agent after another, NumPy."""
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
class Task:
    """A federation as a method sees it; `seed` names the streams of noise and of sampling."""

    shards: tuple[Shard, ...]
    problem: Problem  # weight = 1 / I
    shape: tuple[int, int]
    row_norm: float  # public: |x_i|_2 <= row_norm for every record there can be
    seed: int = 0
    sums: Sums = plain_sums
    normals: Normals = noise.gaussian

    @property
    def n_agents(self) -> int:
        """P."""
        return len(self.shards)

    @property
    def n_records(self) -> int:
        """I: public."""
        return sum(map(len, self.shards))

    @property
    def zeros(self) -> Array:
        """One model an agent, all zero: (P, J, K)."""
        return np.zeros((self.n_agents, *self.shape))

    @property
    def gradient_bound(self) -> float:
        """|x a^T|_2 <= row_norm sup|a| of any record."""
        return self.row_norm * self.problem.loss.residual_bound(Norm.L2)

    @cached_property
    def rounding(self) -> float:
        """1 + what float32 sums may add to a sensitivity: a record lives at one agent, and moves its sum alone."""
        return 1 + ROUNDING * max(map(len, self.shards))

    def gradients(self, points: Array, bound: RecordBound) -> Array:
        """f'_p at points[p], or at one point for all: (P, J, K)."""
        slope = self.sums(self.shards, self.problem, points, bound)  # in place: with many agents it is large
        slope *= self.problem.weight
        slope += self.problem.regularization * self.problem.regularizer.gradient(points)
        return slope

    def gaussian(self, agent: int, t: int, step: int = 0) -> Array:
        """Standard noise of an agent's stream; agent P is the server's or the curator's."""
        return self.normals((self.seed, agent), t, step, self.shape).astype(np.float64)

    def agents_gaussian(self, t: int, step: int = 0) -> Array:
        """Standard noise of every agent, (P, J, K)."""
        xi = np.empty((self.n_agents, *self.shape))
        for p in range(self.n_agents):
            xi[p] = self.normals((self.seed, p), t, step, self.shape)
        return xi

    def radial(self, agent: int, t: int, step: int = 0) -> Array:
        """Noise of density proportional to exp(-|b|_2), of an agent's stream as `gaussian`."""
        return noise.radial((self.seed, agent), t, step, self.shape).astype(np.float64)

    def uniform(self, agent: int, t: int, n: int, step: int = 0) -> Array:
        """n numbers in (0, 1] for sampling, from streams that no noise uses."""
        return noise.unit(noise.integers((self.seed, agent), t, SAMPLING + step, n), 32)


SAMPLING = 2**32  # no method takes so many local steps: from here on streams are for sampling
