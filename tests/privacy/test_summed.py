"""Sums of shares are exact, their noise has the law that was promised, and too little of it is seen."""

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import DataError, SpecError
from tacit.privacy import lattice
from tacit.privacy.exact import FINE, Law, sample
from tacit.privacy.summed import (
    Attempt,
    Peers,
    Summed,
    bound_steps,
    gap,
    log_ratio,
    modulus,
    reach,
    releases,
    share_steps,
)
from tacit.types import Norm

DIGITS = Context(prec=90)
PEERS = st.tuples(st.integers(1, 200), st.integers(0, 199)).filter(lambda p: p[1] < p[0]).map(lambda p: Peers(*p))


def bits(seed=0):
    return np.random.default_rng(seed).bytes


@lru_cache
def discrete_gaussian(variance, reach):
    """P(n), n = -reach .. reach, of the discrete Gaussian with s^2 = variance, to 90 digits."""
    with localcontext(DIGITS):
        weights = [(-Decimal(n * n) / (2 * Decimal(str(variance)))).exp() for n in range(-reach, reach + 1)]
        return [w / sum(weights) for w in weights]


def _at(law, one, n, reach):
    """P(n) of the sum of two, from those within reach."""
    both = range(max(-reach, n - reach), min(reach, n + reach) + 1)
    return sum((law[i + reach] * one[n - i + reach] for i in both), Decimal(0))


@lru_cache
def law_of_sum(share, summands):
    """P(n), n = -reach .. reach, of the sum of independent discrete Gaussians, and the reach: beyond lies e^-300."""
    reach = math.ceil(25 * share * math.sqrt(summands))
    one = discrete_gaussian(share * share, reach)
    with localcontext(DIGITS):
        law = one
        for _ in range(summands - 1):
            law = [_at(law, one, n, reach) for n in range(-reach, reach + 1)]
        return law, reach


def hockey_stick(law, apart, epsilon):
    """sum max(0, P(n) - e^epsilon P(n - apart)): the exact delta of one integer at this epsilon."""
    p = np.array([float(x) for x in law])
    return np.maximum(p[apart:] - math.exp(epsilon) * p[:-apart], 0).sum() + p[:apart].sum()


def gaussian_delta(multiplier, epsilon):
    """The delta of continuous Gaussian noise of `multiplier` sensitivities (Balle & Wang 2018)."""

    def below(x):
        return math.erfc(-x / math.sqrt(2)) / 2

    half, shift = 1 / (2 * multiplier), epsilon * multiplier
    return below(half - shift) - math.exp(epsilon) * below(-half - shift)


def shares_of(attempt, values):
    return [attempt.share(value, bits(p)) for p, value in enumerate(values)]


# --- the sum is exact


@given(
    bound=st.integers(1, 2**40),
    share=st.integers(1, 2**37),
    width=st.integers(45, 64),
    step=st.integers(-60, 10).map(lambda e: 2.0**e),
    values=st.integers(1, 4).flatmap(
        lambda d: st.lists(st.lists(st.floats(-1, 1), min_size=d, max_size=d), min_size=1)
    ),
)
def test_the_total_is_the_integer_sum_whenever_that_lies_in_reach_and_else_differs_by_the_modulus(
    bound, share, width, step, values
):
    attempt = Attempt(step, share, bound, width, 2 ** (width - 1) - 1)
    reals = np.array(values) * bound * step * 1.5  # some saturate
    residues = np.add.reduce(shares_of(attempt, reals), dtype=np.uint64)
    total = attempt.total(residues)
    assert total.dtype == np.float64
    assert np.array_equal(total, attempt.total(residues & np.uint64(2**width - 1)))
    drawn = [sample(Law.GAUSSIAN, share, (reals.shape[1],), bits(p)) for p in range(len(values))]
    for j, seen in enumerate(total):
        whole = [max(-bound, min(bound, round(Fraction(float(v)) / Fraction(step)))) for v in reals[:, j]]
        exact = sum(whole) + sum(int(n[j]) for n in drawn)
        lifted = (exact + 2 ** (width - 1)) % 2**width - 2 ** (width - 1)
        assert seen == float(lifted) * step
        if -(2 ** (width - 1)) <= exact < 2 ** (width - 1):
            assert lifted == exact


