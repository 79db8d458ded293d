"""Noise for deployment: exact discrete Laplace and Gaussian integers from the operating system's entropy.

    P(n) ~ exp(-|n| / t)          discrete Laplace of scale t
    P(n) ~ exp(-n^2 / (2 t^2))    discrete Gaussian of parameter t

Floating-point noise leaks: which doubles a sampler can reach depends on the value it is added to. Here no float
takes part in a draw. Every decision is an integer comparison whose probability is exactly the one written down,
and the noise is added to integers (see tacit.privacy.lattice, which puts a vector on a grid). The laws are those of
Canonne, Kamath and Steinke (2020); the draw is arranged for arrays. With |n| = u + t v, 0 <= u < t,

    exp(-|n| / t)        = e^-v        exp(-u/t)
    exp(-n^2 / (2 t^2))  = e^(-v^2/2)  exp(-u/t)^v  exp(-u^2 / (2 t^2))

so v comes from a table, u is uniform, and the rest are coins that reject; a fair coin is the sign, and minus zero is
rejected. Words that land on the last digit of a table or of a fraction are not rounded: more digits are drawn.

The compiled twin (_exact.c) draws the same law in finer parts where t is a multiple of FINE: |n| = u + (t / FINE) k,
with k from a table of its own. Then eight bits decide nearly every coin, and a draw takes eight bytes and one division.
It holds no lock of the interpreter, so that agents draw side by side. NumPy draws where it was not built.

`bits(n)` gives n random bytes. By default it is `system`, os.urandom: the kernel's ChaCha20 needs no package, no seed
and no state of ours that a fork or a snapshot could repeat. No byte outlives the call that asked for it. On one core
where os.urandom gives 375 MB/s, 34 M integers of either law a second (8.2 M Laplace and 6.7 M Gaussian by NumPy); two
thirds of that time is the kernel's. The 7 840 entries of MNIST's model take a quarter of a millisecond.

The time of a draw depends (slightly) on the noise: answer at a fixed pace if the server can measure microseconds.
"""

from __future__ import annotations

import enum
import math
import os
from collections.abc import Callable, Iterator
from decimal import Context, Decimal
from functools import lru_cache
from itertools import accumulate, chain, islice, repeat
from types import ModuleType
from typing import TypeAlias

import numpy as np

from tacit.errors import SpecError
from tacit.machine import extension
from tacit.types import Array

Bits: TypeAlias = Callable[[int], bytes]


def system(n: int) -> bytes:
    """n bytes of the operating system."""
    return os.urandom(n)


class Law(enum.Enum):
    """exp(-|n|/t) or exp(-n^2/(2 t^2))."""

    LAPLACE = "laplace"
    GAUSSIAN = "gaussian"


MAX_SCALE = 1 << 41  # u * 2^16 and t * v (v < 2^21, beyond which lies e^-2000000) stay below 2^63
_BATCH = 1 << 15  # candidates a pass: its arrays stay in the second-level cache
_DIGIT = 16  # bits of a fraction that one word decides
FINE = 64  # parts of t in the compiled code, for scales that it divides: the grid (tacit.privacy.lattice) makes such
_FIRST, _TABLE = 16, 64  # bits of the word that mostly tells a level there, and of the table that tells the others


@lru_cache
def compiled() -> ModuleType | None:
    """The extension module; None where it was not built, or TACIT_NO_KERNELS is set."""
    return extension("tacit.privacy._exact")


def sample(law: Law, scale: int, shape: tuple[int, ...], bits: Bits = system) -> Array:
    """int64 noise of the law, t = scale."""
    if not isinstance(scale, (int, np.integer)) or not 1 <= scale <= MAX_SCALE:
        raise SpecError(f"a discrete law needs a whole scale from 1 to 2^41 grid steps, got {scale}: choose the grid.")
    out = np.empty(math.prod(shape), dtype=np.int64)
    module = compiled()
    if module is None:
        _fill(law, int(scale), out, bits)
    else:
        parts = 1 if scale % FINE else FINE
        direct, tail = _tables(law, parts)
        code = {Law.LAPLACE: module.LAPLACE, Law.GAUSSIAN: module.GAUSSIAN}[law]
        module.fill(code, int(scale), parts, direct, tail, out, bits, lambda word: _resolve(law, word, 64, bits, parts))
    return out.reshape(shape)


