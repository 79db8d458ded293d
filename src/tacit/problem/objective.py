"""The distributed problem (1):  min_{w in W} sum_p f_p(w),
f_p(w) = weight * sum_{i <= I_p} l(w; x_pi, y_pi) + (beta / P) r(w),  weight = 1 / I.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tacit.errors import SpecError
from tacit.problem.domain import Domain, Everywhere
from tacit.problem.loss import Loss
from tacit.problem.regularizer import L2, Regularizer
from tacit.problem.softmax import Softmax
from tacit.types import Array, Norm, Shard


@dataclass(frozen=True)
class Problem:
    """One agent's share of (1); every agent has the same but for the weight switch of `locally_weighted`."""

    n_agents: int
    weight: float
    loss: Loss = Softmax()
    regularizer: Regularizer = L2()
    beta: float = 1e-6
    domain: Domain = Everywhere()

    def __post_init__(self) -> None:
        if not self.beta >= 0:
            raise SpecError(f"beta must be zero or more, got {self.beta}.")

    @property
    def regularization(self) -> float:
        """beta / P."""
        return self.beta / self.n_agents

    def value(self, w: Array, shard: Shard) -> float:
        """f_p(w)."""
        data = self.loss.value(shard.x @ w, shard.y)
        return self.weight * data + self.regularization * self.regularizer.value(w)

    def gradient(self, w: Array, shard: Shard) -> Array:
        """f'_p(w) = weight X^T A + (beta / P) r'(w), A the rows of residuals."""
        a = self.loss.residual(shard.x @ w, shard.y)
        return self.data_gradient(a, shard) + self.regularization * self.regularizer.gradient(w)

    def data_gradient(self, residual: Array, shard: Shard) -> Array:
        """weight X^T A."""
        return np.asarray(self.weight * (shard.x.T @ residual))

    def smoothness(self, shard: Shard) -> float:
        """An upper bound of the curvature of f_p: weight c lambda_max(X^T X) + (beta / P) r''."""
        return (
            self.weight * self.loss.curvature * _largest_eigenvalue(shard.x)
            + self.regularization * self.regularizer.curvature
        )

    def smoothness_at_most(self, shard: Shard) -> float:
        """A cheaper, looser bound: lambda_max(X^T X) <= sum_i |x_i|^2."""
        trace = float(np.square(Norm.L2.of_rows(shard.x)).sum())
        return (
            self.weight * self.loss.curvature * trace
            + self.regularization * self.regularizer.curvature
        )

    def locally_weighted(self, shard: Shard) -> Problem:
        """The same with weight 1 / I_p: what the released OutP minimises."""
        return replace(self, weight=1 / len(shard))


def _largest_eigenvalue(x: Array, rounds: int = 60, tolerance: float = 1e-3) -> float:
    """lambda_max(X^T X) by power iteration, rounded up by the tolerance it stops at."""
    v: Array = np.random.default_rng(0).standard_normal(x.shape[1:]).astype(x.dtype)  # any start but an eigenvector
    v /= np.linalg.norm(v)
    value = 0.0
    for _ in range(rounds):
        u = x.T @ (x @ v)
        size = float(np.linalg.norm(u))
        if size <= value * (1 + tolerance):
            break
        value, v = size, u / size
    return value * (1 + tolerance)
