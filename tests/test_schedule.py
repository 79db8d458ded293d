"""The paper's schedules, at the values it implies."""

import math

import pytest

from tacit.errors import SpecError
from tacit.schedule import Constant, HuangStep, Power, Scaled, Staircase


@pytest.mark.parametrize(("t", "rho"), [(1, 102), (9_999, 102), (10_000, 102.4), (20_000, 102.88)])
def test_mnist_rho_at_epsilon_005(t, rho):
    assert Staircase(2, 5, 1e4, 0.05)(t) == pytest.approx(rho)


def test_femnist_rho_at_epsilon_005():
    rho = Staircase(0.005, 0.05, 2e3, 0.05)
    assert rho(1) == pytest.approx(1.005)
    assert rho(20_000) == pytest.approx(1.031, abs=5e-4)


def test_without_privacy_the_second_constant_drops_out():
    assert Staircase(2, 5, 1e4, math.inf)(1) == 2


def test_rho_is_capped_and_never_overflows():
    assert Staircase(2, 5, 1, 0.05)(10**9) == 1e9
    assert Staircase(2, 5, 1e-320, 0.05)(10**9) == 1e9


@pytest.mark.parametrize("bad", [-5, math.nan, math.inf])
def test_a_second_constant_that_could_make_rho_negative_is_refused(bad):
    with pytest.raises(SpecError, match="c2"):
        Staircase(2, bad, 1e4, 0.05)
    assert Staircase(2, 0, 1e4, 0.05)(1) == 2


def test_only_radii_that_shrink_faster_than_one_over_t_are_summable():
    assert Power(1, -2).summable
    assert not Power(1, -1).summable
    assert not Power(1, -0.5).summable
    assert not Constant(1).summable
    assert Scaled(3, Power(1, -2)).summable


@pytest.mark.parametrize(("t", "inverse"), [(1, 1650), (20_000, 22_695)])
def test_huang_step_of_the_released_code_on_mnist(t, inverse):
    noise = 2 * math.sqrt(2 * math.log(1.25e6)) / 0.05
    step = HuangStep(1500, 7840, noise, math.sqrt(4 * 7840))
    assert 1 / step(t) == pytest.approx(inverse, abs=1)


@pytest.mark.parametrize(("t", "inverse"), [(1, 158), (20_000, 1667)])
def test_huang_step_with_its_own_constants_on_mnist(t, inverse):
    noise = 2 * math.sqrt(2) * 17.18 * math.sqrt(2 * math.log(1.25e6)) / 6000 / 0.05
    assert 1 / HuangStep(17.18**2 / 2, 7840, noise, 10)(t) == pytest.approx(inverse, rel=0.005)


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf])
def test_constants_must_be_positive_and_finite(bad):
    with pytest.raises(SpecError):
        Constant(bad)
