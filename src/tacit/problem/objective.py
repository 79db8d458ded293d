"""The distributed problem (1):  min_{w in W} sum_p f_p(w),
f_p(w) = weight * sum_{i <= I_p} l(w; x_pi, y_pi) + (beta / P) r(w),  weight = 1 / I.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from tacit.errors import SpecError
from tacit.problem.domain import Domain, Everywhere, nearest_to_zero
from tacit.problem.loss import Loss, Softmax
from tacit.problem.regularizer import L2, Regularizer
from tacit.types import Array, Norm, Shard

EXACT_UP_TO = 1500  # a Gram matrix of this order takes about a second; a power iteration can stop at half the truth
BLOCK = 4096  # records brought to float64 at a time
ROUNDING = 1e-9  # well above what float64 loses in the eigenvalue


@dataclass(frozen=True)
class Problem:
    """One agent's share of (1). All agents have the same Problem, unless each is `locally_weighted`."""

    n_agents: int
    weight: float
    loss: Loss = Softmax()
    regularizer: Regularizer = L2()
    beta: float = 1e-6
    domain: Domain = Everywhere()

    def __post_init__(self) -> None:
        if not 0 <= self.beta < np.inf:
            raise SpecError(f"beta must be zero or more and finite, got {self.beta}.")

    @property
    def regularization(self) -> float:
        """beta / P."""
        return self.beta / self.n_agents

    def start(self, shape: tuple[int, ...]) -> Array:
        """Where the models of server and agents start: the point of W that is nearest to zero."""
        return nearest_to_zero(self.domain, shape)

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
        """An upper bound of the curvature of f_p: weight c lambda_max(X^T X) + (beta / P) r''; inf with kinks."""
        return self._curvature(_largest_eigenvalue(shard.x))

    def smoothness_at_most(self, shard: Shard) -> float:
        """A cheaper and looser bound than `smoothness`: lambda_max(X^T X) <= trace(X^T X)."""
        return self._curvature(_trace(shard.x))

    @property
    def smooth(self) -> bool:
        """Whether f_p has a gradient everywhere that changes at a bounded rate: no kinks."""
        kinks = math.isinf(self.loss.curvature), self.beta > 0 and math.isinf(self.regularizer.curvature)
        return not any(kinks)

    @property
    def regular_curvature(self) -> float:
        """(beta / P) r'', at most: zero where beta is, whichever kinks r has."""
        return self.regularization * self.regularizer.curvature if self.beta else 0.0

    def _curvature(self, eigenvalue: float) -> float:
        """weight c eigenvalue + (beta / P) r'', for any bound on the eigenvalues of X^T X."""
        if not self.smooth:
            return math.inf
        return self.weight * self.loss.curvature * eigenvalue + self.regular_curvature

    def locally_weighted(self, shard: Shard) -> Problem:
        """This problem with weight 1 / I_p: what the released OutP minimises."""
        return replace(self, weight=1 / len(shard))


def _trace(x: Array) -> float:
    """trace(X^T X) = sum_i |x_i|^2."""
    return float(np.square(Norm.L2.of_rows(x)).sum())


def _largest_eigenvalue(x: Array) -> float:
    """An upper bound of lambda_max(X^T X): from the smaller of X^T X and X X^T, or the trace where both are large."""
    if min(x.shape) > EXACT_UP_TO:
        return _trace(x)
    rows = x if x.shape[0] >= x.shape[1] else x.T  # both products have the same eigenvalues but for zeros
    gram = np.zeros((rows.shape[1], rows.shape[1]))
    for start in range(0, len(rows), BLOCK):
        block = rows[start : start + BLOCK].astype(np.float64, copy=False)
        gram += block.T @ block
    return float(np.linalg.eigvalsh(gram).max(initial=0.0)) * (1 + ROUNDING)