def _fill(law: Law, t: int, out: Array, bits: Bits) -> None:
    """Fill `out` with noise, by NumPy."""
    attempt = {Law.LAPLACE: _laplace, Law.GAUSSIAN: _gaussian}[law]
    done = 0
    while done < len(out):  # candidates until there are enough; those beyond are dropped, unseen
        missing = len(out) - done
        got = attempt(t, min(_BATCH, missing * 7 // 4 + 16), bits)[:missing]
        out[done : done + len(got)] = got
        done += len(got)


def _laplace(t: int, n: int, bits: Bits) -> Array:
    """At most n integers with P(k) = tanh(1/(2t)) exp(-|k|/t): exactly d/t-DP for integers d apart."""
    u = _uniform(t, n, bits)
    u = u[_exp_minus(u, t, bits)]
    return _signed(u.astype(np.int64) + t * _level(Law.LAPLACE, len(u), bits), bits)


def _gaussian(t: int, n: int, bits: Bits) -> Array:
    """At most n integers with P(k) ~ exp(-k^2 / (2 t^2)): d^2/(2 t^2)-zCDP for integer vectors |d|_2 apart."""
    u = _uniform(t, n, bits)
    v = _level(Law.GAUSSIAN, len(u), bits)
    kept = np.flatnonzero(_exp_minus(u, t, bits, half_square=True))
    u, v = u[kept], v[kept]
    kept = np.ones(len(u), dtype=bool)
    k = 1
    while (rest := np.flatnonzero(kept & (v >= k))).size:  # v coins of probability exp(-u/t)
        kept[rest] = _exp_minus(u[rest], t, bits)
        k += 1
    return _signed((u.astype(np.int64) + t * v)[kept], bits)


def _uniform(t: int, n: int, bits: Bits) -> Array:
    """At most n integers uniform on 0 .. t-1: 64-bit words modulo t, without the last, incomplete, stretch."""
    words = np.frombuffer(bits(8 * n), dtype="<u8")
    last = (1 << 64) - (1 << 64) % t - 1
    words = words[words <= np.uint64(last)] if last < (1 << 64) - 1 else words
    return np.asarray(words - words // np.uint64(t) * np.uint64(t))


def _signed(size: Array, bits: Bits) -> Array:
    """A fair sign for each size; minus zero is rejected, or zero would count twice."""
    signs = np.unpackbits(np.frombuffer(bits((len(size) + 7) // 8), dtype=np.uint8), count=len(size)).astype(np.int64)
    return np.asarray(((1 - 2 * signs) * size)[(signs == 0) | (size != 0)])


def _exp_minus(u: Array, t: int, bits: Bits, half_square: bool = False) -> Array:
    """Coins of probability exp(-g), g = u/t (or u^2/(2 t^2)), 0 <= g <= 1.

    Toss coins of probability g/1, g/2, g/3, ... until one fails; the j-th toss is reached and won with probability
    g^j / j!, and the number won is even with probability 1 - g + g^2/2 - ... = exp(-g).
    """
    even = np.ones(len(u), dtype=bool)
    alive = np.arange(len(u))
    j = 1
    while alive.size:
        if half_square:
            alive = alive[_coin(u[alive], t, bits)]
        share = 2 * j if half_square else j
        if share > 1:
            alive = alive[_coin(np.ones(len(alive), dtype=np.uint64), share, bits)]
        alive = alive[_coin(u[alive], t, bits)]
        even[alive] ^= True
        j += 1
    return even


def _coin(part: Array, whole: int, bits: Bits) -> Array:
    """Coins of probability part/whole, part <= whole < 2^47: random digits against those of the fraction."""
    shifted = part << np.uint64(_DIGIT)
    digits = shifted // np.uint64(whole)
    words = np.frombuffer(bits(_DIGIT // 8 * len(part)), dtype="<u2")
    less = words < digits
    tied = np.flatnonzero(words == digits)
    if tied.size:  # one in 2^16: the rest of the fraction decides
        rest = (shifted - digits * np.uint64(whole))[tied]
        tied, rest = tied[rest > 0], rest[rest > 0]
        less[tied] = _coin(rest, whole, bits)
    return less


def _level(law: Law, n: int, bits: Bits) -> Array:
    """v >= 0 with P(v) ~ e^-v, or ~ e^(-v^2/2): how many of P(v >= 1), P(v >= 2), ... a uniform word lies below."""
    table = _table(law)
    words = np.frombuffer(bits(4 * n), dtype="<u4")
    at = np.searchsorted(table, words, side="right")
    v = (len(table) - at).astype(np.int64)
    for i in np.flatnonzero((table[at - 1] == words) & (at > 0)):  # about 20 words in 2^32
        v[i] = _resolve(law, int(words[i]), 32, bits)
    return v


@lru_cache
def _table(law: Law) -> Array:
    """floor(2^32 P(v >= k)), ascending and ending the tail with 0."""
    return np.array([low for low, _ in reversed(_tail(law, 32))], dtype=np.uint32)


@lru_cache
def _tables(law: Law, parts: int) -> tuple[Array, Array]:
    """For the compiled code: the level of every word of 16 bits, and floor(2^64 P(level >= k)), descending to 0.

    Where one of these numbers begins with a word, that word alone does not tell the level: it is marked TIED.
    """
    module = compiled()
    assert module is not None
    tail = np.array([low for low, _ in _tail(law, _TABLE, parts)], dtype=np.uint64)
    begins = (tail >> np.uint64(_TABLE - _FIRST)).astype(np.int64)
    words = np.arange(1 << _FIRST)
    direct = len(tail) - np.searchsorted(begins[::-1], words, side="right")
    direct[begins] = module.TIED
    return direct.astype(np.uint16), tail


def _resolve(law: Law, word: int, width: int, bits: Bits, parts: int = 1) -> int:
    """The level of the uniform number that begins with these digits, after drawing as many more as it takes."""
    while True:
        word, width = word << 64 | int.from_bytes(bits(8), "little"), width + 64
        tail = _tail(law, width, parts)
        if all(word < low or word >= high for low, high in tail):  # [word, word + 1) meets no P(v >= k)
            return sum(word < low for low, _ in tail)


@lru_cache
def _tail(law: Law, width: int, parts: int = 1) -> tuple[tuple[int, int], ...]:
    """Integers below and above 2^width P(level >= k) for k = 1, 2, ..., up to the first that is less than one.

    A level is one of `parts` of t: P(level = k) ~ exp(-k / parts), so that P(level >= k) = exp(-k / parts); or, where
    the law is Gaussian, P(level = k) ~ exp(-k^2 / (2 parts^2)). Both come by multiplication: the exponents of two
    neighbours differ by 1 / parts, or by (2k + 1) / (2 parts^2). After k products the relative error is below k^2 units
    of the last digit, and the 40 digits beyond the last bit leave it far below the slack.
    """
    d = Context(prec=width // 3 + 40)
    slack = Decimal("1e-20")
    if law is Law.LAPLACE:
        shares: Iterator[Decimal] = accumulate(repeat(d.exp(d.divide(Decimal(-1), Decimal(parts)))), d.multiply)
    else:
        step = d.exp(d.divide(Decimal(-1), Decimal(2 * parts * parts)))
        ratios = accumulate(chain([step], repeat(d.multiply(step, step))), d.multiply)
        levels = parts * (math.isqrt(2 * width + 200) + 1)  # what lies beyond is below e^-100 of the last bit
        weights = list(accumulate(chain([Decimal(1)], islice(ratios, levels)), d.multiply))
        sums = list(accumulate(reversed(weights), d.add))[::-1]  # from the small ones up
        shares = (d.divide(rest, sums[0]) for rest in sums[1:])
    bounds = []
    for share in shares:
        scaled = d.multiply(share, Decimal(1 << width))
        bounds.append((max(0, math.floor(d.subtract(scaled, slack))), math.ceil(d.add(scaled, slack))))
        if bounds[-1][0] == 0:
            break
    return tuple(bounds)
