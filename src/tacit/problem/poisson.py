"""The Poisson loss, for counts from zero to a declared most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.errors import IncompatibleError
from tacit.problem.loss import aims
from tacit.types import Array, Norm, Target


@dataclass(frozen=True)
class Poisson:
    """l = e^s - v s up to s = 0, and 1 + s - v s beyond; a = e^min(s, 0) - v. v = count / most, in [0, 1].

    e^s is the predicted mean as a share of `most`, the declared upper end of the target. So l is the negative
    log-likelihood of a Poisson count over `most`, less what no model changes. Predictions stay within the declared
    range, where s <= 0; beyond it l goes on as a straight line. Hence e^min(s, 0) lies in (0, 1], v in [0, 1], and
    |a| <= 1 in every norm, because K is one: no clipping is needed. a rises with s, so that l is convex, by e^s <= 1.
    """

    curvature: float = 1.0
    for_classes: bool = False
    for_numbers: bool = True

    def value(self, score: Array, y: Array) -> float:
        v = self._shares(score, y)
        return float((np.exp(np.minimum(score, 0)) + np.maximum(score, 0) - v * score).sum())

    def residual(self, score: Array, y: Array) -> Array:
        return np.asarray(np.exp(np.minimum(score, 0)) - self._shares(score, y))

    def residual_bound(self, norm: Norm) -> float:  # noqa: ARG002
        return 1.0

    def predicted(self, score: Array) -> Array:
        """The mean that a score stands for, as records hold numbers: -1 is a count of zero, and 1 the most."""
        return np.asarray(2 * np.exp(np.minimum(score, 0)) - 1)

    def check_target(self, target: Target) -> None:
        """Refuse a number that is no count: its range must begin at zero."""
        if target.lo != 0:
            raise IncompatibleError(
                f"the loss poisson is for counts, whose range begins at 0, and the target lies in [{target.lo:g}, "
                f"{target.hi:g}]: declare the range from 0, or set problem.loss to squared or huber."
            )

    def _shares(self, score: Array, y: Array) -> Array:
        """v, (n, 1), in the precision of the scores."""
        return np.asarray((aims(y, score.shape[1], score.dtype) + 1) / 2)
