"""The set W the model lives in, and the sets by name. Norms are over all J x K entries.

Another set is one file and one line in DOMAINS. Its projection is all that training needs: where a step has a trust
region too, admm.project finds the nearest point of both sets by Dykstra's method, unless it knows a faster way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tacit.errors import SpecError
from tacit.registry import Registry
from tacit.types import Array


class Domain(Protocol):
    """A closed convex set. With the trust rule the set must hold the origin, where the first step starts."""

    def project(self, c: Array) -> Array:
        """argmin_{u in W} |u - c|."""

    def contains(self, u: Array, tolerance: float = 1e-9) -> bool:
        """Whether u lies in W, up to rounding."""


@dataclass(frozen=True)
class Everywhere:
    """W = R^{J x K}."""

    def project(self, c: Array) -> Array:
        return c

    def contains(self, u: Array, tolerance: float = 1e-9) -> bool:  # noqa: ARG002
        return bool(np.isfinite(u).all())


@dataclass(frozen=True)
class Box:
    """W = {u : |u_jk| <= radius}."""

    radius: float

    def __post_init__(self) -> None:
        _check_radius("box", self.radius)

    def project(self, c: Array) -> Array:
        return np.clip(c, -self.radius, self.radius)

    def contains(self, u: Array, tolerance: float = 1e-9) -> bool:
        return bool(np.abs(u).max() <= self.radius * (1 + tolerance))


@dataclass(frozen=True)
class Ball:
    """W = {u : |u|_F <= radius}."""

    radius: float

    def __post_init__(self) -> None:
        _check_radius("ball", self.radius)

    def project(self, c: Array) -> Array:
        size = float(np.linalg.norm(c))
        return c if size <= self.radius else c * (self.radius / size)

    def contains(self, u: Array, tolerance: float = 1e-9) -> bool:
        return float(np.linalg.norm(u)) <= self.radius * (1 + tolerance)


def _check_radius(kind: str, radius: float) -> None:
    if not 0 < radius < np.inf:
        raise SpecError(f"a {kind} needs a positive, finite radius, got {radius}: use Everywhere for no bound.")


DOMAINS: Registry[Callable[[float], Domain]] = Registry("domain", {  # each takes problem.domain_radius
    "everywhere": lambda _: Everywhere(),
    "box": Box,
    "ball": Ball,
})  # fmt: skip
