"""Noise inside an objective, and what its minimiser then tells of a record.

    z* = argmin_z F(z) + <b, z>,    F = (1/I) sum_i l(z; x_i, y_i) + a mu-strongly convex quadratic,    |x_i|_2 <= B

b = -F'(z*) is one to one, so z* has the density nu(-F'(z)) det F''(z), nu that of b. A record that comes or goes
changes both factors, whatever z is.

The determinant. A record's second derivative is x x^T (x) (diag h - h h^T), of rank K - 1 and trace
|x|^2 (1 - |h|^2) <= B^2 (1 - 1/K). Let E be that over I, A >= mu the rest, and e_k >= 0 the K - 1 eigenvalues of
A^-1/2 E A^-1/2, which add up to tr E / mu at most. The logarithm is concave, so

    0 <= ln det(A + E) - ln det A = sum_k ln(1 + e_k) <= (K - 1) ln(1 + B^2 / (K I mu)) =: jacobian

(A scalar model has one eigenvalue: the ln(1 + c / (n Lambda)) of the literature.)

The density of b. F' changes by x a^T / I, a = h - e_y, and |x a^T| <= B sqrt 2 =: c. With b in units of c / I,

    Radial    nu ~ exp(-|b| / m):       ln ratio <= 1/m,  so z* is epsilon-private, epsilon = 1/m + jacobian
    Normal    nu ~ exp(-|b|^2 / 2m^2):  ln ratio <= ( |<b, x a^T>| / c + 1/2 ) / m^2

For the Normal, a depends on z* and so on b: <b, x a^T> = <b^T x, a> is no Gaussian number. But a sums to zero over the
classes, so |<b^T x, a>| <= c m |G|, where m |x| G is the part of b^T x that sums to zero: G is a standard Gaussian in
K - 1 dimensions. |G| is 1-Lipschitz in G, with mean at most sqrt(K - 1), and so, but for a probability delta,

    |G| <= s = sqrt(K - 1) + sqrt(2 ln(1 / delta)),    epsilon = s/m + 1/(2 m^2) + jacobian

z* is then (epsilon, delta)-private, and an epsilon needs m = (s + sqrt(s^2 + 2 e)) / (2 e), e = epsilon - jacobian.
With K = 2 this is the argument of Kifer, Smith & Thakurta (2012); for more classes it is ours.

A solve ends at z with |z - z*| <= tau / mu, and its law is not that of z*. Given z*, solves on neighbours lie at most
2 tau / mu apart: noise for that distance, added to z, makes (z*, z + noise) two releases, of which one is shown.

The squared loss has the K equal eigenvalues |x|^2 for every z, so jacobian = K ln(1 + B^2 / (I mu)); but its gradients
have no bound, and neither law then has a finite epsilon. It is refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

from tacit.errors import DataError, IncompatibleError
from tacit.methods.task import Facts, Task
from tacit.privacy.release import GaussianRelease, GeneralRelease, Release
from tacit.problem.loss import Softmax
from tacit.problem.regularizer import L2, NoRegularizer
from tacit.problem.sensitivity import ROOM
from tacit.types import Array, Norm

MASK_SHARE = 0.01  # of a budget, for hiding where a solve ended


@dataclass(frozen=True)
class Radial:
    """Noise of density proportional to exp(-|b|_2 / multiplier), in units of how far a record moves what it is on."""

    multiplier: float

    def draw(self, facts: Facts, agent: int, t: int, step: int) -> Array:
        """The noise itself, by a stream of `agent`: (J, K)."""
        return self.multiplier * facts.radial(agent, t, step)

    def inside(self, facts: Facts, mu: float) -> GeneralRelease:
        """What the exact minimiser releases, with this noise in its objective."""
        return GeneralRelease(1 / self.multiplier + jacobian(facts, mu))

    def outside(self) -> Release:
        """What a vector releases, with this noise on it."""
        return GeneralRelease(1 / self.multiplier)

    @classmethod
    def of(cls, facts: Facts, mu: float, epsilon: float) -> Radial:
        """The noise whose minimiser is epsilon-private."""
        return cls(1 / (epsilon - jacobian(facts, mu)))


@dataclass(frozen=True)
class Normal:
    """N(0, multiplier^2) in every entry, in the units of Radial; with chance dp_delta the bound on its size fails."""

    multiplier: float
    dp_delta: float = 0.0

    def draw(self, facts: Facts, agent: int, t: int, step: int) -> Array:
        return self.multiplier * facts.gaussian(agent, t, step)

    def inside(self, facts: Facts, mu: float) -> GeneralRelease:
        s, m = size(facts, self.dp_delta), self.multiplier
        return GeneralRelease(s / m + 1 / (2 * m**2) + jacobian(facts, mu), self.dp_delta)

    def outside(self) -> Release:
        return GaussianRelease(self.multiplier)

    @classmethod
    def of(cls, facts: Facts, mu: float, epsilon: float, dp_delta: float) -> Normal:
        """The noise whose minimiser is (epsilon, dp_delta)-private."""
        s, e = size(facts, dp_delta), epsilon - jacobian(facts, mu)
        return cls((s + math.sqrt(s**2 + 2 * e)) / (2 * e), dp_delta)


AnyNoise: TypeAlias = Radial | Normal


def jacobian(facts: Facts, mu: float) -> float:
    """(K - 1) ln(1 + B^2 / (K I mu))."""
    k = facts.shape[1]
    return (k - 1) * math.log1p((facts.row_norm / ROOM) ** 2 * facts.problem.weight / (k * mu))


def least_convexity(facts: Facts, epsilon: float) -> float:
    """The mu at which jacobian = epsilon."""
    k = facts.shape[1]
    share = min(epsilon / (k - 1), 700.0)  # beyond it exp overflows, and the mu is next to nothing
    return (facts.row_norm / ROOM) ** 2 * facts.problem.weight / (k * math.expm1(share))


def size(facts: Facts, dp_delta: float) -> float:
    """s: the norm that a standard Gaussian in K - 1 dimensions exceeds with probability dp_delta at most."""
    return math.sqrt(facts.shape[1] - 1) + math.sqrt(2 * math.log(1 / dp_delta))


def record_gradient(facts: Facts) -> float:
    """c / I: how far a record moves the gradient, at most."""
    return facts.problem.weight * facts.gradient_bound / ROOM


def tau(facts: Facts, tolerance: float) -> float:
    """tolerance c / I; where the loss bounds no gradient, and so nothing is private, as if c were row_norm."""
    own = record_gradient(facts)
    return tolerance * (own if math.isfinite(own) else facts.problem.weight * facts.row_norm)


def check_loss(facts: Facts) -> None:
    """Refuse a loss or a regulariser that the argument does not cover."""
    if type(facts.problem.regularizer) not in (L2, NoRegularizer):
        raise IncompatibleError(
            "the noise of this method is proved for a regulariser that is quadratic, and this one is "
            f"{type(facts.problem.regularizer).__name__}: use l2 or none, or a method that clips (objt, fedgd, dpsgd)."
        )
    if type(facts.problem.loss) is not Softmax:  # a loss made of it may have longer gradients, and none is clipped
        raise IncompatibleError(
            "the noise of this method is proved for bounded gradients of the softmax loss, and this loss is "
            f"{type(facts.problem.loss).__name__}: use the softmax loss, or a method that clips (objt, fedgd, dpsgd)."
        )


def check_records(agents: Task) -> None:
    """Refuse a loss or a regulariser that the argument does not cover, and records that are longer than declared."""
    check_loss(agents)
    for shard in agents.shards:
        if Norm.L2.of_rows(shard.x).max(initial=0.0) > agents.row_norm * (1 + 1e-6):
            raise DataError(f"a record has l2 norm above the declared {agents.row_norm:g}: rescale the rows.")
