"""Whole numbers with binomial noise: the bound holds against laws that are written out, and is close to them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import SpecError
from tacit.privacy import binomial, noise
from tacit.privacy.budget import calibrate, total
from tacit.privacy.release import BinomialRelease, GaussianRelease, GeneralRelease, described, events_of, merge

SOME = settings(max_examples=25, deadline=None)


def log_law(coins: int) -> np.ndarray:
    """ln P(n) for n = -coins/2 .. coins/2."""
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1.0, coins + 1)))])
    return log_factorial[-1] - log_factorial - log_factorial[::-1] - coins * math.log(2)


def rounded_law(coins: int, value: float, room: int) -> np.ndarray:
    """The law of round(value) + n over the whole numbers of -coins/2 - room .. coins/2 + room."""
    law, below = np.exp(log_law(coins)), math.floor(value)
    whole = np.zeros(len(law) + 2 * room)
    for at, share in ((below, 1 - (value - below)), (below + 1, value - below)):
        whole[room + at : room + at + len(law)] += share * law
    return whole


def exact_epsilon(p: np.ndarray, q: np.ndarray, dp_delta: float) -> float:
    low, high = 0.0, 60.0
    for _ in range(30):
        middle = (low + high) / 2
        enough = np.maximum(0.0, p - math.exp(middle) * q).sum() <= dp_delta
        low, high = (low, middle) if enough else (middle, high)
    return low


@SOME
@given(
    half=st.integers(150, 3000),
    moved=st.integers(1, 20),
    alpha=st.floats(1.01, 60),
    dp_delta=st.sampled_from([1e-5, 1e-8, 1e-12]),
)
def test_moved_by_a_whole_number_one_entry_diverges_by_no_more_than_the_bound(
    half: int, moved: int, alpha: float, dp_delta: float
) -> None:
    release = BinomialRelease(2 * half, float(moved), 1, dp_delta)
    law, cut = log_law(2 * half), binomial.cut(release)
    (cost,) = binomial.square_cost(2 * half, cut + moved, np.array([alpha]))
    if math.isinf(cost):
        return
    kept = slice(half - cut, half + cut + 1)
    tail = np.exp(law[: kept.start]).sum() * 2
    assert tail <= dp_delta
    for sign in (1, -1):
        shifted = law[kept.start + sign * moved : kept.stop + sign * moved]
        sums = np.logaddexp.reduce(alpha * law[kept] + (1 - alpha) * shifted)
        assert sums <= cost * moved**2 + 1e-9


@SOME
@given(
    half=st.integers(500, 2000),
    moves=st.lists(st.floats(0, 6), min_size=1, max_size=8),
    even=st.booleans(),
    alpha=st.floats(1.5, 30),
)
def test_who_knows_how_numbers_were_rounded_learns_no_more_in_the_mean_than_the_bound_says(
    half: int, moves: list[float], even: bool, alpha: float
) -> None:
    """Statement 3, with the sums of statement 2 written out; half a step in every entry is what rounding costs most."""
    moves = [0.5] * len(moves) if even else moves
    release = BinomialRelease(2 * half, float(np.linalg.norm(moves)) or 1.0, len(moves), 1e-8)
    law, cut = log_law(2 * half), binomial.cut(release)
    kept = np.arange(half - cut, half + cut + 1)
    sums = [np.exp(np.logaddexp.reduce(alpha * law[kept] + (1 - alpha) * law[kept + k])) for k in range(9)]
    known = sum(math.log((1 - m % 1) * sums[int(m)] + m % 1 * sums[int(m) + 1]) for m in moves)
    (bound,) = binomial.renyi(release, np.array([alpha]))
    assert known / (alpha - 1) <= bound + 1e-9


@SOME
@given(
    half=st.integers(200, 400),
    moved=st.floats(0.2, 12),
    angle=st.floats(0, math.pi / 2),
    value=st.tuples(st.floats(-3, 3), st.floats(-3, 3)),
    dp_delta=st.sampled_from([1e-3, 1e-5]),
)
def test_the_epsilon_of_a_release_of_two_entries_is_at_least_that_of_its_law_written_out(
    half: int, moved: float, angle: float, value: tuple[float, float], dp_delta: float
) -> None:
    """Both entries rounded at random, whatever they were and however the record moves them."""
    claimed = total([(BinomialRelease(2 * half, moved, 2, 0.01 * dp_delta), 1)], dp_delta).epsilon
    step = moved * math.cos(angle), moved * math.sin(angle)
    here = [rounded_law(2 * half, v, 16) for v in value]
    there = [rounded_law(2 * half, v + s, 16) for v, s in zip(value, step, strict=True)]
    p, q = np.outer(*here), np.outer(*there)
    assert max(exact_epsilon(p, q, dp_delta), exact_epsilon(q, p, dp_delta)) <= claimed


def test_the_bound_is_near_that_of_gaussian_noise_where_coins_are_many_and_steps_fine() -> None:
    for rounds, epsilon in ((1, 1.0), (100, 1.0), (100, 8.0)):
        entries, moved = 2080, 4 * math.sqrt(2080)
        found = calibrate(BinomialRelease(10**6, moved, entries, 1e-8 / rounds), epsilon, 1e-6, rounds)
        gaussian = calibrate(GaussianRelease(1.0), epsilon, 1e-6, rounds)
        assert isinstance(found, BinomialRelease)
        assert isinstance(gaussian, GaussianRelease)
        multiplier = math.sqrt(found.coins) / 2 / moved
        assert gaussian.multiplier < multiplier < 1.12 * gaussian.multiplier
        assert 0.999 * epsilon < total([(found, rounds)], 1e-6).epsilon <= epsilon


def published(coins: int, l1: float, l2: float, peak: float, entries: int, dp_delta: float) -> float:
    """Theorem 1 of Agarwal et al. (2018) for fair coins, where its condition on the coins holds."""
    variance = coins / 4
    assert variance >= max(23 * math.log(10 * entries / dp_delta), 2 * peak)
    b, c, d = 1 / 3, 7 * math.sqrt(2) / 4, 2 / 3
    first = l2 * math.sqrt(2 * math.log(1.25 / dp_delta)) / math.sqrt(variance)
    second = (l2 * c * math.sqrt(math.log(10 / dp_delta)) + l1 * b) / (variance * (1 - dp_delta / 10))
    tail = d * math.log(20 * entries / dp_delta) * math.log(10 / dp_delta)
    return first + second + peak * (2 / 3 * math.log(1.25 / dp_delta) + tail) / variance


@pytest.mark.parametrize("coins", [10_000, 100_000, 10**7])
def test_one_release_costs_no_more_than_by_the_published_theorem(coins: int) -> None:
    """For a vector that rounding does not move: their terms are for whole numbers, 16 of which move by one."""
    release = BinomialRelease(coins, 4.0, 16, 1e-8)
    assert total([(release, 1)], 1e-6).epsilon <= published(coins, 16.0, 4.0, 1.0, 16, 1e-6)


def test_few_coins_or_a_long_way_have_no_bound() -> None:
    for release in (BinomialRelease(20, 1.0, 1, 1e-6), BinomialRelease(1000, 450.0, 1, 1e-6)):
        assert math.isinf(total([(release, 1)], 1e-5).epsilon)
    spent = BinomialRelease(10_000, 1.0, 4, 1e-6)
    assert total([(spent, 9)], 1e-5).epsilon < math.inf
    assert math.isinf(total([(spent, 11)], 1e-5).epsilon)  # what was cut is all of delta


def test_a_binomial_release_composes_with_others_and_costs_more_than_either() -> None:
    one, other = BinomialRelease(10_000, 4.0, 12, 1e-8), GeneralRelease(0.1, 1e-7)
    both = total([(one, 2), (other, 1)], 1e-5)
    assert [bound.name for bound in both.bounds] == ["rdp"]
    assert both.epsilon > max(total([(one, 2)], 1e-5).epsilon, total([(other, 1)], 1e-5).epsilon)


def test_a_release_that_no_record_moves_costs_nothing() -> None:
    assert merge([(BinomialRelease(100, 0.0, 3, 1e-6), 5)]) == ()


def test_a_binomial_release_survives_json_and_gets_quieter_by_whole_coins() -> None:
    release = BinomialRelease(1000, 2.5, 12, 1e-8)
    assert events_of(described([(release, 2)], []), 3) == [(release, 6)]
    assert release.quieter(2.0).coins == 250
    assert release.quieter(1e9).coins == 2
    assert release.quieter(0.5).coins == 4000


@pytest.mark.parametrize(
    "terms", [(3, 1.0, 1, 1e-6), (0, 1.0, 1, 1e-6), (4, -1.0, 1, 1e-6), (4, 1.0, 0, 1e-6), (4, 1.0, 1, 0.0)]
)
def test_what_is_no_binomial_release_is_refused(terms: tuple[int, float, int, float]) -> None:
    with pytest.raises(SpecError, match="a binomial release needs"):
        BinomialRelease(*terms)


def test_binomial_noise_has_the_law_of_heads() -> None:
    drawn = noise.binomial((1, 2), 3, 0, 20, (200_000,))
    assert drawn.dtype == np.int64
    counts = np.bincount(drawn + 10, minlength=21)
    expected = 200_000 * np.exp(log_law(20))
    assert (((counts - expected) ** 2 / expected).sum()) < 50  # chi-square of 20 degrees: above with chance 2e-4
    assert (noise.binomial((1, 2), 3, 0, 20, (5,)) == drawn[:5]).all()


def test_random_rounding_takes_a_neighbour_whose_mean_is_the_value() -> None:
    values = np.repeat([-1.25, -1e-20, 0.0, 0.5, 7.0, 2.9], 40_000).reshape(6, -1)
    whole = noise.rounded(values, (4, 5), 1, 1)
    assert ((whole == np.floor(values)) | (whole == np.ceil(values))).all()
    np.testing.assert_allclose(whole.mean(1), values[:, 0], atol=0.01)
    assert (whole[2] == 0).all()
    assert (whole[4] == 7).all()
