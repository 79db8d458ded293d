"""The models of all runs in one array: entry [j, r K + k] is class k of run r, and a row is padded to 16 floats.

A row is then a few whole vector registers, and one pass over the records serves every run.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tacit.types import Array

PAD = 16


def width(n_runs: int, n_classes: int) -> int:
    """The floats in a row: R K, rounded up."""
    return -(-n_runs * n_classes // PAD) * PAD


def aligned(*shape: int) -> Array:
    """float32 zeros on a 64-byte boundary: a row that straddles cache lines costs twice."""
    size = int(np.prod(shape))
    raw = np.zeros(size + PAD, np.float32)
    skip = -raw.ctypes.data // 4 % PAD
    return raw[skip : skip + size].reshape(shape)


def of_run(packed: Array, r: int, n_classes: int) -> Array:
    """The (..., J, K) view of run r."""
    return packed[..., r * n_classes : (r + 1) * n_classes]


def spread(models: Sequence[Array], out: Array) -> Array:
    """Writes the models (J, K) of all runs into one packed array, and returns that array."""
    for r, model in enumerate(models):
        of_run(out, r, model.shape[1])[...] = model
    return out
