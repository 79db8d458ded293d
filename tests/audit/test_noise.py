"""The scale of the noise is measured, and less of it than is claimed is told, whatever the record does."""

import numpy as np
import pytest

from tacit.audit.finding import FACTORS, NOISE, Claim, Trials, weigh
from tacit.audit.noise import Noise
from tacit.privacy import lattice
from tacit.privacy.exact import Law
from tacit.privacy.mechanism import Gaussian, Laplace
from tacit.privacy.release import GaussianRelease, LaplaceRelease

LAWS = [
    (Laplace(1.0), Law.LAPLACE, lambda rng, shape: rng.laplace(size=shape)),
    (Gaussian(1.0), Law.GAUSSIAN, lambda rng, shape: rng.normal(size=shape)),
]
EACH = pytest.mark.parametrize(("mechanism", "law", "draw"), LAWS, ids=["laplace", "gaussian"])


@EACH
@pytest.mark.parametrize("entries", [1, 20, 500])
def test_the_bound_on_the_scale_errs_no_more_often_than_it_says(mechanism, law, draw, entries):  # noqa: ARG001
    noise = draw(np.random.default_rng(0), (2000, entries))
    wrong = [Noise.of(mechanism, row).scale_at_most(0.9) < 1 for row in noise]
    assert 0 < np.mean(wrong) < 0.1


@EACH
def test_a_few_thousand_draws_tell_the_scale_to_two_per_cent(mechanism, law, draw):  # noqa: ARG001
    found = Noise.of(mechanism, 0.8 * draw(np.random.default_rng(0), (3000, 9)))
    assert 0.8 * 0.99 < found.scale < found.scale_at_most(0.9999) < 0.8 * 1.03


@EACH
def test_noise_of_the_operating_system_on_its_grid_has_the_claimed_scale(mechanism, law, draw):  # noqa: ARG001
    value, scale = np.full(30_000, 0.123), 0.7
    found = Noise.of(mechanism, (lattice.release(value, scale, law) - value) / scale)
    assert found.scale_at_most(1 - 1e-9) > 1
    assert found.scale == pytest.approx(1, abs=0.05)


@EACH
def test_noise_that_is_shrunk_is_the_noise_of_shrunk_entries(mechanism, law, draw):  # noqa: ARG001
    entries = draw(np.random.default_rng(0), 100)
    shrunk, whole = Noise.of(mechanism, 0.3 * entries), Noise.of(mechanism, entries)
    assert shrunk.energy == pytest.approx(whole.shrunk(0.3).energy)
    assert shrunk.scale == pytest.approx(0.3 * whole.scale)
    added = Noise.of(mechanism, entries[:40]) + Noise.of(mechanism, entries[40:])
    assert (added.shape, added.scale) == (whole.shape, pytest.approx(whole.scale))


@EACH
def test_noise_about_another_centre_is_never_taken_for_less(mechanism, law, draw):  # noqa: ARG001
    entries = draw(np.random.default_rng(0), 2000)
    assert Noise.of(mechanism, entries + 0.5).scale > Noise.of(mechanism, entries).scale


@pytest.mark.parametrize(
    "claim",
    [
        Claim(1.0, 1e-6, events=((GaussianRelease(4.0), 1),)),
        Claim(1.0, 0.0, events=((LaplaceRelease(1.0), 1),)),
        Claim(1.0, 1e-6, events=((LaplaceRelease(float("inf"), 0.1), 8),)),
    ],
    ids=["gaussian", "pure", "l2"],
)  # fmt: skip
def test_less_noise_than_is_claimed_has_a_larger_epsilon_and_none_has_a_number(claim):
    epsilons = [claim.with_noise(factor) for factor in (0.0, 1e-6, 0.5, 0.99, 1.0, 1.01)]
    assert np.isfinite(epsilons).all()
    assert (np.diff(epsilons) < 0).all()


def blind(factor):  # noqa: ARG001
    """An attack that sees nothing, with the record or without."""
    scores = np.random.default_rng(0).normal(size=(2, 200))
    return Trials(scores[0], scores[0], paired=True)


def found(scale, claim, hidden=False, trials=blind):
    """What is found of noise of `scale` times the claim."""
    entries = scale * np.random.default_rng(1).normal(size=20_000)
    return weigh("mechanism", "", claim, trials, 0.95, noise=Noise.of(Gaussian(1.0), entries, hidden))


GAUSSIAN = Claim(1.0, 1e-6, events=((GaussianRelease(4.2), 1),))


def test_the_test_of_the_noise_finds_what_no_attack_sees_and_says_that_it_is_no_attack():
    broken = found(0.9, GAUSSIAN)
    assert broken.violated
    assert (broken.by, broken.detects) == (NOISE, None)
    assert GAUSSIAN.with_noise(0.93) < broken.measured < GAUSSIAN.with_noise(0.9)
    honest = found(1.0, GAUSSIAN)
    assert not honest.violated
    assert honest.by == "rates"
    assert honest.detects == pytest.approx(0.95, abs=0.03)


def test_noise_is_not_tested_where_a_projection_may_hide_it_or_where_no_scale_is_claimed():
    assert NOISE not in found(0.5, GAUSSIAN, hidden=True).checks
    assert NOISE not in found(0.5, Claim(1.0, 1e-6, note="nominal")).checks


@pytest.mark.parametrize("scale", [0.5, 1.0])
def test_what_is_detected_is_a_share_of_the_claim_and_not_of_the_noise_as_it_is(scale):
    """An attack that refutes the claim once the noise is 0.9 of what it is."""

    def sharp(factor):
        sees = factor <= 0.9
        return Trials(np.full(200, 1.0), np.full(200, -1.0 if sees else 1.0), paired=True)

    assert 0.9 in FACTORS
    detects = found(scale, GAUSSIAN, hidden=True, trials=sharp).detects
    assert detects == pytest.approx(0.9 * scale, abs=0.015)
