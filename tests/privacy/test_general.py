"""A release known only by its (epsilon, delta) is priced as the worst coin with them, never as Laplace noise."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import SpecError
from tacit.privacy.budget import calibrate, total
from tacit.privacy.divergence import coin_renyi
from tacit.privacy.release import Events, GaussianRelease, GeneralRelease, LaplaceRelease, described, events_of, merge

pytest.importorskip("dp_accounting")

FEW = settings(max_examples=15, deadline=None)
deltas = st.floats(-6, -2).map(lambda x: 10.0**x)


def bounds(events: Events, dp_delta: float) -> dict[str, float]:
    return {bound.name: bound.epsilon for bound in total(events, dp_delta).bounds}


def exact_epsilon(coins: list[tuple[float, float]], dp_delta: float) -> float:
    """By writing out every outcome of coins (epsilon, delta): revealed, truth or lie."""
    laws = [((d, 0.0), ((1 - d) * _odds(e), (1 - d) * _odds(-e)), ((1 - d) * _odds(-e), (1 - d) * _odds(e)))
            for e, d in coins]  # fmt: skip
    outcomes = np.array([np.prod(outcome, axis=0) for outcome in itertools.product(*laws)])
    p, q = outcomes.T

    def delta(epsilon: float) -> float:
        return float(np.maximum(0.0, p - math.exp(epsilon) * q).sum())

    low, high = 0.0, sum(e for e, _ in coins)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if delta(middle) <= dp_delta else (middle, high)
    return high


def _odds(epsilon: float) -> float:
    return 1 / (1 + math.exp(-epsilon))


@FEW
@given(epsilon=st.floats(0.02, 3), count=st.integers(1, 7), share=st.floats(0, 0.1), dp_delta=deltas)
def test_every_bound_is_at_least_the_epsilon_of_all_outcomes_written_out_and_the_law_meets_it(
    epsilon: float, count: int, share: float, dp_delta: float
) -> None:
    release = GeneralRelease(epsilon, share * dp_delta / count)
    exact = exact_epsilon([(epsilon, release.dp_delta)] * count, dp_delta)
    found = bounds([(release, count)], dp_delta)
    assert set(found) == {"basic", "rdp", "pld"}
    assert found["pld"] == pytest.approx(exact, rel=1e-5, abs=1e-6)
    assert min(found.values()) >= exact * (1 - 1e-9)
    assert found["rdp"] >= found["pld"] * (1 - 1e-6)


@FEW
@given(first=st.floats(0.05, 2), second=st.floats(0.05, 2), dp_delta=deltas)
def test_different_coins_compose_to_no_less_than_all_outcomes_written_out(
    first: float, second: float, dp_delta: float
) -> None:
    exact = exact_epsilon([(first, 0.0)] * 3 + [(second, 0.0)] * 2, dp_delta)
    found = bounds([(GeneralRelease(first), 3), (GeneralRelease(second), 2)], dp_delta)
    assert all(epsilon >= exact * (1 - 1e-9) for epsilon in found.values())
    assert found["pld"] <= 1.1 * exact + 0.05


def test_a_coin_costs_more_than_laplace_noise_of_the_same_epsilon() -> None:
    for count in (1, 10, 100):
        coin, laplace = (total([(one(0.1), count)], 1e-6).epsilon for one in (GeneralRelease, LaplaceRelease))
        assert coin > laplace


@FEW
@given(epsilon=st.floats(1e-5, 20), alpha=st.floats(1.001, 300))
def test_the_renyi_curve_is_that_of_the_coin_and_above_that_of_laplace_noise(epsilon: float, alpha: float) -> None:
    from tacit.privacy.divergence import laplace_renyi

    found = float(coin_renyi(epsilon, np.array([alpha]))[0])
    p, q = _odds(epsilon), _odds(-epsilon)
    if alpha * epsilon < 500:
        written = math.log(p**alpha * q ** (1 - alpha) + q**alpha * p ** (1 - alpha)) / (alpha - 1)
        assert found == pytest.approx(written, rel=1e-4, abs=1e-12)
    assert found >= float(laplace_renyi(epsilon, np.array([alpha]))[0]) * (1 - 1e-6)


def test_pure_epsilons_add_up_and_deltas_too() -> None:
    assert total([(GeneralRelease(0.5), 2), (LaplaceRelease(0.25), 4)], 0.0).epsilon == 2.0
    assert bounds([(GeneralRelease(0.5, 1e-7), 4)], 4e-7)["basic"] == 2.0
    assert total([(GeneralRelease(0.5, 1e-7), 5)], 4e-7).epsilon == math.inf
    assert total([(GeneralRelease(0.5, 1e-7), 1), (GaussianRelease(5), 1)], 1e-7).epsilon == math.inf


def test_a_release_that_says_nothing_is_dropped_and_one_that_may_reveal_all_is_not() -> None:
    assert merge([(GeneralRelease(0.0), 3)]) == ()
    assert total([(GeneralRelease(0.0, 1e-3), 1)], 1e-2).epsilon == 0
    assert total([(GeneralRelease(0.0, 1e-3), 1)], 1e-4).epsilon == math.inf


@FEW
@given(target=st.floats(0.1, 8), count=st.integers(1, 60), dp_delta=deltas)
def test_coins_are_calibrated_beside_releases_of_a_fixed_price(target: float, count: int, dp_delta: float) -> None:
    beside = [(GaussianRelease(100 * math.sqrt(count) / target), count)]
    one = calibrate(GeneralRelease(1.0), target, dp_delta, count, beside=beside)
    spent = total([(one, count), *beside], dp_delta).epsilon
    assert 0.99 * target <= spent <= target
    assert total([(one, count)], dp_delta).epsilon <= spent


def test_every_kind_of_release_is_restored_from_what_describes_it() -> None:
    each, once = ((GaussianRelease(3.0, 0.5), 2),), ((GeneralRelease(0.1, 1e-7), 1), (LaplaceRelease(1.0, 0.5), 1))
    assert events_of(described(each, once), 10) == [(each[0][0], 20), *once]


@pytest.mark.parametrize(("epsilon", "dp_delta"), [(-1.0, 0.0), (math.nan, 0.0), (1.0, 1.0), (1.0, -0.1)])
def test_impossible_parameters_are_refused(epsilon: float, dp_delta: float) -> None:
    with pytest.raises(SpecError, match="of a release"):
        GeneralRelease(epsilon, dp_delta)


def test_an_epsilon_beyond_the_numbers_is_still_a_bound():
    assert total([(GeneralRelease(720.0), 1)], 1e-6).epsilon <= 720.0
