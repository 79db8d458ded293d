"""The loss l, and the losses by name. Another loss is one file and one line in LOSSES.

A loss here is a function of the scores s = x^T w alone, so the gradient of one record is the outer
product x a^T with a = dl/ds, and |x a^T| = |x| |a| in the l1 and in the l2 norm. That one fact gives
sensitivities and per-record clipping in closed form.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import DTypeLike

from tacit.registry import Registry
from tacit.types import Array, Norm, Target


class Loss(Protocol):
    """l(s, y) for scores s (n, K) and y (n,): labels, or numbers where K is one."""

    @property
    def for_classes(self) -> bool:
        """Whether y may be labels."""

    @property
    def for_numbers(self) -> bool:
        """Whether y may be numbers."""

    @property
    def curvature(self) -> float:
        """The largest eigenvalue d^2 l / ds^2 can have; inf where l has kinks, and a is a subgradient."""

    def value(self, score: Array, y: Array) -> float:
        """sum_i l(s_i, y_i)."""

    def residual(self, score: Array, y: Array) -> Array:
        """a = dl/ds for every record, (n, K)."""

    def residual_bound(self, norm: Norm) -> float:
        """sup |a| over all scores and labels; inf where there is none."""


@runtime_checkable
class Linked(Protocol):
    """A loss for numbers whose scores are no numbers in [-1, 1], as records hold them, but stand for some."""

    def predicted(self, score: Array) -> Array:
        """The numbers that scores stand for."""

    def check_target(self, target: Target) -> None:
        """Refuse a number that the loss is not for."""


def predicted(loss: Loss, score: Array) -> Array:
    """The numbers that scores stand for: the scores themselves, unless the loss is Linked."""
    return loss.predicted(score) if isinstance(loss, Linked) else score


@dataclass(frozen=True)
class Softmax:
    """The multinomial logistic loss of the paper: l = -ln h_y, h = softmax(s); a = h - e_y."""

    curvature: float = 0.5  # diag(h) - h h^T has eigenvalues at most 1/2
    for_classes: bool = True
    for_numbers: bool = False

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


@dataclass(frozen=True)
class Squared:
    """l = 1/2 |s - e_y|^2 (1/2 (s - y)^2 for a number); a = s - e_y, which has no bound: private runs must clip."""

    curvature: float = 1.0
    for_classes: bool = True
    for_numbers: bool = True

    def value(self, score: Array, y: Array) -> float:
        return float(0.5 * np.square(self.residual(score, y)).sum())

    def residual(self, score: Array, y: Array) -> Array:
        return np.asarray(score - aims(y, score.shape[1], score.dtype))

    def residual_bound(self, norm: Norm) -> float:  # noqa: ARG002
        return math.inf


@dataclass(frozen=True)
class Huber:
    """l = r^2 / 2 where |r| <= h, else h (|r| - h / 2), r = s - y; a = r moved into [-h, h].

    h is public, in units of the scaled target, whose range has length two. |a| <= h in every norm, because K is one.
    """

    threshold: float = 0.5
    curvature: float = 1.0
    for_classes: bool = False
    for_numbers: bool = True

    def value(self, score: Array, y: Array) -> float:
        far = np.abs(score - aims(y, score.shape[1], score.dtype))
        near = np.minimum(far, self.threshold)
        return float((near * (far - near / 2)).sum())

    def residual(self, score: Array, y: Array) -> Array:
        far = score - aims(y, score.shape[1], score.dtype)
        return np.asarray(far.clip(-self.threshold, self.threshold))

    def residual_bound(self, norm: Norm) -> float:  # noqa: ARG002
        return self.threshold


def aims(y: Array, n_columns: int, dtype: DTypeLike = np.float64) -> Array:
    """What scores (n, K) should be: one-hot rows for labels, y itself for numbers."""
    return y[:, None].astype(dtype) if y.dtype.kind == "f" else one_hot(y, n_columns, dtype)


def one_hot(y: Array, n_classes: int, dtype: DTypeLike = np.float64) -> Array:
    """Turns labels (n,) into rows (n, K) with a single one."""
    return np.asarray(y[:, None] == np.arange(n_classes), dtype)


LOSSES: Registry[Callable[[], Loss]] = Registry("loss", {
    "softmax": Softmax,
    "squared": Squared,
    "huber": Huber,
    "hinge": "tacit.problem.hinge:Hinge",
    "poisson": "tacit.problem.poisson:Poisson",
})  # fmt: skip
