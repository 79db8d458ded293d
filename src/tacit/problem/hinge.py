"""The hinge loss of Crammer and Singer (2001): the margin by which the score of the label is the highest."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.types import Array, Norm


@dataclass(frozen=True)
class Hinge:
    """l = max(0, 1 + s_k - s_y), k the highest of the other classes; a = e_k - e_y where l > 0, else 0: a subgradient.

    |a|_1 = 2 and |a|_2 = sqrt 2 wherever a is not zero, so that both bounds are reached. There is no curvature: the
    gradient jumps. With two classes l is the hinge max(0, 1 - m) of the margin m = s_y - s_k.
    """

    curvature: float = math.inf
    for_classes: bool = True
    for_numbers: bool = False

    def value(self, score: Array, y: Array) -> float:
        return float(self._margins(score, y)[1].clip(0).sum())

    def residual(self, score: Array, y: Array) -> Array:
        best, short = self._margins(score, y)
        rows, a = np.arange(len(y)), np.zeros_like(score)
        a[rows, best] = short > 0
        a[rows, y] -= short > 0
        return a

    def residual_bound(self, norm: Norm) -> float:
        return {Norm.L1: 2.0, Norm.L2: math.sqrt(2), Norm.INF: 1.0}[norm]

    def _margins(self, score: Array, y: Array) -> tuple[Array, Array]:
        """k, and 1 + s_k - s_y; of equal scores the first class counts."""
        rows, others = np.arange(len(y)), score.copy()
        others[rows, y] = -np.inf
        best = others.argmax(axis=1)
        return best, np.asarray(1 + others[rows, best] - score[rows, y])
