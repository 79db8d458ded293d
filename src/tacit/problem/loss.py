"""What a loss must offer, and the losses by name. Another loss is one file like softmax.py and one line in LOSSES.

A loss here is a function of the scores s = x^T w alone, so the gradient of one record is the outer
product x a^T with a = dl/ds, and |x a^T| = |x| |a| in the l1 and in the l2 norm. That one fact gives
sensitivities and per-record clipping in closed form.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import DTypeLike

from tacit.registry import Registry
from tacit.types import Array, Norm


class Loss(Protocol):
    """l(s, y) for scores s (n, K) and labels y (n,)."""

    @property
    def curvature(self) -> float:
        """The largest eigenvalue d^2 l / ds^2 can have."""
        ...

    def value(self, score: Array, y: Array) -> float:
        """sum_i l(s_i, y_i)."""
        ...

    def residual(self, score: Array, y: Array) -> Array:
        """a = dl/ds for every record, (n, K)."""
        ...

    def residual_bound(self, norm: Norm) -> float:
        """sup |a| over all scores and labels; inf where there is none."""
        ...


LOSSES: Registry[Callable[[], Loss]] = Registry("loss", {
    "softmax": "tacit.problem.softmax:Softmax",
    "squared": "tacit.problem.squared:Squared",
})  # fmt: skip


def one_hot(y: Array, n_classes: int, dtype: DTypeLike = np.float64) -> Array:
    """Turns labels (n,) into rows (n, K) with a single one."""
    rows: Array = (y[:, None] == np.arange(n_classes)).astype(dtype)
    return rows
