"""Simulated noise as a pure function of its key: (seed, agent, round, step, entry) -> a number.

Philox-4x64-10 is counter based: no state is carried from one draw to the next, so any engine, on any
number of threads and in any order of agents, draws the same noise. Each 64-bit word gives two 32-bit
integers n, low half first; entry i of the noise uses the i-th integer (the Gaussian uses two an entry).

    Laplace    sign(n) * -ln u      u from the low 31 bits, the sign from the top bit
    Gaussian   sqrt(-2 ln u) cos(2 pi v)    (Box-Muller), u from the even integers, v from the odd ones
    radial     r g / |g|            g the Gaussian, r the sum of d numbers -ln u from the d integers after its own

The numbers are float32 in every engine. They are for experiments: reproducible, and so predictable. Whole numbers of
a binomial law, and the coins of random rounding, are drawn by NumPy's own generator from the same stream.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tacit.types import Array


def integers(key: tuple[int, int], t: int, step: int, n: int) -> Array:
    """n uniform 32-bit integers of the stream key = (seed, agent), round t, local step."""
    words = np.random.Philox(key=key, counter=(0, 0, step, t)).random_raw((n + 1) // 2)
    return words.astype("<u8", copy=False).view("<u4")[:n]


def stream(key: tuple[int, int], t: int, step: int) -> Callable[[int], bytes]:
    """The same words as bytes, as many as are asked for: for exact noise (tacit.privacy.exact) that is simulated."""
    source = np.random.Philox(key=key, counter=(0, 0, step, t))

    def bits(n: int) -> bytes:
        return source.random_raw(-(-n // 8)).astype("<u8", copy=False).tobytes()[:n]

    return bits


def unit(bits: Array, width: int) -> Array:
    """(bits + 1/2) / 2^width in (0, 1], as float32: it may round to one, never to zero: the logarithm is finite."""
    return (bits.astype(np.float64) + 0.5).astype(np.float32) * np.float32(2.0**-width)


def laplace(key: tuple[int, int], t: int, step: int, shape: tuple[int, ...]) -> Array:
    """Standard Laplace noise: density exp(-|x|)/2, E|x| = 1, variance 2."""
    n = integers(key, t, step, math.prod(shape))
    size = -np.log(unit(n & np.uint32(0x7FFFFFFF), 31))
    return np.copysign(size, n.view(np.int32).astype(np.float32)).reshape(shape)


def gaussian(key: tuple[int, int], t: int, step: int, shape: tuple[int, ...]) -> Array:
    """Standard Gaussian noise: mean 0, variance 1."""
    n = integers(key, t, step, 2 * math.prod(shape))
    radius = np.sqrt(np.float32(-2) * np.log(unit(n[0::2], 32)))
    return (radius * np.cos(np.float32(2 * math.pi) * unit(n[1::2], 32))).reshape(shape)


def radial(key: tuple[int, int], t: int, step: int, shape: tuple[int, ...]) -> Array:
    """Density proportional to exp(-|x|_2) in d dimensions: |x| ~ Gamma(d, 1), in a uniform direction."""
    d = math.prod(shape)
    g = gaussian(key, t, step, shape).astype(np.float64)
    radius = -np.log(unit(integers(key, t, step, 3 * d)[2 * d :], 32)).sum(dtype=np.float64)
    return np.asarray(g * (radius / np.linalg.norm(g)), dtype=np.float32)


def binomial(key: tuple[int, int], t: int, step: int, coins: int, shape: tuple[int, ...]) -> Array:
    """The heads of so many fair coins, an even number, less half of them: mean 0, variance coins / 4, int64."""
    heads = _generator(key, t, step).binomial(coins, 0.5, shape)
    return np.asarray(heads - coins // 2)


def rounded(values: Array, key: tuple[int, int], t: int, step: int) -> Array:
    """One of the two whole numbers beside each value, whose mean is the value: int64."""
    below = np.floor(values)
    up = _generator(key, t, step).random(values.shape) < values - below
    return np.asarray(below.astype(np.int64) + up)


def _generator(key: tuple[int, int], t: int, step: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=key, counter=(0, 0, step, t)))
