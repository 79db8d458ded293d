"""The compiled loops (_kernels.c), if this installation has them, and arrays in the form that these loops read.

Models: those of all runs are in one array. Entry [j, r K + k] is class k of run r, and a row is padded to 16 floats: a
row is then a few whole vector registers, and one pass over the records serves every run.

Records: scores need the features of a record (lists of non-zeros by row); a gradient needs the records of a feature
(lists by column, a block of records at a time, so that their residuals stay in cache). Images of 8-bit pixels keep one
byte a value.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from tacit.privacy import noise
from tacit.types import Array, Shard

PAD = 16
CACHE_FLOATS = 8192  # residuals of one block: 32 KB, the first level cache
LEAST = 64  # records in a block, else the lists of its columns outweigh their entries

Lists = tuple[Array, Array, Array]  # start (n + 1,), index, value


def compiled() -> ModuleType | None:
    """The extension module; None where it was not built, or TACIT_NO_KERNELS is set."""
    name = "tacit.engine._kernels"
    if os.environ.get("TACIT_NO_KERNELS") or importlib.util.find_spec(name) is None:
        return None
    return importlib.import_module(name)


def cores() -> int:
    """The number of cores that this process may use: taskset or a cpuset may allow fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def normals() -> Callable[[tuple[int, int], int, int, tuple[int, ...]], Array]:
    """privacy.noise.gaussian, compiled where it can be: equal to within float32's rounding of ln and cos."""
    kernels = compiled()
    if kernels is None:
        return noise.gaussian

    def gaussian(key: tuple[int, int], t: int, step: int, shape: tuple[int, ...]) -> Array:
        out = np.empty(shape, np.float32)
        kernels.noise(kernels.GAUSSIAN, *key, t, step, out)
        return out

    return gaussian


def width(n_runs: int, n_classes: int) -> int:
    """The floats in a row of models: R K, rounded up."""
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


@dataclass(frozen=True, eq=False)
class NonZeros:
    """One agent's records; an entry is scale * value."""

    rows: Lists
    columns: Lists
    scale: float
    block: int
    label: Array


def pack(shard: Shard, width: int) -> NonZeros:
    """The lists of a shard, in blocks that fit models of `width` floats a feature."""
    x, scale = _bytes_if_exact(shard.x)
    block = -(-len(x) // max(1, round(len(x) / max(CACHE_FLOATS / width, LEAST))))
    starts, indices, values = zip(*[_lists(x[i : i + block].T) for i in range(0, len(x), block)], strict=True)
    start = np.concatenate([[0], np.cumsum(np.concatenate([np.diff(start) for start in starts]))])
    return NonZeros(_lists(x), (start, np.concatenate(indices), np.concatenate(values)), scale, block, shard.y)


def _lists(x: Array) -> Lists:
    row, column = np.nonzero(x)
    start = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(x)))])
    small = np.uint16 if x.shape[1] <= 2**16 else np.uint32
    return start, column.astype(small), x[row, column]


def _bytes_if_exact(x: Array) -> tuple[Array, float]:
    """x as bytes over 255 where that is what it is, else x itself."""
    if x.size and x.min() >= 0 and x.max() <= 1:
        pixels = np.rint(x * np.float32(255))
        if (pixels / np.float32(255) == x).all():
            return pixels.astype(np.uint8), 1 / 255
    return x, 1.0
