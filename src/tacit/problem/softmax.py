"""Multinomial logistic loss: l = -ln h_y, h = softmax(x^T w)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.types import Array, Norm


@dataclass(frozen=True)
class Softmax:
    """l = -ln h_y; a = h - e_y; the paper's loss."""

    curvature: float = 0.5  # diag(h) - h h^T has eigenvalues at most 1/2

    def value(self, score: Array, y: Array) -> float:
        shifted = _shift(score)
        log_total = np.log(np.exp(shifted).sum(axis=1))
        return float((log_total - shifted[np.arange(len(y)), y]).sum())

    def residual(self, score: Array, y: Array) -> Array:
        a = self.probability(score)
        a[np.arange(len(y)), y] -= 1
        return a

    def residual_bound(self, norm: Norm) -> float:
        # |a|_1 = 2 (1 - h_y) < 2; |a|_2 < sqrt 2, both approached as h -> e_k, k != y
        return {Norm.L1: 2.0, Norm.L2: math.sqrt(2), Norm.INF: 1.0}[norm]

    def probability(self, score: Array) -> Array:
        h = np.exp(_shift(score))
        h /= h.sum(axis=1, keepdims=True)
        return h


def _shift(score: Array) -> Array:
    return np.asarray(score - score.max(axis=1, keepdims=True))  # shift-invariant; keeps exp finite
