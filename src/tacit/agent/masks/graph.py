"""Which pairs of agents share a mask, and how likely a coalition cuts the honest agents apart.

Up to ALL_PAIRS agents all pairs do. Beyond, n agents stand on a circle in the order of a hash of (seed, name), and each
shares masks with the h before and the h after it: a Harary graph of degree 2h, which everybody can draw from public
numbers. Masks hide all but the sum of the honest agents if these are connected among themselves.

**The bound.** Call c agents colluding, fixed before the seed is known. The honest agents are disconnected only if some
of them stand between two runs of at least h colluding ones: with at most one such run, go around from its end; the next
honest agent is never more than h places away, so it is a neighbour. (This covers an honest agent that has colluding
neighbours alone: it has a run on each side.) Then two disjoint windows of h places hold colluding agents alone. Two
given ones do so with probability c (c-1) ... (c-2h+1) / (n (n-1) ... (n-2h+1)), and there are at most n (n-1)/2 pairs:

    P(disconnected) <= n (n-1)/2  prod_(i < 2h) (c-i)/(n-i)

It is zero for c < 2h. Bell, Bonawitz, Gascon, Lepoint & Raykova (2020) draw such graphs and bound isolation and
connection apart; here one event is both, and there are no secret shares that would need a threshold of neighbours.

**Who draws the seed.** Nobody: it is a digest of run, round, attempt, names and keys, and a server chooses sets, while
colluding agents choose keys. It may try many in search of a bad graph. To a random oracle each trial is a fresh circle,
so 2^GRINDING trials multiply the bound, and `degree` keeps the product below 2^-FAILURE. All rounds and attempts of all
runs are among these trials. For 1,000 agents that takes 82 neighbours where a third colludes and 126 where a half does;
without the search it would be 36 and 58. 2^-FAILURE is part of the delta of a run with such a graph.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from functools import lru_cache

ALL_PAIRS = 100  # agents
FAILURE = 40  # -log2 of the probability that any graph ever found is bad
GRINDING = 80  # log2 of the graphs that an adversary can try: as many hashes are out of reach


def holds(n: int, colluding: int, degree: int, bits: int) -> bool:
    """Whether the bound above is at most 2^-bits, in exact integers."""
    return (n * (n - 1) // 2 * math.perm(colluding, degree)) << bits <= math.perm(n, degree)


@lru_cache(maxsize=256)
def degree(n: int, colluding: int) -> int:
    """How many neighbours each of n agents has: the smallest even number that is safe, or n - 1.

    A third of the agents is taken to collude, if no more are: the noise is shared out for `colluding` of them, and one
    more takes a little of it off, but one more neighbour than was reckoned with would open a chosen answer whole.
    """
    if n > ALL_PAIRS:
        for even in range(2, n - 1, 2):
            if holds(n, max(colluding, n // 3), even, FAILURE + GRINDING):
                return even
    return n - 1


def neighbours(names: Sequence[str], own: str, degree: int, seed: bytes) -> list[str]:
    """Return with whom `own` shares masks; whom it names, name it."""
    if degree >= len(names) - 1:
        return [name for name in names if name != own]
    circle = sorted(names, key=lambda name: hashlib.sha256(seed + name.encode()).digest())
    at, n = circle.index(own), len(circle)
    return [circle[(at + step) % n] for half in range(1, degree // 2 + 1) for step in (-half, half)]
