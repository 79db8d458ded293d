"""A lower bound is a lower bound: it holds as often as it says, and it is not empty."""

import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import SpecError
from tacit.privacy.divergence import gaussian_epsilon
from tacit.privacy.lower_bounds import (
    _luck,
    epsilon_lower_bound,
    gaussian_scores,
    guesses_lower_bound,
    laplace_scores,
    mu_lower_bound,
    one_run_lower_bound,
    rate_at_least,
    rate_at_most,
)

REPEATS = 200


def allowed(repeats, rate=0.05):
    """So many false alarms are no surprise: the rate, and three deviations of its count."""
    return rate * repeats + 3 * math.sqrt(rate * (1 - rate) * repeats)


def tail(n, p, k):
    """P[Bin(n, p) >= k]."""
    return sum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k, n + 1))


def gaussian_pair(mu, n, rng):
    """Log-likelihood ratios of a Gaussian mean mu, with the record and without."""
    center = (np.array([mu]), np.zeros(1))
    return tuple(gaussian_scores(c + rng.standard_normal((n, 1)), center, (1.0, 1.0)) for c in center)


def shared_gaussian_pair(mu, n, rng):
    """The same, where both of a pair have the same noise."""
    center, noise = (np.array([mu]), np.zeros(1)), rng.standard_normal((n, 1))
    return tuple(gaussian_scores(c + noise, center, (1.0, 1.0)) for c in center)


def laplace_pair(epsilon, n, rng):
    center = (np.array([epsilon]), np.zeros(1))
    return tuple(laplace_scores(c + rng.laplace(size=(n, 1)), center, (1.0, 1.0)) for c in center)


def shared_laplace_pair(epsilon, n, rng):
    center, noise = (np.array([epsilon]), np.zeros(1)), rng.laplace(size=(n, 1))
    return tuple(laplace_scores(c + noise, center, (1.0, 1.0)) for c in center)


def opposed_pair(mu, n, rng):
    """A bit that a Gaussian mean mu gives at best, where the two of a pair are as unlike as their laws allow."""
    right, u = NormalDist().cdf(mu / 2), rng.random(n)
    return np.where(u < right, 1.0, -1.0), np.where(1 - u < 1 - right, 1.0, -1.0)


def one_run(pair, rng):
    included = rng.random(len(pair[0])) < 0.5
    return np.where(included, *pair), included


@given(st.integers(1, 40), st.data())
def test_rates_invert_the_binomial_tails(trials, data):
    successes = data.draw(st.integers(0, trials))
    low, high = rate_at_least(successes, trials, 0.05), rate_at_most(successes, trials, 0.05)
    assert 0 <= low <= successes / trials <= high <= 1
    assert low == 0 if successes == 0 else tail(trials, low, successes) == pytest.approx(0.05, rel=1e-6)
    assert high == 1 if successes == trials else 1 - tail(trials, high, successes + 1) == pytest.approx(0.05, rel=1e-6)


def test_a_bound_of_many_trials_neither_overflows_nor_vanishes():
    low, high = rate_at_least(10, 20_000, 0.025), rate_at_most(10, 20_000, 0.025)
    assert low == pytest.approx(2.398e-4, rel=1e-3)
    assert high == pytest.approx(9.193e-4, rel=1e-3)


def test_scores_that_know_nothing_give_nothing():
    rng = np.random.default_rng(0)
    found = {"rates": 0, "mu": 0, "one run": 0}
    for _ in range(REPEATS):
        pair = rng.standard_normal((2, 400))
        scores, included = one_run(pair, rng)
        found["rates"] += epsilon_lower_bound(*pair, 1e-6) > 0
        found["mu"] += mu_lower_bound(*pair) > 0
        found["one run"] += one_run_lower_bound(scores, included, 1e-6) > 0
    assert max(found.values()) <= 0.05 * REPEATS, found


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_bounds_on_a_laplace_release_hold_in_95_of_100_repetitions(epsilon):
    rng = np.random.default_rng(1)
    wrong = {"rates": 0, "rates of pairs": 0, "one run": 0}
    for _ in range(REPEATS):
        pair = laplace_pair(epsilon, 300, rng)
        wrong["rates"] += epsilon_lower_bound(*pair) > epsilon
        wrong["rates of pairs"] += epsilon_lower_bound(*shared_laplace_pair(epsilon, 300, rng)) > epsilon
        wrong["one run"] += one_run_lower_bound(*one_run(pair, rng), 0.0) > epsilon
    assert max(wrong.values()) <= 0.05 * REPEATS, wrong


