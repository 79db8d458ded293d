"""Squared loss on one-hot labels: l = 1/2 |x^T w - e_y|^2."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.problem.loss import one_hot
from tacit.types import Array, Norm


@dataclass(frozen=True)
class Squared:
    """l = 1/2 |s - e_y|^2; a = s - e_y, which has no bound: private runs must clip."""

    curvature: float = 1.0

    def value(self, score: Array, y: Array) -> float:
        return float(0.5 * np.square(self.residual(score, y)).sum())

    def residual(self, score: Array, y: Array) -> Array:
        return np.asarray(score - one_hot(y, score.shape[1], score.dtype))

    def residual_bound(self, norm: Norm) -> float:  # noqa: ARG002
        return math.inf
