"""The compiled loops (_kernels.c), if this installation has them, and arrays in the form that these loops read.

Models: those of all runs are in one array. Entry [j, r K + k] is class k of run r, and a row is padded to 16 numbers: a
row is then a few whole vector registers, and one pass over the records serves every run.

Records: `grouped` takes features in groups of eight. Whole rows are read where they are; where many groups are empty,
those are left out, and bits say which. `tiled` lists the non-zeros, by record for the scores and by feature for the
sums: no zero costs anything, but each entry loads a row of the model, which pays where models are wide. Images of
8-bit pixels keep one byte a value in both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import ModuleType

import numpy as np

from tacit.admm.agent import Agent
from tacit.admm.rule import Objective, Output, Prox, Trust
from tacit.machine import extension
from tacit.privacy import noise
from tacit.privacy.mechanism import Gaussian, Laplace, Silence
from tacit.problem.loss import Softmax, Squared
from tacit.problem.regularizer import L2, NoRegularizer
from tacit.problem.sensitivity import Clipped, Declared, Observed
from tacit.types import Array, Norm, Shard

PAD = 16
GROUP = 8  # features
BLOCK = 128  # records of a block in groups: two words of bits
HALF = 8  # floats of half a register
AT_ONCE = 128  # floats of a row that a tile takes at a time
PANEL = 32 << 10  # bytes of a model, or of residuals, that a tile multiplies: a first level cache
LONGEST = 256  # features of a tile and records of a block: an index is a byte
SAMPLE = 1024  # records that tell how sparse all of them are

Records = object  # a capsule of the extension
Supported = tuple[object, tuple[type, ...]]  # a choice, and the types that have a form

# The choices that have a compiled form (fast engine) and a stacked one (torch engine); a new choice needs neither. The
# fast engine moves an agent with any other choice by the agent's own code; the torch engine refuses it by name.
SUPPORTED_LOSSES = (Softmax, Squared)
SUPPORTED_BOUNDS = (Observed, Declared, Clipped)


def compiled() -> ModuleType | None:
    """The extension module; None where it was not built, or TACIT_NO_KERNELS is set."""
    return extension("tacit.engine._kernels")


def gradient_choices(agent: Agent) -> Iterator[Supported]:
    """The choices that a gradient depends on."""
    yield agent.problem.loss, SUPPORTED_LOSSES
    yield agent.variant.bound, SUPPORTED_BOUNDS


def step_choices(agent: Agent) -> Iterator[Supported]:
    """The choices that a step depends on, apart from the set W."""
    yield agent.variant.rule, (Prox, Trust)
    yield agent.variant.perturbation, (Objective, Output)
    yield agent.variant.mechanism, (Laplace, Gaussian, Silence)
    yield agent.problem.regularizer, (L2, NoRegularizer)


def all_supported(choices: Iterable[Supported]) -> bool:
    """Whether every choice is of a type that has a form; a subclass may differ, and has none."""
    return all(type(choice) in types for choice, types in choices)


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


def grouped(
    shard: Shard, x_norm: dict[Norm, Array], n_classes: int, whole: bool, dtype: type = np.float32,
    order: Array | None = None,
) -> Records:  # fmt: skip
    """The records of a shard in groups of features, for sums in `dtype`.

    `whole` keeps rows as they are; otherwise features stand in `order`, and groups that are empty are left out.
    """
    x, scale = (shard.x, 1.0) if whole or dtype is np.float64 else bytes_if_exact(shard.x)  # v/255 is no float32
    n, features = x.shape
    layout: tuple[Array | None, ...] = (np.ascontiguousarray(x), None, None, None, None)
    if not whole or features < GROUP:
        padded = _in_groups(x if order is None else x[:, order])
        there = np.asarray(padded.any(2))
        start = np.concatenate([[0], np.cumsum(there.sum(1))])
        blocks = np.pad(there, ((0, -n % BLOCK), (0, 0))).reshape(-1, BLOCK, there.shape[1])
        layout = (padded[there], start, _bits(there), _bits(blocks.transpose(0, 2, 1)), order)
    return _compiled().groups(n, features, n_classes, scale, *layout, _labels(shard), _norms(x_norm, dtype))


def tiled(shard: Shard, x_norm: dict[Norm, Array], n_classes: int, width: int) -> Records:
    """The non-zeros of a shard, in tiles that fit models of `width` floats a feature."""
    x, scale = bytes_if_exact(shard.x)
    n, features = x.shape
    tile = min(LONGEST, PANEL // (4 * min(width, AT_ONCE)))
    block = min(LONGEST, max(1, -(-n // max(1, round(n / tile)))))  # blocks of one size
    tile = min(tile, features)
    parts = [x[i : i + block] for i in range(0, n, block)]
    wide = [np.pad(part, ((0, 0), (0, -features % tile))).reshape(len(part), -1, tile) for part in parts]
    by_record = _lists([part.transpose(1, 0, 2).reshape(-1, tile) for part in wide])
    by_feature = _lists([part.T for part in parts])
    return _compiled().tiles(
        n, features, n_classes, tile, block, scale, by_record, by_feature, _labels(shard), _norms(x_norm, np.float32)
    )


def some_rows(shards: Sequence[Shard]) -> Array:
    """Up to a few thousand records of all shards, evenly; of these the records that are here."""
    step = max(1, sum(map(len, shards)) // SAMPLE)
    return np.concatenate([shard.x[::step] if shard.here else shard.x[:0] for shard in shards])


def patches(features: int) -> Array | None:
    """An order of features for square images: patches of four rows by two columns, one a group; None for other numbers.

    Strokes then fill fewer groups than runs of eight pixels do. The order is a function of J alone, which is public: no
    record decides in which order a score is summed (tacit.query.gradient).
    """
    side = math.isqrt(features)
    if side * side != features or side % 4:
        return None
    return np.arange(features).reshape(side // 4, 4, side // 2, 2).transpose(0, 2, 1, 3).reshape(-1)


def filled_counts(x: Array, order: Array | None = None) -> Array:
    """[non-zeros, numbers, groups that hold a non-zero, groups]."""
    groups = _in_groups(x if order is None else x[:, order]).any(2)
    return np.array([np.count_nonzero(x), x.size, np.count_nonzero(groups), groups.size])


def filled(counts: Array) -> tuple[float, float]:
    """(the share of non-zeros, the share of groups that hold one)."""
    entries, numbers, full, groups = counts.tolist()
    return entries / max(1, numbers), full / max(1, groups)


def _in_groups(x: Array) -> Array:
    """(n, J) as (n, groups, GROUP), padded with zeros."""
    n_groups = -(-x.shape[1] // GROUP)
    return np.pad(x, ((0, 0), (0, n_groups * GROUP - x.shape[1]))).reshape(len(x), n_groups, GROUP)


def _compiled() -> ModuleType:
    kernels = compiled()
    assert kernels is not None
    return kernels


def _labels(shard: Shard) -> Array:
    """A copy that nobody else can write to: the loops check labels once, and write where they point."""
    return np.array(shard.y)  # int64, or float64 for numbers to predict


def _norms(x_norm: dict[Norm, Array], dtype: type) -> tuple[Array | None, Array | None]:
    """(|x_i|_1, |x_i|_2) as the extension reads them."""

    def own(norm: Norm) -> Array | None:
        return x_norm[norm].astype(dtype) if norm in x_norm else None

    return own(Norm.L1), own(Norm.L2)


def _bits(there: Array) -> Array:
    """(..., n) truth values as whole words of 64 bits."""
    words = np.zeros((*there.shape[:-1], -(-there.shape[-1] // 64)), np.uint64)
    packed = np.packbits(there, axis=-1, bitorder="little")
    words.view(np.uint8)[..., : packed.shape[-1]] = packed  # little-endian words
    return words


def _lists(parts: Sequence[Array]) -> tuple[Array, Array, Array]:
    """(start, index, value) of the non-zeros in the rows of all parts."""
    found = [np.nonzero(part) for part in parts]
    counts = [np.bincount(row, minlength=len(part)) for part, (row, _) in zip(parts, found, strict=True)]
    values = [part[where] for part, where in zip(parts, found, strict=True)]
    start = np.concatenate([[0], np.cumsum(np.concatenate([[], *counts]))]).astype(np.int64)
    index = np.concatenate([np.empty(0, np.uint8), *(column.astype(np.uint8) for _, column in found)])
    return start, index, np.concatenate([parts[0][:0, 0] if parts else np.empty(0, np.float32), *values])


def bytes_if_exact(x: Array) -> tuple[Array, float]:
    """x as bytes over 255 where that is what it is, else x itself."""
    if x.size and x.min() >= 0 and x.max() <= 1:
        pixels = np.rint(x * np.float32(255))
        if (pixels / np.float32(255) == x).all():
            return pixels.astype(np.uint8), 1 / 255
    return x, 1.0