def test_a_run_as_it_is_adds_up_to_the_last_step():
    run = Summed(multiplier=12.0, sensitivity=0.7 / 60_000, largest=0.7 / 10, dimension=784, releases=releases(100, 5))
    attempt = run.attempt(Peers(10, 1))
    values = np.random.default_rng(0).uniform(-0.07, 0.07, (10, 784))
    shares = shares_of(attempt, values)
    assert all(share.dtype == np.uint64 and int(share.max()) >> attempt.width == 0 for share in shares)
    whole = np.rint(values / attempt.step).astype(np.int64).sum(0)
    noise = sum(sample(Law.GAUSSIAN, attempt.share_steps, (784,), bits(p)) for p in range(10))
    assert np.array_equal(attempt.total(np.add.reduce(shares)), (whole + noise) * attempt.step)


# --- the law of the noise


@pytest.mark.parametrize("share", [0.5, 0.75, 1.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("summands", [2, 3, 5])
def test_the_law_of_the_sum_is_within_the_bound_of_one_discrete_gaussian_and_the_bound_is_not_idle(share, summands):
    law, reach = law_of_sum(share, summands)
    one = discrete_gaussian(share * share * summands, reach)
    middle = range(reach - math.ceil(5 * share), reach + math.ceil(5 * share) + 1)  # what was cut off is 1e-60 of these
    with localcontext(DIGITS):
        furthest = max(abs((law[n] / one[n]).ln()) for n in middle)
        distance = sum(abs(a - b) for a, b in zip(law, one, strict=True)) / 2
    bound = log_ratio(share, summands)
    assert furthest <= bound
    assert distance <= bound / 2
    if summands == 2:  # with more summands the law is closer still
        assert furthest > bound / 3
        assert furthest > log_ratio(share * 1.3, summands)
    assert bound < 10 * sum(
        math.exp(-2 * (math.pi * share) ** 2 * j / (j + 1)) for j in range(1, summands)
    )  # K., L. & S.


@pytest.mark.parametrize("share", [1, 2, 3])
@pytest.mark.parametrize("summands", [1, 2, 3, 5])
def test_the_gap_bounds_the_distance_of_the_sum_to_rounded_continuous_noise(share, summands):
    law, reach = law_of_sum(share, summands)
    std = share * math.sqrt(summands)
    edges = [math.erf((n - 0.5) / std / math.sqrt(2)) / 2 for n in range(-reach, reach + 2)]
    distance = np.abs(np.array([float(p) for p in law]) - np.diff(edges)).sum() / 2
    assert gap(share, summands, 1) / 3 < distance < gap(share, summands, 1)
    assert gap(share, summands, 7) == pytest.approx(7 * gap(share, summands, 1))


def test_shares_of_a_real_run_are_as_good_as_one_gaussian():
    assert log_ratio(2**30, 100) == 0.0  # no double is as small: exp(-10^19)
    assert log_ratio(0.1, 2) == math.inf  # and with shares this small nothing is claimed
    steps = 2**lattice.RESOLUTION
    for honest in (1, 9, 10**6):
        assert gap(share_steps(steps, Peers(honest, 0)), honest, 50_000) <= 4.5e-19


# --- privacy


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(("total", "peers"), [(6, Peers(4, 0)), (6, Peers(5, 1)), (5, Peers(5, 3)), (8, Peers(7, 2))])
@pytest.mark.parametrize("multiplier", [0.5, 1, 2])
def test_the_honest_shares_keep_the_promise_and_half_of_them_break_it(total, peers, epsilon, multiplier):
    share, apart = share_steps(total, peers), math.floor(total / multiplier)
    claimed = gaussian_delta(total / apart, epsilon) + (1 + math.exp(epsilon)) * gap(share, peers.honest, 1)
    law, _ = law_of_sum(share, peers.honest)
    assert hockey_stick(law, apart, epsilon) <= claimed
    halved, _ = law_of_sum(share / 2, peers.honest)
    assert hockey_stick(halved, apart, epsilon) > claimed


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("apart", [(3, 4), (5, 1), (2, 2)])
def test_two_entries_or_two_attempts_are_paid_together(apart, epsilon):
    share, honest = 2, 3
    p = np.array([float(x) for x in law_of_sum(share, honest)[0]])
    here = np.outer(p, p)
    there = np.roll(here, apart, (0, 1))  # what comes in at the other end is below e^-200
    seen = np.maximum(here - math.exp(epsilon) * there, 0).sum()
    multiplier = share * math.sqrt(honest) / math.hypot(*apart)
    claimed = gaussian_delta(multiplier, epsilon)
    cost = (1 + math.exp(epsilon)) * gap(share, honest, 2)
    assert claimed - cost <= seen <= claimed + cost


def test_shares_that_forget_the_colluding_break_the_promise():
    peers, total, epsilon = Peers(5, 3), 6, 1.0
    claimed = gaussian_delta(1.0, epsilon) + (1 + math.e) * gap(share_steps(total, peers), peers.honest, 1)
    forgetful = share_steps(total, Peers(5, 0))
    assert hockey_stick(law_of_sum(forgetful, peers.honest)[0], total, epsilon) > claimed
    assert hockey_stick(law_of_sum(share_steps(total, peers), peers.honest)[0], total, epsilon) <= claimed


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_wrap_around_tells_no_more_than_the_integer_sum(width):
    law, reach = law_of_sum(2, 3)
    apart, size = 4, 2**width

    def wrapped(moved):
        return np.bincount((np.arange(-reach, reach + 1) + moved) % size, [float(p) for p in law], size)

    for epsilon in (0.0, 0.5, 1.0):
        seen = np.maximum(wrapped(apart) - math.exp(epsilon) * wrapped(0), 0).sum()
        assert seen <= hockey_stick(law, apart, epsilon) + 1e-15


@given(st.integers(1, 2**38), PEERS)
def test_the_honest_have_all_of_the_noise_together_and_hardly_more(total, peers):
    share = share_steps(total, peers)
    assert share**2 * peers.honest >= total**2
    assert (share - 1) ** 2 * peers.honest < total**2 or share % FINE == 0
    assert share <= (total / math.sqrt(peers.honest) + 1) * (1 + 2**-13)


def test_after_a_dropout_shares_are_those_of_the_survivors():
    run = Summed(multiplier=5.0, sensitivity=1.0, largest=1000.0, dimension=10, releases=releases(20, 3))
    before, after = run.attempt(Peers(10, 1)), run.attempt(Peers(7, 1))
    assert after.share_steps > before.share_steps
    assert (after.step, after.bound) == (before.step, before.bound)  # one grid for the whole run
    needed = lattice.steps(run.scale) ** 2
    assert 9 * before.share_steps**2 >= needed > 6 * before.share_steps**2
    assert 6 * after.share_steps**2 >= needed


def test_shares_as_drawn_have_the_scale_of_the_promise_without_those_of_the_colluding():
    run, peers = Summed(3.0, 0.01, 1.0, 20_000, 1), Peers(5, 2)
    attempt = run.attempt(peers)
    drawn = [attempt.total(attempt.share(np.zeros(20_000), bits(p))) for p in range(peers.present)]
    assert np.std(sum(drawn[peers.colluding :])) == pytest.approx(3.0 * 0.01, rel=0.02)


# --- sensitivity


@given(st.floats(0.1, 50), st.floats(1e-6, 1e3), st.integers(1, 10**6), st.floats(1, 1e4), PEERS, st.integers(1, 1000))
def test_the_noise_covers_the_sensitivity_with_its_rounding_on_one_grid(
    multiplier, sensitivity, d, ratio, peers, count
):
    run = Summed(multiplier, sensitivity, ratio * sensitivity, d, count)
    attempt = run.attempt(peers)
    moved = lattice.quantized_sensitivity(Norm.L2, sensitivity, attempt.step, d)
    variance = peers.honest * (attempt.share_steps * Fraction(attempt.step)) ** 2
    assert variance >= (Fraction(multiplier) * Fraction(moved)) ** 2
    assert math.frexp(attempt.step)[0] == 0.5


@given(
    st.lists(st.tuples(st.floats(-3, 3), st.floats(-3, 3), st.floats(-3, 3)), min_size=1, max_size=6),
    st.sampled_from([0.25, 0.5, 1.0]),  # coarse, so that rounding matters
    st.integers(1, 20),
)
def test_no_neighbours_are_further_apart_in_the_sum_than_one_value_and_its_rounding(columns, step, bound):
    a, b, other = (np.array(column) for column in zip(*columns, strict=True))
    attempt = Attempt(step, 3, bound, 64, 2**62)
    sums = [attempt.total(np.add.reduce(shares_of(attempt, [mine, other, other]))) for mine in (a, b)]
    apart = float(np.linalg.norm(a - b)) * (1 + 1e-12)
    assert np.linalg.norm(sums[0] - sums[1]) <= lattice.quantized_sensitivity(Norm.L2, apart, step, len(a))


def test_rounding_moves_the_sum_by_a_step_an_entry_however_close_the_values_are():
    attempt, d = Attempt(1.0, 3, 10, 64, 2**62), 9
    sums = [attempt.total(attempt.share(np.full(d, 0.5 + x), bits())) for x in (1e-9, -1e-9)]
    assert np.linalg.norm(sums[0] - sums[1]) == math.sqrt(d)


# --- wrap-around


@pytest.mark.parametrize(("bound", "share", "present"), [(1, 1, 1), (5, 2, 3), (40, 3, 2), (100, 1, 5), (3, 2, 4)])
@pytest.mark.parametrize(("d", "count"), [(1, 1), (1000, 100)])
def test_sums_wrap_with_a_probability_below_two_to_the_minus_sixty_and_no_bit_but_one_is_spent(
    bound, share, present, d, count
):
    law, far = law_of_sum(share, present)

    def wraps(width):
        room = 2 ** (width - 1) - present * bound  # noise of this size leaves the lift's interval
        return 1 if room <= 0 else 2 * d * count * sum(law[far + room :])

    spare, width = 3, modulus(reach(bound, share, present, d, count))
    assert wraps(width - spare) < 2.0**-60 < wraps(width - spare - 2)


@given(st.integers(1, 2**50), st.integers(1, 50))
def test_words_that_somebody_made_up_are_no_sum_of_honest_shares(bound, present):
    attempt = Attempt(1.0, 64, bound, modulus(most := reach(bound, 64, present, 100, 10)), most)
    made_up = np.random.default_rng(bound).integers(0, 2**64, 100, np.uint64)
    assert not attempt.holds(made_up)
    assert attempt.holds(np.array([most, 2**64 - most], np.uint64))
    assert not attempt.holds(np.array([most + 1], np.uint64))
    assert not attempt.holds(np.array([2**64 - most - 1], np.uint64))


def test_a_real_run_takes_less_than_a_word():
    run = Summed(multiplier=37.0, sensitivity=1 / 60_000, largest=0.1, dimension=7840, releases=105)
    assert 47 <= run.attempt(Peers(10, 1)).width <= 56
    assert run.attempt(Peers(1000, 1)).width <= 64


# --- refusals


@pytest.mark.parametrize(("present", "colluding"), [(3, 3), (3, 4), (0, 0), (2, -1)])
def test_a_sum_without_an_honest_agent_is_refused(present, colluding):
    with pytest.raises(SpecError, match="cannot collude"):
        Peers(present, colluding)


def test_a_sum_over_fewer_than_the_threshold_is_refused():
    assert Peers(5, 1, threshold=5).honest == 4
    with pytest.raises(SpecError, match="the threshold"):
        Peers(4, 1, threshold=5)


def test_numbers_that_make_no_sum_are_refused():
    with pytest.raises(SpecError, match="repetitions"):
        releases(0, 1)
    with pytest.raises(SpecError, match="repetitions"):
        releases(3, -1)
    with pytest.raises(SpecError, match="finer grid"):
        share_steps(0, Peers(2, 1))
    for largest in (0.0, math.inf, math.nan):
        with pytest.raises(SpecError, match="public"):
            bound_steps(largest, 1.0)
    with pytest.raises(SpecError, match="1 or more"):
        reach(1, 1, 1, 1, 0)
    with pytest.raises(SpecError, match="64"):
        modulus(reach(2**60, 2**36, 10, 1, 1))


def test_what_is_no_number_or_no_sum_of_shares_is_refused():
    attempt = Attempt(1.0, 3, 10, 20, 2**18)
    with pytest.raises(DataError, match="NaN"):
        attempt.share(np.array([np.nan]))
    with pytest.raises(DataError, match="uint64"):
        attempt.total(np.zeros(3))


def test_large_values_saturate_at_the_public_bound():
    attempt = Attempt(2.0**-200, 3, 10, 64, 2**62)
    out = attempt.total(attempt.share(np.array([1e300, -1e300]), bits())) / attempt.step
    assert np.array_equal(out, np.array([10, -10]) + sample(Law.GAUSSIAN, 3, (2,), bits()))
