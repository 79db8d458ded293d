"""The paper's convergence theorem for ObjP over a compact W, term by term: as printed, and repaired.

    E[F(z^(T)) - F* + gamma |A w^(T) - z^(T)|]
        <= 1/T { (P U1^2 + 2 P J K U3^2 / epsilon^2 + U2 / 2) sqrt(T)
                 + gamma U2 + U2 rho^T / 2 + gamma^2 / (2 rho^1) }                       as printed
        <= 1/T { (P U1^2 + 2 P J K U3^2 / epsilon^2 + P U2^2 / 2) sqrt(T)
                 + gamma sqrt(P) U2 + P U2^2 rho^T / 2 + gamma^2 / (2 rho^1) }           repaired

with eta^t = 1 / sqrt(t) and lambda^1 = 0; z^(T) and w^(T) are means over the rounds. The proof needs |z - z^t|^2 and
|z^{T+1} - z^1| for P models stacked, each in a W of diameter U2: at most P U2^2 and sqrt(P) U2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tacit.admm.messages import Broadcast, Local
from tacit.admm.rule import Exact
from tacit.errors import IncompatibleError
from tacit.problem.domain import Ball, Box, Domain
from tacit.problem.objective import Problem
from tacit.problem.sensitivity import Adjacency
from tacit.types import Array, Federation, Norm


@dataclass(frozen=True)
class Constants:
    """The constants of the theorem: upper bounds of U1 and U3, and U2 itself."""

    u1: float
    u2: float
    u3: float


def constants(problem: Problem, federation: Federation, adjacency: Adjacency) -> Constants:
    """U1 = max |f'_p(u)| <= max_p weight sum_i |x_i|_2 sup |a|_2 + (beta / P) sup |r'|
    U2 = max |u - v|
    U3 = max |f'_p(u; D) - f'_p(u; D')|_1 <= weight n max_i |x_i|_1 sup |a|_1, n records apart.
    """
    u2 = diameter(problem.domain, federation.n_features * federation.n_classes)
    rows = [{norm: norm.of_rows(shard.x) for norm in (Norm.L1, Norm.L2)} for shard in federation.shards]
    sums, longest = max(row[Norm.L2].sum() for row in rows), max(row[Norm.L1].max() for row in rows)
    slope = problem.regularization * problem.regularizer.curvature * u2 / 2  # W is centred: |u| <= U2 / 2
    return Constants(
        u1=float(problem.weight * sums * problem.loss.residual_bound(Norm.L2) + slope),
        u2=u2,
        u3=float(problem.weight * adjacency.value * longest * problem.loss.residual_bound(Norm.L1)),
    )


def diameter(domain: Domain, dimension: int) -> float:
    """max |u - v| over W, in dimension J K."""
    if isinstance(domain, Box):
        return 2 * domain.radius * math.sqrt(dimension)
    if isinstance(domain, Ball):
        return 2 * domain.radius
    raise IncompatibleError("the theorem needs a compact W: set problem.domain to box or ball.")


def optimum(problem: Problem, federation: Federation, tolerance: float = 1e-9) -> Array:
    """argmin_{w in W} sum_p f_p(w): the exact local step of ADMM, for one agent that holds all f_p, at rho = 0."""

    def field(u: Array) -> Array:
        return np.asarray(sum(problem.gradient(u, shard) for shard in federation.shards))

    zero = np.zeros((federation.n_features, federation.n_classes))
    rule = Exact(sum(problem.smoothness(shard) for shard in federation.shards), tolerance=tolerance)
    return rule.solve(field(zero), field, Local(zero, zero), Broadcast(1, zero, 0.0), problem.domain)[0]


@dataclass(frozen=True, eq=False)
class Merit:
    """M = F(z) - F* + gamma |A w - z|, gamma = 2 |lambda*| and lambda*_p = f'_p(w*)."""

    problem: Problem
    federation: Federation
    f_star: float
    f_zero: float
    gamma: float

    @classmethod
    def of(cls, problem: Problem, federation: Federation) -> Merit:
        best = optimum(problem, federation)
        duals = np.stack([problem.gradient(best, shard) for shard in federation.shards])
        values = [sum(problem.value(w, shard) for shard in federation.shards) for w in (best, np.zeros_like(best))]
        return cls(problem, federation, values[0], values[1], 2 * float(np.linalg.norm(duals)))

    def __call__(self, z: Array, w: Array) -> float:
        """The merit of z (P, J, K) and w (J, K)."""
        value = sum(self.problem.value(own, shard) for own, shard in zip(z, self.federation.shards, strict=True))
        return float(value - self.f_star + self.gamma * np.linalg.norm(w - z))


def noise_energy(n_agents: int, dimension: int, u3: float, epsilon: float) -> float:
    """2 P J K U3^2 / epsilon^2: at least E |xi|^2 of Laplace noise of scale U3 / epsilon in every entry."""
    return 2 * n_agents * dimension * u3**2 / epsilon**2


@dataclass(frozen=True)
class Known:
    """What the right-hand sides for ObjP and for ObjT are made of."""

    constants: Constants
    n_agents: int
    noise: float  # 2 P J K U3^2 / epsilon^2
    gamma: float
    rho_first: float

    @property
    def energy(self) -> float:
        """P U1^2 + 2 P J K U3^2 / epsilon^2: at least E |f' + xi|^2 of P stacked agents."""
        return self.n_agents * self.constants.u1**2 + self.noise

    @property
    def distances(self) -> tuple[float, float]:
        """P U2^2 and sqrt(P) U2: the largest distance of P stacked models, squared and plain."""
        return self.n_agents * self.constants.u2**2, math.sqrt(self.n_agents) * self.constants.u2


@dataclass(frozen=True)
class Bound(Known):
    """The right-hand side for eta^t = a / sqrt(t); a = 1 is the theorem."""

    rho_last: float
    a: float = 1.0

    def __call__(self, rounds: int) -> float:
        """The bound as printed: U2 stands for squared and for plain distances of P stacked models."""
        return self._with(self.constants.u2, self.constants.u2, rounds)

    def repaired(self, rounds: int) -> float:
        """The bound with P U2^2 for squared distances of P stacked models, and sqrt(P) U2 for plain distances."""
        return self._with(*self.distances, rounds)

    def _with(self, squared: float, plain: float, rounds: int) -> float:
        growing = self.a * self.energy + squared / (2 * self.a)
        fixed = self.gamma * plain + squared * self.rho_last / 2 + self.gamma**2 / (2 * self.rho_first)
        return (growing * math.sqrt(rounds) + fixed) / rounds


def slope(t: Sequence[float], merit: Sequence[float], decades: float = 2.0) -> float:
    """The slope of ln merit against ln t, by least squares over the last decades."""
    late = [(math.log(x), math.log(y)) for x, y in zip(t, merit, strict=True) if x >= t[-1] / 10**decades]
    x, y = np.array(late).T
    return float(np.polyfit(x, y, 1)[0])
