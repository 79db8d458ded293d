"""Noise is a pure function of its key, and has the law it claims."""

import numpy as np
import pytest

from tacit.errors import SpecError
from tacit.privacy import noise
from tacit.privacy.mechanism import Gaussian, Laplace, Silence

DRAWS = {"laplace": noise.laplace, "gaussian": noise.gaussian}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_the_same_key_gives_the_same_noise_and_any_other_key_another(draw):
    first = draw((1, 2), 3, 0, (5, 4))
    np.testing.assert_array_equal(first, draw((1, 2), 3, 0, (5, 4)))
    for key, t, step in [((2, 2), 3, 0), ((1, 3), 3, 0), ((1, 2), 4, 0), ((1, 2), 3, 1)]:
        assert not np.isin(first, draw(key, t, step, (5, 4))).any()


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_a_longer_draw_begins_with_the_shorter_one(draw):
    np.testing.assert_array_equal(draw((0, 0), 1, 0, (100,))[:7], draw((0, 0), 1, 0, (7,)))


@pytest.mark.parametrize(("draw", "size", "variance", "fourth"), [
    (noise.laplace, 1.0, 2.0, 24.0),
    (noise.gaussian, np.sqrt(2 / np.pi), 1.0, 3.0),
])  # fmt: skip
def test_moments_are_those_of_the_law(draw, size, variance, fourth):
    x = draw((0, 0), 1, 0, (2_000_000,)).astype(float)
    assert x.mean() == pytest.approx(0, abs=0.005)
    assert np.abs(x).mean() == pytest.approx(size, rel=0.003)
    assert x.var() == pytest.approx(variance, rel=0.005)
    assert (x**4).mean() == pytest.approx(fourth, rel=0.03)


@pytest.mark.parametrize(("draw", "cdf"), [
    (noise.laplace, lambda x: np.where(x < 0, np.exp(x) / 2, 1 - np.exp(-np.abs(x)) / 2)),
    (noise.gaussian, lambda x: np.array([0.5 * (1 + _erf(v / 2**0.5)) for v in x])),
])  # fmt: skip
def test_the_empirical_distribution_is_within_kolmogorovs_bound(draw, cdf):
    n = 20_000
    x = np.sort(draw((7, 1), 1, 0, (n,)).astype(float))
    distance = np.abs(cdf(x) - (np.arange(n) + 0.5) / n).max()
    assert distance < 1.95 / np.sqrt(n)  # one sample in a thousand exceeds it; this one is fixed


def _erf(x):
    import math

    return math.erf(x)


@pytest.mark.parametrize("mechanism", [Laplace(1.0), Gaussian(1.0), Silence()])
def test_every_mechanism_draws_float32(mechanism):
    assert mechanism.sample((0, 0), 1, 0, (2, 3)).dtype == np.float32


def test_laplace_scale_is_sensitivity_over_epsilon_and_gaussian_the_classic_one():
    assert Laplace.pure(0.05).multiplier == pytest.approx(20)
    assert Gaussian.classic(0.05, 1e-6).multiplier == pytest.approx(np.sqrt(2 * np.log(1.25e6)) / 0.05)
    assert Silence().multiplier == 0


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("nan"), float("inf")])
def test_an_epsilon_that_no_noise_can_give_is_refused(epsilon):
    with pytest.raises(SpecError, match="epsilon"):
        Laplace.pure(epsilon)


def test_radial_noise_has_a_gamma_radius_in_a_uniform_direction():
    d, n = 5, 20_000
    x = np.array([noise.radial((3, 1), t, 0, (d,)) for t in range(n)], dtype=float)
    radius = np.linalg.norm(x, axis=1)
    assert radius.mean() == pytest.approx(d, rel=0.01)
    assert radius.var() == pytest.approx(d, rel=0.04)
    assert ((radius - radius.mean()) ** 3).mean() == pytest.approx(2 * d, rel=0.15)
    unit = x / radius[:, None]
    np.testing.assert_allclose(unit.mean(0), 0, atol=0.012)
    np.testing.assert_allclose(unit.T @ unit / n, np.eye(d) / d, atol=0.01)
    assert abs(np.corrcoef(radius, unit[:, 0])[0, 1]) < 0.03


def test_radial_noise_is_a_pure_function_of_its_key():
    first = noise.radial((1, 2), 3, 0, (5, 4))
    np.testing.assert_array_equal(first, noise.radial((1, 2), 3, 0, (5, 4)))
    assert first.dtype == np.float32
    for key, t, step in [((2, 2), 3, 0), ((1, 3), 3, 0), ((1, 2), 4, 0), ((1, 2), 3, 1)]:
        assert not np.isin(first, noise.radial(key, t, step, (5, 4))).any()
