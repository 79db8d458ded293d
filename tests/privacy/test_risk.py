"""How often a guess about one record is right: bounds that hold, the least of them, and when protection is weak."""

import math
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from tacit.errors import RecordError
from tacit.privacy import divergence, risk
from tacit.privacy.budget import Total, any_guess, best_guess, calibrate, total
from tacit.privacy.release import BinomialRelease, GaussianRelease, GeneralRelease, LaplaceRelease

DELTA = 1e-6


def guess(*events, dp_delta=DELTA, held_back=0.0):
    return best_guess(total(events, dp_delta), dp_delta, held_back)


def integrated(p, q, low=-60.0, high=60.0, n=2_400_001):
    """(1 + total variation) / 2 of two densities on the line, as a sum."""
    x, width = np.linspace(low, high, n, retstep=True)
    return (1 + np.abs(p(x) - q(x)).sum() * width / 2) / 2


@pytest.mark.parametrize("mu", [0.02, 0.3, 1.0, 4.0])
def test_of_gaussian_noise_the_guess_is_the_total_variation_of_two_gaussians(mu):
    expected = integrated(norm.pdf, lambda x: norm.pdf(x - mu))
    assert guess((GaussianRelease(1 / mu), 1)) == pytest.approx(expected, abs=1e-9)
    assert guess((GaussianRelease(10 / mu), 100)) == pytest.approx(expected, abs=1e-9)  # rounds are counted
    assert guess((GaussianRelease(2 / mu), 2), (GaussianRelease(math.sqrt(2) / mu), 1)) == pytest.approx(expected)


@pytest.mark.parametrize(("epsilon", "shown"), [(1.0, "54.8%"), (3.0, "62.7%")])
def test_the_default_run_has_the_numbers_that_the_manual_prints(epsilon, shown):
    release = calibrate(GaussianRelease(1.0), epsilon, DELTA * (1 - 1e-4), 100)
    assert risk.percent(guess((release, 100), held_back=1e-4 * DELTA)) == shown


def test_the_law_of_the_loss_gives_gaussian_noise_the_same_number():
    from dp_accounting.pld import privacy_loss_distribution as law

    for mu in (0.25, 1.0):
        one = law.from_gaussian_mechanism(10 / mu, value_discretization_interval=1e-4).self_compose(100)
        exact = guess((GaussianRelease(10 / mu), 100))
        assert exact <= (1 + one.get_delta_for_epsilon(0.0)) / 2 <= exact + 1e-3


@pytest.mark.parametrize("t", [0.1, 1.0, 3.0])
def test_of_one_laplace_release_the_guess_is_the_total_variation_of_two_laplaces(t):
    exact = 1 - math.exp(-t / 2) / 2
    assert exact <= guess((LaplaceRelease(t), 1)) <= exact + 1e-4
    # with a bound in l2 alone there is no law of the loss: the Gaussian with its residue holds
    assert exact < guess((LaplaceRelease(math.inf, t), 1))
    mu = math.sqrt(t * t + 2 * t / 3)
    assert guess((LaplaceRelease(math.inf, t), 1)) == pytest.approx(norm.cdf(mu / 2))


def test_without_its_residue_a_laplace_release_would_beat_the_number():
    t = 0.1
    assert 1 - math.exp(-t / 2) / 2 > norm.cdf(t / 2)


@pytest.mark.parametrize(("rate", "sigma"), [(0.1, 0.8), (0.5, 2.0)])
def test_of_a_sampled_release_the_guess_is_the_total_variation_of_the_mixture(rate, sigma):
    expected = integrated(norm.pdf, lambda x: (1 - rate) * norm.pdf(x) + rate * norm.pdf(x - 1 / sigma))
    found = guess((GaussianRelease(sigma, rate), 1))
    assert expected - 1e-9 <= found <= expected + 2e-3


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_of_a_release_with_nothing_but_epsilon_and_delta_the_guess_is_that_of_the_coin(epsilon):
    # randomized response is the worst case of pure DP: its best guess is right with probability e^eps / (e^eps + 1)
    right = math.exp(epsilon) / (math.exp(epsilon) + 1)
    assert guess((GeneralRelease(epsilon), 1), dp_delta=0.0) == pytest.approx(right)
    assert any_guess(epsilon, 0.0) == pytest.approx(right)
    # a mechanism that tells all with probability delta adds delta (1 - right) to that
    assert any_guess(epsilon, 0.01) == pytest.approx(right + 0.01 * (1 - right))
    assert guess((GeneralRelease(epsilon, 0.01), 1), dp_delta=0.01) == pytest.approx(right + 0.01 * (1 - right))


def test_where_no_law_is_known_the_bound_of_any_mechanism_is_stated():
    events = [(BinomialRelease(10**6, 3.0, 10, 1e-9), 5)]
    spent = total(events, DELTA)
    assert spent.name == "rdp"
    assert best_guess(spent, DELTA) == any_guess(spent.epsilon, DELTA)
    assert best_guess(Total(DELTA, ()), DELTA) == 1.0  # no bound holds at all


def test_without_dp_accounting_a_sampled_release_gets_the_bound_of_any_mechanism(monkeypatch):
    divergence.composed.cache_clear()
    monkeypatch.setitem(sys.modules, "dp_accounting.pld", None)
    spent = total([(GaussianRelease(2.0, 0.1), 10)], DELTA)
    divergence.composed.cache_clear()
    assert best_guess(spent, DELTA) == any_guess(spent.epsilon, DELTA)


