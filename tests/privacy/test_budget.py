"""Totals are valid, tight, monotone, and invert: against closed forms, dp-accounting and each other."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import SpecError
from tacit.privacy import budget, divergence
from tacit.privacy.budget import MEANING, calibrate, total
from tacit.privacy.release import Events, GaussianRelease, LaplaceRelease, Release

pytest.importorskip("dp_accounting")


@given(st.floats(1e-6, 1e6))
def test_a_printed_epsilon_is_never_below_the_proved_one(epsilon):
    assert epsilon * (1 - 1e-11) <= float(budget.upward(epsilon)) <= epsilon * (1.001 + 1e-11)


@pytest.mark.parametrize(("epsilon", "printed"), [
    (0.05, "0.05"), (0.1 + 0.2, "0.3"), (57.1249, "57.13"), (0.9999995, "1"), (1e5 + 1, "1.001e+05"), (math.inf, "inf"),
])  # fmt: skip
def test_a_printed_epsilon_has_four_digits(epsilon, printed):
    assert budget.upward(epsilon) == printed


# eps0 = 0.05 over 20,000 rounds, scale b = 480/(0.05 I): one record moves an MNIST gradient by |s|_1 <= 1568/I,
# |s|_2 <= 39.6/I and max|s| <= 1/I
SCALE = 480 / 0.05
CLASSICAL = math.sqrt(2 * math.log(1.25e6)) / 0.05
FEW = settings(max_examples=10, deadline=None)

deltas = st.floats(-8, -4).map(lambda x: 10.0**x)
counts = st.integers(2, 100)
laplaces = st.floats(0.02, 1).map(LaplaceRelease)
vectors = st.builds(
    lambda l1, ratio, peak: LaplaceRelease(l1, l1 * ratio, l1 * ratio * peak),
    st.floats(0.1, 1),
    st.floats(0.1, 1),
    st.floats(0.2, 1),
)
gaussians = st.floats(1, 100).map(GaussianRelease)
releases = st.one_of(laplaces, vectors, gaussians)


def bounds(events: Events, dp_delta: float, pld: bool = True) -> dict[str, float]:
    return {bound.name: bound.epsilon for bound in total(events, dp_delta, pld).bounds}


@pytest.mark.parametrize(
    ("release", "count", "dp_delta", "name", "epsilon"),
    [
        (LaplaceRelease(0.05), 20_000, 1e-6, "pld", 57.1425),
        (LaplaceRelease(0.05), 1_000, 1e-6, "pld", 8.2044),
        (LaplaceRelease(0.05), 1_000, 1e-6, "rdp", 8.7325),
        (LaplaceRelease(0.01), 20_000, 1e-6, "pld", 7.2710),
        (LaplaceRelease(0.01), 20_000, 1e-6, "rdp", 7.7500),
        (GaussianRelease(CLASSICAL), 20_000, 1e-6, "gdp", 6.8094),
        (GaussianRelease(CLASSICAL), 20_000, 1e-6, "rdp", 7.2613),
        (GaussianRelease(CLASSICAL), 1_000, 1e-6, "gdp", 1.2842),
        (GaussianRelease(1, 0.01), 1_000, 1e-5, "pld", 1.8282),
        (GaussianRelease(4, 0.01), 10_000, 1e-5, "pld", 0.9470),
        (GaussianRelease(4, 0.01), 10_000, 1e-5, "rdp", 1.0355),
    ],
)
def test_totals_agree_with_dp_accounting_to_four_digits(
    release: Release, count: int, dp_delta: float, name: str, epsilon: float
) -> None:
    assert bounds([(release, count)], dp_delta)[name] == pytest.approx(epsilon, rel=1.2e-4)


@pytest.mark.parametrize(
    ("release", "count", "dp_delta", "coarse"),
    [
        (LaplaceRelease(0.05), 20_000, 1e-6, 59.8713),  # dp-accounting with its default orders
        (GaussianRelease(CLASSICAL), 1_000, 1e-6, 1.3826),
        (LaplaceRelease(1), 20_000, 1e-6, 8135),
    ],
)
def test_finer_orders_give_a_smaller_renyi_total(release: Release, count: int, dp_delta: float, coarse: float) -> None:
    assert 0.97 * coarse < bounds([(release, count)], dp_delta, pld=False)["rdp"] < coarse


@pytest.mark.parametrize(
    ("eps0", "by_rounds"),
    [
        (0.01, (0.391, 1.36, 7.27)),
        (0.05, (2.19, 8.20, 57.1)),
        (0.1, (4.69, 18.9, 162)),
        (1, (71.5, 486, 7900)),
        (3, (265, 2267, 42005)),
        (5, (465, 4246, 81255)),
    ],
)
def test_the_paper_s_per_round_epsilons_compose_to_these_totals(eps0: float, by_rounds: tuple[float, ...]) -> None:
    for count, epsilon in zip((100, 1_000, 20_000), by_rounds, strict=True):
        assert bounds([(LaplaceRelease(eps0), count)], 1e-6)["pld"] == pytest.approx(epsilon, rel=3e-3)


def test_the_same_laplace_noise_costs_far_less_when_the_euclidean_norm_is_known() -> None:
    box = LaplaceRelease(1568 / SCALE, 39.6 / SCALE)
    assert bounds([(box, 20_000)], 1e-6, pld=False)["rdp"] == pytest.approx(2.864, rel=1e-3)
    assert total([(box, 20_000)], 1e-6).epsilon == pytest.approx(2.6835, rel=1e-4)
    peaked = LaplaceRelease(1568 / SCALE, 39.6 / SCALE, 1 / SCALE)
    assert total([(peaked, 20_000)], 1e-6).epsilon == pytest.approx(2.6717, rel=1e-4)
    clipped = [(LaplaceRelease(math.inf, 24.3 / SCALE), 20_000)]
    assert bounds(clipped, 1e-6)["rdp"] == pytest.approx(1.682, rel=1e-3)
    assert total(clipped, 1e-6).epsilon == pytest.approx(1.5758, rel=1e-4)


@pytest.mark.parametrize("count", [1, 100, 20_000])
def test_gaussian_totals_equal_the_library_s_exact_epsilon(count: int) -> None:
    import dp_accounting

    for multiplier in (0.5, 5, 50, 500):
        exact = dp_accounting.get_epsilon_gaussian(multiplier / math.sqrt(count), 1e-6)
        assert total([(GaussianRelease(multiplier), count)], 1e-6).epsilon == pytest.approx(exact, rel=1e-7, abs=1e-9)


@FEW
@given(t=st.floats(0.05, 4), share=st.floats(0.05, 0.95))
def test_two_laplace_releases_match_their_closed_form(t: float, share: float) -> None:
    # delta(epsilon) = 1 - (1 + (2t - epsilon)/4) e^((epsilon - 2t)/2), for 0 <= epsilon <= 2t
    epsilon = 2 * t * share
    dp_delta = 1 - (1 + (2 * t - epsilon) / 4) * math.exp((epsilon - 2 * t) / 2)
    found = bounds([(LaplaceRelease(t), 2)], dp_delta)["pld"]
    assert epsilon * (1 - 1e-9) <= found <= epsilon + t / 20


@FEW
@given(shift=st.lists(st.integers(1, 10), min_size=1, max_size=5), count=st.integers(1, 40), dp_delta=deltas)
def test_no_split_of_a_shift_exceeds_the_bounds_from_its_norms(shift: list[int], count: int, dp_delta: float) -> None:
    from dp_accounting.pld import privacy_loss_distribution as law

    s = np.array(shift) / 10
    cell = 1 / 160  # every atom of every coordinate falls on the grid
    true = law.identity(value_discretization_interval=cell)
    for t in s:
        true = true.compose(law.from_laplace_mechanism(1 / t, value_discretization_interval=cell).self_compose(count))
    vector = LaplaceRelease(float(s.sum()), float(np.linalg.norm(s)), float(s.max()))
    least = float(true.get_epsilon_for_delta(dp_delta))
    assert all(epsilon >= least * (1 - 1e-3) - cell / 2 for epsilon in bounds([(vector, count)], dp_delta).values())


@FEW
@given(shift=st.lists(st.floats(1e-3, 3), min_size=1, max_size=20), alpha=st.floats(1.01, 200))
def test_equal_coordinates_are_the_worst_renyi_split(shift: list[float], alpha: float) -> None:
    from tacit.privacy.divergence import laplace_renyi, shift_renyi

    s, order = np.array(shift), np.array([alpha])
    this = sum(laplace_renyi(t, order)[0] for t in shift)
    assert this <= shift_renyi(float(s.sum()), float(np.linalg.norm(s)), order)[0] * (1 + 1e-9) + 1e-12
    assert this <= shift_renyi(math.inf, float(np.linalg.norm(s)), order)[0] * (1 + 1e-9)


@FEW
@given(t=st.floats(0.01, 5), spare=st.floats(1, 50), epsilon=st.floats(-4, 4))
def test_a_gaussian_with_a_residue_dominates_a_laplace_coordinate(t: float, spare: float, epsilon: float) -> None:
    from tacit.privacy.divergence import gaussian_delta

    mu = math.sqrt(2 / 3 * t * spare)
    epsilon *= mu
    nodes, weights = np.polynomial.legendre.leggauss(60)
    x = t * (nodes + 1) / 2  # the privacy loss of Laplace(t) is t - 2x, with density e^-x / 2 on (0, t) and two atoms
    inside = t / 2 * sum(weights * [math.exp(-y) * gaussian_delta(epsilon - t + 2 * y, mu) for y in x])
    ends = gaussian_delta(epsilon - t, mu) + math.exp(-t) * gaussian_delta(epsilon + t, mu)
    assert (ends + inside) / 2 <= gaussian_delta(epsilon, math.hypot(mu, t)) + 1e-12


@FEW
@given(release=releases, count=counts, dp_delta=deltas)
def test_one_round_less_or_half_the_sensitivity_costs_strictly_less(
    release: Release, count: int, dp_delta: float
) -> None:
    full = total([(release, count)], dp_delta).epsilon
    assert full > 0
    assert total([(release, count - 1)], dp_delta).epsilon < full
    assert total([(release.quieter(0.5), count)], dp_delta).epsilon < full


@FEW
@given(release=releases, count=counts, dp_delta=deltas, factor=st.floats(1.01, 3))
def test_totals_grow_with_rounds_and_epsilon_and_shrink_with_delta(
    release: Release, count: int, dp_delta: float, factor: float
) -> None:
    here = bounds([(release, count)], dp_delta)
    more = [
        bounds([(release, math.ceil(count * factor))], dp_delta),
        bounds([(release.quieter(factor), count)], dp_delta),
        bounds([(release, count)], dp_delta / factor),
    ]
    for name, epsilon in here.items():
        assert all(other[name] >= epsilon * (1 - 1e-5) for other in more)


SHAPES = [LaplaceRelease(1), LaplaceRelease(40, 1), LaplaceRelease(40, 1, 0.03), LaplaceRelease(math.inf, 1)]


@FEW
@given(
    shape=st.sampled_from([*SHAPES, GaussianRelease(1)]),
    target=st.floats(0.05, 20),
    count=st.integers(1, 2_000),
    dp_delta=deltas,
)
def test_calibrated_noise_spends_the_target_and_never_more(
    shape: Release, target: float, count: int, dp_delta: float
) -> None:
    spent = total([(calibrate(shape, target, dp_delta, count), count)], dp_delta).epsilon
    assert 0.999 * target <= spent <= target


@pytest.mark.parametrize(
    ("rounds", "eps0", "multiplier", "concentrated"),
    [(100, 0.0241, 42.25, 45.3), (1_000, 0.00750, 133.6, 143.3), (20_000, 0.001674, 597.5, 641)],
)
def test_a_total_of_one_needs_this_noise(rounds: int, eps0: float, multiplier: float, concentrated: float) -> None:
    laplace = calibrate(LaplaceRelease(1), 1.0, 1e-6, rounds)
    gaussian = calibrate(GaussianRelease(1), 1.0, 1e-6, rounds)
    assert isinstance(laplace, LaplaceRelease)
    assert isinstance(gaussian, GaussianRelease)
    assert laplace.l1 == pytest.approx(eps0, rel=2e-3)
    assert gaussian.multiplier == pytest.approx(multiplier, rel=1e-3)
    # concentrated privacy asks 7 % more of both: eps0 = 1/45.3 = 0.0221 over 100 rounds
    for release in (LaplaceRelease(math.inf, 1 / concentrated), GaussianRelease(concentrated)):
        assert bounds([(release, rounds)], 1e-6)["rdp"] == pytest.approx(1, rel=2e-3)


@FEW
@given(power=st.floats(0.6, 2.2), wobble=st.floats(0, 0.01), target=st.floats(0.1, 50))
def test_the_costly_search_never_overspends_even_on_a_rough_curve(power: float, wobble: float, target: float) -> None:
    def spent(factor: float) -> float:
        return target / 2 * math.pow(factor, power) * (1 + wobble * math.sin(300 * factor))

    assert spent(budget._sharpen(1.0, spent, target)) <= target


def test_local_steps_count_as_rounds() -> None:
    assert calibrate(GaussianRelease(1), 2.0, 1e-5, 10, local_steps=5) == calibrate(GaussianRelease(1), 2.0, 1e-5, 50)


@FEW
@given(release=releases, other=releases, count=counts, dp_delta=deltas)
def test_releases_compose_in_any_order_and_grouping(
    release: Release, other: Release, count: int, dp_delta: float
) -> None:
    once = total([(release, count), (other, 3)], dp_delta)
    assert once == total([(other, 2), (release, count - 1), (other, 1), (release, 1)], dp_delta)
    assert once.epsilon >= total([(release, count)], dp_delta).epsilon * (1 - 1e-3)


def test_gaussian_releases_of_different_noise_add_as_inverse_variances() -> None:
    mixed = total([(GaussianRelease(3), 1), (GaussianRelease(4), 1)], 1e-6).epsilon
    assert mixed == pytest.approx(total([(GaussianRelease(12 / 5), 1)], 1e-6).epsilon, rel=1e-9)


def test_a_million_rounds_are_accounted_for() -> None:
    found = bounds([(LaplaceRelease(0.01), 10**6)], 1e-6)
    assert found == pytest.approx({"pld": 96.471, "gdp": 96.722, "rdp": 100.44, "basic": 1e4}, rel=1e-4)


def test_losses_too_large_for_floating_point_are_still_accounted_for() -> None:
    for eps0 in (1.2, 1.25, 1.3):  # totals from 630 to 760 pass through the range where e^-epsilon is subnormal
        found = bounds([(LaplaceRelease(eps0), 1_000)], 1e-6)
        assert 0.95 * found["rdp"] < found["pld"] < found["rdp"]


def test_every_bound_says_what_it_means_and_the_smallest_is_the_guarantee() -> None:
    guarantee = total([(LaplaceRelease(0.05), 1000)], 1e-6)
    assert [bound.name for bound in guarantee.bounds] == ["pld", "gdp", "rdp", "basic"]
    assert guarantee.epsilon == min(bound.epsilon for bound in guarantee.bounds)
    assert {bound.name for bound in guarantee.bounds} <= set(MEANING)
    assert str(guarantee) == "(8.205, 1e-06)-DP by pld"


def test_pure_epsilon_is_the_sum_and_no_noise_is_no_privacy() -> None:
    assert total([(LaplaceRelease(0.5), 4)], 0.0).epsilon == 2.0
    assert total([(LaplaceRelease(math.inf), 1)], 1e-6).epsilon == math.inf
    assert total([(GaussianRelease(9), 1)], 0.0).epsilon == math.inf
    assert total([(LaplaceRelease(0), 7)], 1e-6).epsilon == total([], 0.0).epsilon == 0


def test_without_dp_accounting_the_other_bounds_stand_and_a_note_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting.pld", None)
    divergence.composed.cache_clear()
    guarantee = total([(LaplaceRelease(0.05), 1000)], 1e-6)
    divergence.composed.cache_clear()
    assert guarantee.name == "gdp"
    assert "not installed" in guarantee.notes[0]


def test_what_the_grid_cannot_carry_is_left_out_with_a_note() -> None:
    many = [(LaplaceRelease(0.01 + 1e-4 * t), 1) for t in range(40)]
    for events, dp_delta in ((many, 1e-6), ([(LaplaceRelease(0.1), 9)], 1e-12)):
        guarantee = total(events, dp_delta)
        assert "pld left out" in guarantee.notes[0]
        assert 0 < guarantee.epsilon < math.inf


def test_importing_the_module_does_not_import_dp_accounting() -> None:
    code = "import sys, tacit.privacy.budget; sys.exit('dp_accounting' in sys.modules or 'scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: LaplaceRelease(-1), "at least 0"),
        (lambda: LaplaceRelease(math.nan), "at least 0"),
        (lambda: GaussianRelease(0), "positive, finite"),
        (lambda: GaussianRelease(1, 0), "sampling rate"),
        (lambda: total([(LaplaceRelease(1), -1)], 1e-6), "whole number"),
        (lambda: total([], 1.0), "probability below 1"),
        (lambda: calibrate(LaplaceRelease(1), 0, 1e-6, 10), "positive epsilon"),
        (lambda: calibrate(LaplaceRelease(0), 1, 1e-6, 10), "reveals nothing"),
        (lambda: calibrate(GaussianRelease(1), 1, 0.0, 10), "no noise gives"),
        (lambda: calibrate(LaplaceRelease(math.inf), 1, 1e-6, 10), "no noise gives"),
    ],
)
def test_impossible_requests_are_refused_with_a_reason(call: object, match: str) -> None:
    with pytest.raises(SpecError, match=match):
        call()  # type: ignore[operator]
