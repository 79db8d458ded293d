"""The regulariser r(w), weighted by beta / P at each agent, and the regularisers by name.

Another regulariser is one file and one line in REGULARIZERS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tacit.registry import Registry
from tacit.types import Array


class Regularizer(Protocol):
    """A convex function of the model alone: it costs no privacy."""

    @property
    def curvature(self) -> float:
        """The most that r' changes over a distance of one; inf where r has kinks, and r' is a subgradient."""

    @property
    def convexity(self) -> float:
        """The least that r' changes over a distance of one: r is so strongly convex. Some guarantees rest on it."""

    def value(self, w: Array) -> float:
        """r(w)."""

    def gradient(self, w: Array) -> Array:
        """r'(w)."""


@dataclass(frozen=True)
class L2:
    """r(w) = |w|_F^2."""

    curvature: float = 2.0
    convexity: float = 2.0

    def value(self, w: Array) -> float:
        return float(np.square(w).sum())

    def gradient(self, w: Array) -> Array:
        return 2 * w


@dataclass(frozen=True)
class NoRegularizer:
    """r(w) = 0."""

    curvature: float = 0.0
    convexity: float = 0.0

    def value(self, w: Array) -> float:  # noqa: ARG002
        return 0.0

    def gradient(self, w: Array) -> Array:
        return np.zeros_like(w)


REGULARIZERS: Registry[Callable[[], Regularizer]] = Registry("regularizer", {
    "l2": L2,
    "none": NoRegularizer,
    "l1": "tacit.problem.l1:L1",
})  # fmt: skip
