"""Beyond all pairs: a public graph, and the bound on how often a coalition cuts the honest agents apart."""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from tacit.agent.masks.graph import ALL_PAIRS, FAILURE, GRINDING, degree, holds, neighbours
from tacit.agent.masks.masker import Masker, Question, Terms, unmasked

ASKED = "the fingerprint of what is asked"
NAMES = [f"agent-{i:03}" for i in range(130)]


def connected(n: int, half: int, honest: set[int]) -> bool:
    """Whether the honest places of a circle reach each other, by walking."""
    seen, ahead = set[int](), {min(honest)}
    while ahead:
        at = ahead.pop()
        seen.add(at)
        near = {(at + sign * step) % n for step in range(1, half + 1) for sign in (-1, 1)}
        ahead |= (near & honest) - seen
    return seen == honest


@pytest.mark.parametrize(("n", "half"), [(9, 1), (10, 2), (12, 2), (12, 3)])
def test_the_bound_is_above_the_probability_of_a_cut_and_is_not_idle(n: int, half: int) -> None:
    tight = []
    for colluding in range(n - 1):
        placements = [set(range(n)) - set(some) for some in combinations(range(n), colluding)]
        cut = Fraction(sum(not connected(n, half, honest) for honest in placements), len(placements))
        windows = Fraction(math.perm(colluding, 2 * half), math.perm(n, 2 * half))
        bound = windows * n * (n - 1) / 2
        assert cut <= bound
        assert (colluding < 2 * half) == (bound == 0)
        assert holds(n, colluding, 2 * half, 3) == (bound <= Fraction(1, 8))
        tight.append(cut and bound / cut)
    assert 0 < min(ratio for ratio in tight if ratio) < 10


@pytest.mark.parametrize(
    ("n", "colluding"), [(101, 10), (300, 75), (1000, 100), (1000, 333), (1000, 500), (10_000, 3333)]
)
def test_the_degree_is_the_smallest_that_keeps_the_target(n: int, colluding: int) -> None:
    k, colluding = degree(n, colluding), max(colluding, n // 3)  # a third is reckoned with, whatever was agreed
    assert k % 2 == 0

    def exponent(k: int) -> float:
        """log2 of the bound, by logarithms of its factors."""
        factors = sum(math.log2((colluding - i) / (n - i)) for i in range(k)) if k <= colluding else -math.inf
        return math.log2(n * (n - 1) / 2) + factors

    assert exponent(k) <= -(FAILURE + GRINDING) < exponent(k - 2)


def test_few_agents_or_a_large_coalition_take_all_pairs() -> None:
    assert degree(ALL_PAIRS, 0) == ALL_PAIRS - 1
    assert degree(ALL_PAIRS + 1, ALL_PAIRS - 1) == ALL_PAIRS
    assert degree(ALL_PAIRS + 1, 0) == degree(ALL_PAIRS + 1, (ALL_PAIRS + 1) // 3) > 20
    assert degree(1000, 1) == degree(1000, 333) == 82


@pytest.mark.parametrize("seed", [b"a" * 32, b"b" * 32])
def test_whom_an_agent_names_names_it(seed: bytes) -> None:
    near = {name: neighbours(NAMES, name, 6, seed) for name in NAMES}
    assert all(len(set(near[name]) - {name}) == 6 for name in NAMES)
    assert all(name in near[other] for name in NAMES for other in near[name])
    assert near == {name: neighbours(NAMES[::-1], name, 6, seed) for name in NAMES}  # told in any order


def test_another_seed_is_another_circle() -> None:
    near = [set(neighbours(NAMES, NAMES[0], 6, bytes([i]) * 32)) for i in range(200)]
    met = np.array([sum(name in some for some in near) for name in NAMES[1:]])
    expected = 200 * 6 / (len(NAMES) - 1)
    assert ((met - expected) ** 2).sum() / expected < 2 * len(met)  # chi-square: 129 on average, 258 never
    assert met.min() < expected < met.max()


def pair_secret(one: str, other: str) -> bytes:
    return hashlib.sha256(repr(sorted((one, other))).encode()).digest()


def test_masks_on_a_graph_cancel_and_are_drawn_with_neighbours_alone() -> None:
    terms = Terms("run-1", bits=40, threshold=100, colluding=20)
    keys = {name: name.encode() for name in NAMES}
    everybody = [Masker(terms, own, keys, {name: pair_secret(own, name) for name in NAMES}) for own in NAMES]
    question, vectors = Question(2, 0, tuple(NAMES), ASKED), np.arange(len(NAMES) * 3).reshape(-1, 3) - 200
    answers = [
        own.mask(question, row, dict[str, str]().setdefault) for own, row in zip(everybody, vectors, strict=True)
    ]
    assert (unmasked(answers, 40) == vectors.sum(0)).all()
    first, k = everybody[0], degree(len(NAMES), 20)
    assert k < len(NAMES) / 2
    near = neighbours(NAMES, NAMES[0], k, bytes.fromhex(first.asked(question, 3)))
    few = replace(first, secrets={name: first.secrets[name] for name in near})
    assert (few.mask(question, vectors[0], dict[str, str]().setdefault) == answers[0]).all()
    for missing in range(len(NAMES)):  # whoever is left out, what is left is no sum
        short = unmasked(answers[:missing] + answers[missing + 1 :], 40)
        assert (short != vectors.sum(0) - vectors[missing]).all()
