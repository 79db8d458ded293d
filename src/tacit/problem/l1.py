"""The l1 norm as a regulariser: it draws entries to zero, all by the same."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.types import Array


@dataclass(frozen=True)
class L1:
    """r(w) = sum |w_jk|; r'(w) = sign(w), a subgradient, with 0 at 0. It has a kink, and so no curvature.

    Steps along a subgradient come near zero and rarely end there: entries get small, not exactly zero.
    """

    curvature: float = math.inf
    convexity: float = 0.0

    def value(self, w: Array) -> float:
        return float(np.abs(w).sum())

    def gradient(self, w: Array) -> Array:
        return np.sign(w)
