"""Where the noise xi enters: into the objective, or onto the output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tacit.types import Array


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
