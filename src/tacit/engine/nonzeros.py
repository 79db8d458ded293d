"""The records of an agent as lists of non-zeros, for the two compiled passes of a gradient.

Scores need the features of a record (lists by row); the gradient needs the records of a feature (lists by
column, a block of records at a time, so that their residuals stay in cache). Images of 8-bit pixels keep
one byte a value.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.types import Array, Shard

Lists = tuple[Array, Array, Array]  # start (n + 1,), index, value

CACHE_FLOATS = 8192  # residuals of one block: 32 KB, the first level cache
LEAST = 64  # records in a block, else the lists of its columns outweigh their entries


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
    parts = [_lists(x[i : i + block].T) for i in range(0, len(x), block)]
    starts = np.concatenate([[0], np.cumsum(np.concatenate([np.diff(start) for start, _, _ in parts]))])
    columns = (starts, np.concatenate([p[1] for p in parts]), np.concatenate([p[2] for p in parts]))
    return NonZeros(_lists(x), columns, scale, block, shard.y)


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
