"""How good a model is on some records: the sum of their losses, and how many it gets wrong.

The rows are read where they are, by all cores, in one compiled pass; what that pass does not know, NumPy does.
"""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import numpy as np

from tacit.engine.kernels import GROUP, aligned, compiled, width
from tacit.machine import cores
from tacit.problem.loss import Loss, Softmax
from tacit.types import Array, Shard

PIECE = 4096  # records that a thread takes at a time, in float32 scores; the sum over pieces keeps its order


def loss_and_errors(w: Array, shard: Shard, loss: Loss) -> tuple[float, int]:
    """(sum_i l(x_i w, y_i), how many records have their highest score at another class than their label)."""
    kernels, n_classes = compiled(), w.shape[1]
    if kernels is not None and type(loss) is Softmax and _fits(shard):
        packed = aligned(len(w), width(1, n_classes))
        packed[:, :n_classes] = w

        def take(first: int) -> tuple[float, int]:
            stop = min(first + PIECE, len(shard))
            total, errors = kernels.evaluate(shard.x, len(w), shard.y, packed, n_classes, first, stop)
            return total, errors

        found = list(_threads(os.getpid()).map(take, range(0, len(shard), PIECE)))
        total = sum(own for own, _ in found)
        if math.isfinite(total):  # of scores that are not finite, NumPy says which is the highest
            return total, sum(errors for _, errors in found)
    score = shard.x @ w.astype(shard.x.dtype)
    return loss.value(score, shard.y), int((score.argmax(axis=1) != shard.y).sum())


def _fits(shard: Shard) -> bool:
    """Whether the compiled pass can read these rows."""
    return shard.x.dtype == np.float32 and shard.x.shape[1] >= GROUP


@lru_cache(maxsize=1)
def _threads(process: int) -> ThreadPoolExecutor:  # noqa: ARG001  threads do not survive a fork
    return ThreadPoolExecutor(cores(), "evaluate")
