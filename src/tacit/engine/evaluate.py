"""How good a model is on some records: the sum of their losses, and the measures of what it predicts.

The rows are read where they are, by all cores, in one compiled pass; what that pass does not know, NumPy does.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import numpy as np

from tacit.engine.kernels import GROUP, aligned, compiled, width
from tacit.machine import cores
from tacit.measures import AUC, ERROR, R2, RMSE
from tacit.problem.loss import Loss, Softmax, Squared, predicted
from tacit.types import Array, Shard, Target

# records that a thread takes at a time, in float32 scores; the sum over pieces keeps its order. What is found of a
# piece depends on no other, so that processes may share out the pieces of a test set
PIECE = 4096

PLAIN = Squared()  # a loss under which the score of a number is the number

Measured = dict[str, float | None]


def loss_and_errors(w: Array, shard: Shard, loss: Loss) -> tuple[float, int]:
    """(sum_i l(x_i w, y_i), how many records have their highest score at another class than their label)."""
    shard = shard.at_hand()
    kernels, n_classes = compiled(), w.shape[1]
    known = kernels is not None and type(loss) is Softmax and _fits(shard)
    packed = aligned(len(w), width(1, n_classes))
    packed[:, :n_classes] = w

    def take(first: int) -> tuple[float, int]:
        stop = min(first + PIECE, len(shard))
        if kernels is not None and known:
            total, errors = kernels.evaluate(shard.x, len(w), shard.y, packed, n_classes, first, stop)
            if math.isfinite(total):  # of scores that are not finite, NumPy says which is the highest
                return total, errors
        x, y = shard.x[first:stop], shard.y[first:stop]
        with np.errstate(all="ignore"):  # of a thread its own
            score = x @ w.astype(x.dtype)
            return loss.value(score, y), int((score.argmax(axis=1) != y).sum())

    pieces = range(0, len(shard), PIECE)
    each = map if len(pieces) == 1 else _threads(os.getpid()).map  # of a small agent the way to a thread takes longer
    found = list(each(take, pieces))
    return sum(total for total, _ in found), sum(errors for _, errors in found)


def count_errors(w: Array, test: Shard) -> int:
    """How many records have their highest score at another class than their label."""
    return loss_and_errors(w, test, Softmax())[1]


def column(w: Array, shard: Shard) -> Array:
    """x w for one column, summed in float64 and rounded to float32: of equal records no sum may tell one apart."""
    found = np.empty(len(shard), np.float32)
    with np.errstate(over="ignore"):
        for first in range(0, len(shard), PIECE):
            rows = slice(first, first + PIECE)
            found[rows] = shard.x[rows].astype(np.float64) @ w.astype(np.float64)
    return found.astype(np.float64)


def measures(
    w: Array, test: Shard, target: Target | None, errors: Callable[[Array, Shard], int] = count_errors,
    scores: Callable[[Array, Shard], Array] = column, loss: Loss = PLAIN,
) -> Measured:  # fmt: skip
    """What a model is measured by, None where the test records do not tell.

    a number       RMSE and R2, in the units of the target, of predictions within its bounds
    classes        the share of records whose label is not the class of the highest score; AUC where there are two

    `errors` and `scores` may ask other processes, which then hold parts of the test records. `loss` says which numbers
    scores stand for.
    """
    if target is not None:
        found = rmse_and_r2(predicted(loss, scores(w[:, 0], test)), test.y, target)
        return dict(zip((RMSE.key, R2.key), found, strict=True))
    error = errors(w, test) / len(test) if len(test) else None
    if w.shape[1] != 2:
        return {ERROR.key: error}
    return {ERROR.key: error, AUC.key: auc(scores(w[:, 1] - w[:, 0], test), test.y == 1)}


def auc(score: Array, positive: Array) -> float | None:
    """The share of pairs of a positive and another record in which the positive one has the higher score, ties half.

    Ranks are halves of whole numbers, and so are their sums: nothing is rounded but the last division.
    """
    n, others = int(positive.sum()), int((~positive).sum())
    if not n or not others or not np.isfinite(score).all():
        return None
    _, place, counts = np.unique(score, return_inverse=True, return_counts=True)
    rank = np.cumsum(counts) - (counts - 1) / 2  # of equal scores, the middle of their ranks
    return float((rank[place][positive].sum() - n * (n + 1) / 2) / (n * others))


def rmse_and_r2(score: Array, y: Array, target: Target) -> tuple[float | None, float | None]:
    """The root of the mean squared error in the user's units, and 1 - that error over that of the mean of y."""
    if not len(y) or not np.isfinite(score).all():
        return None, None
    squared, spread = np.square(score.clip(-1, 1) - y).mean(), np.square(y - y.mean()).mean()
    return target.half * math.sqrt(squared), float(1 - squared / spread) if spread > 0 else None


def _fits(shard: Shard) -> bool:
    """Whether the compiled pass can read these rows."""
    return shard.x.dtype == np.float32 and shard.x.shape[1] >= GROUP


@lru_cache(maxsize=1)
def _threads(process: int) -> ThreadPoolExecutor:  # noqa: ARG001  threads do not survive a fork
    return ThreadPoolExecutor(cores(), "evaluate")