def test_half_of_the_delta_that_is_held_back_is_added():
    events = (GaussianRelease(10.0), 50)
    assert guess(events, held_back=0.01) == pytest.approx(guess(events) + 0.005)
    assert guess(events, held_back=1.0) == any_guess(total([events], DELTA).epsilon, DELTA)


@pytest.mark.parametrize(("release", "made", "count"), [
    (GaussianRelease(42.0), ("from_gaussian_mechanism", (42.0,), {}), 100),
    (GaussianRelease(2.0, 0.1), ("from_gaussian_mechanism", (2.0,), {"sampling_prob": 0.1}), 50),
    (LaplaceRelease(0.05), ("from_laplace_mechanism", (20.0,), {}), 200),
    (LaplaceRelease(0.4), ("from_laplace_mechanism", (2.5,), {}), 3),
])  # fmt: skip
def test_a_guess_is_never_below_an_optimistic_law_of_the_loss(release, made, count):
    from dp_accounting.pld import privacy_loss_distribution as law

    name, arguments, more = made
    grid = {"value_discretization_interval": 1e-4, "pessimistic_estimate": False}
    lower = getattr(law, name)(*arguments, **grid, **more).self_compose(count).get_delta_for_epsilon(0.0)
    assert (1 + lower) / 2 - 1e-9 <= guess((release, count)) <= (1 + lower) / 2 + 5e-3


RELEASES = st.one_of(
    st.builds(GaussianRelease, st.floats(0.2, 200)),
    st.builds(LaplaceRelease, st.one_of(st.just(math.inf), st.floats(1e-3, 5)), st.floats(1e-3, 5)),
    st.builds(GeneralRelease, st.floats(0, 5), st.sampled_from([0.0, 1e-9])),
)
EVENTS = st.lists(st.tuples(RELEASES, st.integers(1, 30)), min_size=1, max_size=3)


@settings(max_examples=200, deadline=None)
@given(events=EVENTS, more=RELEASES, held_back=st.sampled_from([0.0, 1e-10]))
def test_a_guess_is_between_a_coin_and_the_bound_of_any_mechanism_and_more_releases_never_lower_it(
    events, more, held_back
):
    one, both = (total(made, DELTA, pld=False) for made in (events, [*events, (more, 1)]))
    found = best_guess(one, DELTA, held_back)
    assert 0.5 <= found <= any_guess(one.epsilon, DELTA)
    assert one.variation <= both.variation
    assert found <= best_guess(one, DELTA, held_back + 1e-3)


@settings(max_examples=15, deadline=None)
@given(events=EVENTS)
def test_the_law_of_the_loss_never_raises_a_guess(events):
    with_law, without = total(events, DELTA), total(events, DELTA, pld=False)
    assert 0.5 <= best_guess(with_law, DELTA) <= best_guess(without, DELTA)


def test_a_smaller_budget_never_raises_a_guess():
    found = [guess((calibrate(GaussianRelease(1.0), epsilon, DELTA, 10), 10)) for epsilon in (0.1, 0.5, 1, 3, 8, 20)]
    assert found == sorted(found)
    assert len(set(found)) == len(found)


def test_a_guess_is_rounded_up_when_it_is_shown():
    assert risk.percent(0.73106) == "73.2%"
    assert risk.percent(0.731) == "73.1%"
    assert risk.percent(0.5470000001) == "54.8%"
    assert risk.percent(1.0) == "100%"


def test_weak_is_an_epsilon_above_3_or_a_delta_of_one_over_the_records():
    assert risk.weakness(3.0, DELTA, 1000) == ""
    assert risk.weakness(math.nextafter(3.0, 4.0), DELTA, 1000) != ""
    assert "epsilon of 3.001 is above 3" in risk.weakness(3.0001, DELTA, 1000)
    assert risk.weakness(1.0, math.nextafter(1 / 40, 0), 40) == ""
    assert "well below 1/40" in risk.weakness(1.0, 1 / 40, 40)
    assert risk.weakness(1.0, 0.5) == ""  # nobody knows how many records there are
    assert risk.weakness(math.inf, 0.0) != ""


def test_the_verdict_counts_agents_where_an_agent_is_protected():
    told = {"epsilon": 1.0, "dp_delta": 0.1, "records": 40, "agents": 20}
    assert "one of the 40 training records" in risk.stated(told).weak
    assert "one of the 20 agents" in risk.stated(told | {"adjacency": "client"}).weak
    assert risk.stated(told | {"adjacency": "client", "agents": 9}).weak == ""
    assert "whether one given agent" in str(risk.stated(told | {"adjacency": "client"}))


def test_a_result_of_an_earlier_version_gets_the_bound_of_any_mechanism():
    told = {"epsilon": 1.0, "dp_delta": 1e-6, "adjacency": "zero_out"}
    assert risk.stated(told).guess == any_guess(1.0, 1e-6)
    assert risk.stated(told | {"best_guess": 0.547}).guess == 0.547


@pytest.mark.parametrize("wrong", ["<b>", True, math.nan, 0.4, 1.1, [], {}, -1, math.inf])
def test_a_guess_that_is_no_probability_is_refused(wrong):
    with pytest.raises(RecordError, match="makes no sense"):
        risk.stated({"epsilon": 1.0, "best_guess": wrong})
