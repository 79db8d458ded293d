"""How an agent turns a slope into its next z_p (a Rule), and where the noise xi enters (a Perturbation).

A rule solves the subproblem exactly, with a proximal term, or in a trust region. Every inexact subproblem is an
isotropic quadratic, so its solution is the projection of one explicit point, the centre (admm.updates), onto the
feasible set (admm.project).
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tacit.admm.messages import Broadcast, Local
from tacit.admm.project import TrustRegion, project
from tacit.admm.updates import exact_slope, prox_center, trust_center
from tacit.errors import IncompatibleError, TacitError
from tacit.problem.domain import Domain
from tacit.schedule import Schedule
from tacit.types import Array, Norm

Field = Callable[[Array], Array]  # u -> f'_p(u) + noise


class Point(enum.Enum):
    """Where f_p is linearised."""

    LOCAL = "z"  # at z_p, as in the paper
    GLOBAL = "w"  # at w, as in APPFL's IIADMM

    def of(self, own: Local, msg: Broadcast) -> Array:
        """z_p or w, as an agent has them when it is asked."""
        return own.z if self is Point.LOCAL else msg.w


class Rule(Protocol):
    """The local step."""

    @property
    def at(self) -> Point:
        """Where the gradient is asked for."""

    def solve(self, slope: Array, field: Field, own: Local, msg: Broadcast, domain: Domain) -> tuple[Array, float]:
        """z_p^{t+1}, from the slope at the point `at`, or from the whole field u -> slope; and where it binds.

        The second is the share of the entries that W or the trust region moves away from the centre of the step.
        """

    def stiffness(self, rho: float, t: int) -> float:
        """mu: a change q of the slope moves z by at most |q| / mu."""


@dataclass(frozen=True)
class Prox:
    """IADMM-Prox (5); ObjP (8) when the slope carries noise."""

    eta: Schedule
    at: Point = Point.LOCAL

    def center(self, slope: Array | float, own: Local, msg: Broadcast) -> Array:
        return np.asarray(prox_center(msg.w, own.z, own.dual, slope, msg.rho, self.eta(msg.t)))

    def solve(
        self, slope: Array, field: Field, own: Local, msg: Broadcast, domain: Domain  # noqa: ARG002
    ) -> tuple[Array, float]:
        return _nearest(self.center(slope, own, msg), domain)

    def stiffness(self, rho: float, t: int) -> float:
        return rho + 1 / self.eta(t)


@dataclass(frozen=True)
class Trust:
    """IADMM-Trust (6); ObjT (9) when the slope carries noise."""

    radius: Schedule
    norm: Norm = Norm.INF
    at: Point = Point.LOCAL

    def center(self, slope: Array | float, own: Local, msg: Broadcast) -> Array:
        return np.asarray(trust_center(msg.w, own.dual, slope, msg.rho))

    def solve(
        self, slope: Array, field: Field, own: Local, msg: Broadcast, domain: Domain  # noqa: ARG002
    ) -> tuple[Array, float]:
        return _nearest(self.center(slope, own, msg), domain, TrustRegion(own.z, self.radius(msg.t), self.norm))

    def stiffness(self, rho: float, t: int) -> float:  # noqa: ARG002
        return rho


@dataclass(frozen=True)
class Exact:
    """ADMM (4b): the subproblem solved to |u - Proj_W(u - slope(u) / L)| L <= tolerance.

    Accelerated projected gradient, restarted whenever the momentum points uphill. `smoothness` bounds
    the curvature of f_p and `convexity` is its strong convexity.
    """

    smoothness: float
    convexity: float = 0.0
    tolerance: float = 1e-10
    max_steps: int = 100_000
    at: Point = Point.LOCAL

    def solve(self, slope: Array, field: Field, own: Local, msg: Broadcast, domain: Domain) -> tuple[Array, float]:
        step = 1 / (self.smoothness + msg.rho)
        u, head, momentum = own.z, own.z, 1.0
        for _ in range(self.max_steps):
            moved, binding = _nearest(head - step * exact_slope(head, msg.w, own.dual, slope, msg.rho), domain)
            if np.abs(moved - head).max() <= self.tolerance * step:
                return moved, binding
            if ((head - moved) * (moved - u)).sum() > 0:
                momentum = 1.0
            heavier = (1 + (1 + 4 * momentum**2) ** 0.5) / 2
            head, u, momentum = moved + (momentum - 1) / heavier * (moved - u), moved, heavier
            slope = field(head)
        raise TacitError(
            f"the exact local solve did not reach {self.tolerance:g} in {self.max_steps} steps: "
            "raise rho or the tolerance."
        )

    def stiffness(self, rho: float, t: int) -> float:  # noqa: ARG002
        return rho + self.convexity


def _nearest(center: Array, domain: Domain, region: TrustRegion | None = None) -> tuple[Array, float]:
    """The projection of a centre, and the share of its entries that the projection moves."""
    z = project(center, domain, region)
    return z, float(np.mean(z != center))


class Perturbation(Protocol):
    """xi is in gradient units and mu is the stiffness of the local step, so xi / mu is in units of z."""

    def scale(self, scale: float, mu: float) -> float:
        """The scale of xi, from the calibrated one."""

    def slope(self, gradient: Array, xi: Array) -> Array:
        """The slope that the rule solves with."""

    def release(self, z: Array, xi: Array, mu: float) -> Array:
        """What leaves the agent."""


@dataclass(frozen=True)
class Objective:
    """<xi, z> is added to the objective (10): the release stays in W."""

    def scale(self, scale: float, mu: float) -> float:  # noqa: ARG002
        return scale

    def slope(self, gradient: Array, xi: Array) -> Array:
        return gradient + xi

    def release(self, z: Array, xi: Array, mu: float) -> Array:  # noqa: ARG002
        return z


@dataclass(frozen=True)
class Output:
    """-xi / mu is added to the solution: the same release as Objective where no constraint binds.

    `squared` is a switch of the `released` preset: the variance sigma^2 is passed where the sampler wants
    the standard deviation, so sigma / mu becomes (sigma / mu)^2.
    """

    squared: bool = False

    def scale(self, scale: float, mu: float) -> float:
        return scale**2 / mu if self.squared else scale

    def slope(self, gradient: Array, xi: Array) -> Array:  # noqa: ARG002
        return gradient

    def release(self, z: Array, xi: Array, mu: float) -> Array:
        return z - xi / mu


def invert(rule: Rule, own: Local, msg: Broadcast, z: Array) -> Array:
    """f'_p + xi = mu (c - z): what a server learns from a released z, up to what a projection hides.

    c is the centre of the step at slope zero and mu its stiffness. The centre falls by slope / mu, so this is exact
    where neither W nor the trust region binds, for noise in the objective and on the output alike. `own` is what the
    agent carried into the step (after Agent.caught_up): its z is an earlier release and its dual follows from earlier
    releases, so the server has both.
    """
    if not isinstance(rule, Prox | Trust):
        raise IncompatibleError("an exact step has no single gradient behind it: audit the prox or the trust rule.")
    return rule.stiffness(msg.rho, msg.t) * (rule.center(0.0, own, msg) - z)
