"""How an agent turns a slope into its next z_p: exactly, with a proximal term, or in a trust region.

Every inexact subproblem is an isotropic quadratic, so its solution is the projection of one explicit
point (admm.updates) onto the feasible set (admm.project).
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
from tacit.errors import TacitError
from tacit.problem.domain import Domain
from tacit.schedule import Schedule
from tacit.types import Array, Norm

Field = Callable[[Array], Array]  # u -> f'_p(u) + noise


class Point(enum.Enum):
    """Where f_p is linearised."""

    LOCAL = "z"  # at z_p, as in the paper
    GLOBAL = "w"  # at w, as in APPFL's IIADMM


class Rule(Protocol):
    """The local step."""

    def point(self, own: Local, msg: Broadcast) -> Array:
        """Where the gradient is asked for."""

    def solve(self, slope: Array, field: Field, own: Local, msg: Broadcast, domain: Domain) -> Array:
        """z_p^{t+1}, from the slope at `point`, or from the whole field u -> slope."""

    def stiffness(self, rho: float, t: int) -> float:
        """mu: a change q of the slope moves z by at most |q| / mu."""


@dataclass(frozen=True)
class Prox:
    """IADMM-Prox (5); ObjP (8) when the slope carries noise."""

    eta: Schedule
    at: Point = Point.LOCAL

    def point(self, own: Local, msg: Broadcast) -> Array:
        return _point(self.at, own, msg)

    def solve(self, slope: Array, field: Field, own: Local, msg: Broadcast, domain: Domain) -> Array:  # noqa: ARG002
        center = prox_center(msg.w, own.z, own.dual, slope, msg.rho, self.eta(msg.t))
        return project(center, domain)

    def stiffness(self, rho: float, t: int) -> float:
        return rho + 1 / self.eta(t)


@dataclass(frozen=True)
class Trust:
    """IADMM-Trust (6); ObjT (9) when the slope carries noise."""

    radius: Schedule
    norm: Norm = Norm.INF
    at: Point = Point.LOCAL

    def point(self, own: Local, msg: Broadcast) -> Array:
        return _point(self.at, own, msg)

    def solve(self, slope: Array, field: Field, own: Local, msg: Broadcast, domain: Domain) -> Array:  # noqa: ARG002
        center = trust_center(msg.w, own.dual, slope, msg.rho)
        return project(center, domain, TrustRegion(own.z, self.radius(msg.t), self.norm))

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

    def point(self, own: Local, msg: Broadcast) -> Array:  # noqa: ARG002
        return own.z

    def solve(self, slope: Array, field: Field, own: Local, msg: Broadcast, domain: Domain) -> Array:
        step = 1 / (self.smoothness + msg.rho)
        u, head, momentum = own.z, own.z, 1.0
        for _ in range(self.max_steps):
            moved = project(head - step * exact_slope(head, msg.w, own.dual, slope, msg.rho), domain)
            if np.abs(moved - head).max() <= self.tolerance * step:
                return moved
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


def _point(at: Point, own: Local, msg: Broadcast) -> Array:
    return own.z if at is Point.LOCAL else msg.w
