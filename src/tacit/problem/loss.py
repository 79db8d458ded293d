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

from tacit.errors import IncompatibleError
from tacit.registry import Registry
from tacit.types import Array, Norm, Target

ROWS = 24  # random scores that a loss is tried on
SIZES = (0.3, 1.0, 3.0)  # of these scores: of records that are hardly, somewhat and clearly assigned
LOG_ODDS = "softmax"  # the loss under which the softmax of the scores is the model's probability of each class
TOLERANCE = 1e-5  # of 1 + |a|: well above what float32 rounds


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
        """a = dl/ds for every record, (n, K): row i is a function of s_i and y_i only (`check_separable`)."""

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


def check_probabilities(target: Target | None, loss: str) -> None:
    """Refuse a model whose scores are no log-odds: one of numbers, or of another loss."""
    if target is not None:
        raise IncompatibleError("this model predicts a number, which has no probability: predict it, without --proba.")
    if loss != LOG_ODDS:
        raise IncompatibleError(
            f"the scores of the loss {loss} are no log-odds: train with problem.loss = {LOG_ODDS} for probabilities."
        )


def probabilities(scores: Array) -> Array:
    """Return exp(s_k) / sum_j exp(s_j) for scores (n, K), in float64: each row adds up to one."""
    shifted = scores.astype(np.float64) - scores.max(axis=1, keepdims=True)  # shift-invariant; keeps exp finite
    odds = np.exp(shifted)
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


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


def check_separable(name: str, loss: Loss, columns: int, number: bool) -> None:
    """Refuse a loss whose residual of a record depends on other records; a `number` is to be predicted, or a class.

    The sensitivity of a sum of gradients is that of one record only if no record changes the residual of another. A
    loss that weighs records by the class frequencies of the batch, or divides by its size, breaks this without a sign:
    training works, and the stated epsilon is wrong. The check sees no record: it compares the residuals of random
    scores with those of one row at a time, in float32 and in float64, as engines compute.
    """
    rng = np.random.default_rng(0)
    score = np.resize(SIZES, ROWS)[:, None] * rng.normal(size=(ROWS, columns))
    y = rng.uniform(-1, 1, size=ROWS) if number else rng.integers(columns, size=ROWS)
    for dtype in (np.float32, np.float64):
        apart = _distance(name, loss, score.astype(dtype), y)
        if not apart <= TOLERANCE:
            raise IncompatibleError(
                f"the loss {name} couples records: a residual changes by {apart:.2g} of its size with the other records"
                " of the batch, so that no bound on the gradient of one record holds. In residual(score, y), compute "
                "row i from score[i] and y[i] only; weights of classes must be public constants."
            )


def _distance(name: str, loss: Loss, score: Array, y: Array) -> float:
    """Return how far the residuals of all rows are from those of each row by itself, as a share of 1 + |a|."""
    rows = [slice(i, i + 1) for i in range(len(y))]
    with np.errstate(all="ignore"):  # what a loss makes of extreme scores is not judged here
        together = np.asarray(loss.residual(score.copy(), y.copy()))
        if together.shape != score.shape:
            raise IncompatibleError(
                f"the residual of the loss {name} returns shape {together.shape} for scores of shape {score.shape}: "
                "return dl/ds, one row per record and one column per score."
            )
        alone = np.concatenate([loss.residual(score[row].copy(), y[row].copy()) for row in rows])
        same = (together == alone) | (np.isnan(together) & np.isnan(alone))
        return float(np.where(same, 0.0, np.abs(together - alone) / (1 + np.abs(alone))).max())


LOSSES: Registry[Callable[[], Loss]] = Registry("loss", {
    "softmax": Softmax,
    "squared": Squared,
    "huber": Huber,
    "hinge": "tacit.problem.hinge:Hinge",
    "poisson": "tacit.problem.poisson:Poisson",
})  # fmt: skip
