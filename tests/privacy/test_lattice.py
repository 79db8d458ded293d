"""A release lies on its public grid, and the grid is paid for."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import DataError, SpecError
from tacit.privacy.exact import FINE, Law, sample
from tacit.privacy.lattice import RESOLUTION, calibrate, gap, grid, quantized_sensitivity, release, steps
from tacit.types import Norm

LAWS = pytest.mark.parametrize("law", Law, ids=lambda law: law.value)
SCALES = st.floats(1e-100, 1e100)


def bits(seed=0):
    return np.random.default_rng(seed).bytes


@given(SCALES)
def test_the_step_is_a_power_of_two_and_the_noise_is_never_less_than_asked(scale):
    g, t = grid(scale), steps(scale)
    assert math.frexp(g)[0] == 0.5
    assert 2**RESOLUTION <= t <= 2 ** (RESOLUTION + 1)
    assert 0 <= Fraction(g) * t - Fraction(scale) < Fraction(g) * FINE
    assert t % FINE == 0


@LAWS
@given(scale=st.floats(1e-6, 1e6), values=st.lists(st.floats(-100, 100), min_size=1, max_size=5))
def test_a_release_is_the_rounded_value_plus_whole_steps_without_any_rounding(law, scale, values):
    g, t = grid(scale), steps(scale)
    out = release(np.array(values), scale, law, bits())
    noise = sample(law, t, (len(values),), bits())
    for z, v, n in zip(out, values, noise, strict=True):
        whole = min(max(round(Fraction(v) / Fraction(g)), -(2**52)), 2**52)
        assert Fraction(float(z)) == Fraction(g) * (whole + int(n))


@given(
    st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1)), min_size=1, max_size=6),
    st.floats(1e-3, 1).map(grid).map(lambda g: g * 2.0**34),  # coarse, so that rounding matters
)
def test_no_pair_of_neighbours_is_further_apart_on_the_grid_than_declared(pairs, g):
    a, b = (np.array(column) for column in zip(*pairs, strict=True))
    apart = (np.rint(a / g) - np.rint(b / g)) * g
    for norm, order in ((Norm.L1, 1), (Norm.L2, 2), (Norm.INF, np.inf)):
        declared = quantized_sensitivity(norm, float(np.linalg.norm(a - b, order)) * (1 + 1e-12), g, len(pairs))
        assert np.linalg.norm(apart, order) <= declared


def test_rounding_alone_can_cost_a_step_an_entry():
    g, d = 1.0, 9
    a, b = np.full(d, 0.5 + 1e-9), np.full(d, 0.5 - 1e-9)
    apart = np.rint(a / g) - np.rint(b / g)
    assert np.abs(apart).sum() == pytest.approx(quantized_sensitivity(Norm.L1, 0.0, g, d))
    assert np.linalg.norm(apart) == pytest.approx(quantized_sensitivity(Norm.L2, 0.0, g, d))


@given(
    st.sampled_from([Norm.L1, Norm.L2]), st.floats(0.01, 1000), st.floats(1e-9, 1e9), st.integers(1, 10**6)
)
def test_calibrated_noise_covers_the_sensitivity_on_its_own_grid(norm, multiplier, sensitivity, dimension):
    scale = calibrate(norm, multiplier, sensitivity, dimension)
    on_grid = quantized_sensitivity(norm, sensitivity, grid(scale), dimension)
    assert Fraction(grid(scale)) * steps(scale) >= Fraction(multiplier) * Fraction(on_grid)
    assert scale <= multiplier * sensitivity * (1 + 3 * multiplier * dimension / 2**RESOLUTION + 1e-9)


def test_mnist_pays_less_than_a_hundred_thousandth_for_its_grid():
    assert calibrate(Norm.L1, 20, 1568 / 60000, 7840) < 20 * 1568 / 60000 * (1 + 1e-5)
    assert calibrate(Norm.L2, 37, 1 / 6000, 7840) < 37 / 6000 * (1 + 1e-7)


@LAWS
@pytest.mark.parametrize("t", [1, 2, 3, 10, 40])
def test_the_gap_bounds_the_distance_to_rounded_continuous_noise(law, t):
    n = np.arange(-60 * t, 60 * t + 1)
    if law is Law.LAPLACE:
        discrete = np.exp(-np.abs(n) / t)
        edge = np.array([math.exp(x / t) / 2 if x < 0 else 1 - math.exp(-x / t) / 2 for x in (*(n - 0.5), n[-1] + 0.5)])
    else:
        discrete = np.exp(-(n**2) / (2 * t * t))
        edge = np.array([(1 + math.erf(x / t / 2**0.5)) / 2 for x in (*(n - 0.5), n[-1] + 0.5)])
    distance = np.abs(discrete / discrete.sum() - np.diff(edge)).sum() / 2
    constant = gap(law, 1.0, 1) * steps(1.0) ** 2
    assert constant / t**2 / 3 < distance + 1e-15 < constant / t**2 + 1e-15


def test_large_entries_saturate_instead_of_telling_how_large_they_are():
    scale = 1.0
    out = release(np.array([1e300, -1e300, 0.0]), scale, Law.GAUSSIAN, bits())
    assert np.abs(out[:2]) == pytest.approx(2.0**52 * grid(scale), rel=1e-3)


@LAWS
def test_float32_in_float64_out_and_the_law_of_the_noise(law):
    value = np.full(200_000, 3.0, dtype=np.float32)
    out = release(value, 0.7, law, bits(5))
    assert out.dtype == np.float64
    assert out.mean() == pytest.approx(3, abs=0.01)
    assert out.var() == pytest.approx(0.49 * (2 if law is Law.LAPLACE else 1), rel=0.02)


@pytest.mark.parametrize("scale", [0.0, -1.0, math.inf, math.nan, 1e-300])
def test_a_scale_no_grid_fits_is_refused(scale):
    with pytest.raises(SpecError, match="noise scale"):
        release(np.zeros(2), scale, Law.LAPLACE)


def test_values_that_are_no_numbers_and_noise_that_drowns_are_refused():
    with pytest.raises(DataError, match="NaN"):
        release(np.array([np.nan]), 1.0, Law.LAPLACE)
    with pytest.raises(SpecError, match="fewer entries"):
        calibrate(Norm.L1, 1e6, 1.0, 10**6)
    with pytest.raises(SpecError, match="positive"):
        calibrate(Norm.L1, 1.0, 0.0, 3)
    with pytest.raises(SpecError, match="dimension"):
        quantized_sensitivity(Norm.L1, 1.0, 1.0, 0)