def test_bounds_on_a_gaussian_release_hold_in_95_of_100_repetitions():
    rng = np.random.default_rng(2)
    mu, dp_delta = 1.0, 1e-3
    epsilon = gaussian_epsilon(mu, dp_delta)
    wrong = {"rates": 0, "rates of pairs": 0, "one run": 0}
    for _ in range(REPEATS):
        pair = gaussian_pair(mu, 300, rng)
        wrong["rates"] += epsilon_lower_bound(*pair, dp_delta) > epsilon
        wrong["rates of pairs"] += epsilon_lower_bound(*shared_gaussian_pair(mu, 300, rng), dp_delta) > epsilon
        wrong["one run"] += one_run_lower_bound(*one_run(pair, rng), dp_delta) > epsilon
    assert max(wrong.values()) <= 0.05 * REPEATS, wrong


@pytest.mark.parametrize("mu", [0.24, 1.0, 2.5])
def test_a_claim_of_mu_that_just_holds_is_refuted_in_5_of_100_repetitions_at_most(mu):
    """At the edge of the claim, by a Gaussian and by a coin; apart, with noise in common, and as unlike as can be."""
    rng = np.random.default_rng(12)
    wrong = {"apart": 0, "shared": 0, "opposed": 0}
    for _ in range(2 * REPEATS):
        wrong["apart"] += mu_lower_bound(*gaussian_pair(mu, 400, rng)) > mu
        wrong["shared"] += mu_lower_bound(*shared_gaussian_pair(mu, 400, rng), paired=True) > mu
        wrong["opposed"] += mu_lower_bound(*opposed_pair(mu, 400, rng), paired=True) > mu
    assert max(wrong.values()) <= allowed(2 * REPEATS), wrong


@pytest.mark.parametrize("mu", [0.24, 1.0])
def test_a_claim_of_mu_is_refuted_by_few_pairs_that_share_their_noise_and_by_many_draws_apart(mu):
    rng, repeats = np.random.default_rng(13), 20
    caught = {"few apart": 0, "few pairs": 0, "many apart": 0}
    for _ in range(repeats):
        caught["few apart"] += mu_lower_bound(*gaussian_pair(mu / 0.8, 4000, rng)) > mu
        caught["few pairs"] += mu_lower_bound(*shared_gaussian_pair(mu / 0.8, 4000, rng), paired=True) > mu
        caught["many apart"] += mu_lower_bound(*gaussian_pair(mu / 0.8, 30_000, rng)) > mu
    assert caught["few pairs"] >= 0.9 * repeats, caught
    assert caught["many apart"] >= 0.9 * repeats, caught
    assert caught["few apart"] <= caught["few pairs"], caught


def test_pairs_that_share_their_noise_refute_a_pure_epsilon_with_fewer_draws():
    rng, claimed = np.random.default_rng(14), 1.0
    apart = [epsilon_lower_bound(*laplace_pair(1.25, 2000, rng)) for _ in range(10)]
    shared = [epsilon_lower_bound(*shared_laplace_pair(1.25, 2000, rng)) for _ in range(10)]
    assert np.mean(shared) > np.mean(apart)
    assert np.mean(np.array(shared) > claimed) >= 0.9


@pytest.mark.parametrize("mu", [0.3, 1.0, 3.0])
def test_a_known_separation_of_gaussians_is_found(mu):
    rng = np.random.default_rng(3)
    found = mu_lower_bound(*gaussian_pair(mu, 20_000, rng))
    assert mu - 0.1 < found <= mu


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_a_known_pure_epsilon_is_found(epsilon):
    rng = np.random.default_rng(4)
    pair = laplace_pair(epsilon, 20_000, rng)
    assert 0.85 * epsilon < epsilon_lower_bound(*pair) <= epsilon
    assert 0.85 * epsilon < one_run_lower_bound(*one_run(pair, rng), 0.0) <= epsilon


def test_the_rarer_of_the_two_errors_counts():
    """A release that now and then proves absence has an infinite epsilon, which a test for presence misses."""
    rng = np.random.default_rng(5)
    scores_in, scores_out = np.ones(4000), np.where(rng.random(4000) < 0.1, 0.0, 1.0)
    assert epsilon_lower_bound(scores_in, scores_out) > 4
    assert epsilon_lower_bound(scores_in, scores_out, dp_delta=0.2) == 0


def test_scores_that_are_worse_than_chance_prove_nothing_of_mu():
    scores_in, scores_out = gaussian_pair(2.0, 2000, np.random.default_rng(6))
    assert mu_lower_bound(scores_out, scores_in) == 0


def test_certain_guesses_are_worth_the_logarithm_of_their_number():
    ones, zeros = np.ones(4000), np.zeros(4000)
    # of 3000 pairs that certify: a share x^(1/3000) of yes to the first alone is at the edge of luck for the risk x
    assert epsilon_lower_bound(ones, zeros) == pytest.approx(math.log(3000 / -math.log(0.7 * 0.05)), abs=0.01)
    # all of r guesses right is at the edge of luck when q^r = 0.05
    q = 0.05 ** (1 / 100)
    assert guesses_lower_bound(100, 100, 100, 0.0) == pytest.approx(math.log(q / (1 - q)), abs=1e-5)


@given(st.integers(10, 200), st.data())
def test_without_delta_one_run_is_clopper_pearson_on_the_odds(guesses, data):
    right = data.draw(st.integers(guesses // 2, guesses))
    low = rate_at_least(right, guesses, 0.05)
    odds = math.log(low / (1 - low)) if low > 0.5 else 0.0
    assert guesses_lower_bound(guesses, guesses, right, 0.0) == pytest.approx(odds, abs=1e-5)
    assert guesses_lower_bound(guesses, guesses, right, 1e-3) <= odds + 1e-5


@pytest.mark.parametrize("dp_delta", [1e-4, 1e-2, 0.1])
@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_luck_covers_randomised_response_that_sometimes_tells_all(epsilon, dp_delta):
    """With probability delta a bit is shown, else flipped with odds e^-epsilon: (epsilon, delta)-DP."""
    m = 60
    p = dp_delta + (1 - dp_delta) / (1 + math.exp(-epsilon))
    for right in range(1, m + 1):
        assert tail(m, p, right) <= _luck(m, m, right, epsilon, dp_delta) + 1e-12


def test_a_likelihood_ratio_sees_the_scale_as_well_as_the_centre():
    rng = np.random.default_rng(7)
    center, scale = (np.zeros(60), np.zeros(60)), (1.5, 1.0)
    pair = [laplace_scores(b * rng.laplace(size=(2000, 60)), center, scale) for b in scale]
    assert np.mean(pair[0]) == pytest.approx(60 * (0.5 - math.log(1.5)), rel=0.1)  # Kullback-Leibler divergence
    assert epsilon_lower_bound(*pair) > 2


def test_gaussian_ratios_are_gaussian_with_the_textbook_mean():
    rng = np.random.default_rng(8)
    mu = 1.3
    with_it, without = gaussian_pair(mu, 20_000, rng)
    assert with_it.mean() == pytest.approx(mu**2 / 2, abs=0.05)
    assert without.mean() == pytest.approx(-(mu**2) / 2, abs=0.05)
    assert np.mean(with_it >= 0) == pytest.approx(NormalDist().cdf(mu / 2), abs=0.01)


@pytest.mark.parametrize("scores", [np.zeros(3), np.array([np.nan] * 100), np.zeros((100, 2))])
def test_scores_that_cannot_be_used_are_refused(scores):
    with pytest.raises(SpecError, match="finite scores"):
        epsilon_lower_bound(scores, np.zeros(100))
