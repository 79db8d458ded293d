"""The paper's instance, for a few rounds: the numbers that full-length records begin with."""

import warnings

import numpy as np
import pytest

from tacit.errors import TacitWarning
from tacit.run.presets import preset
from tacit.run.train import train


def run(over, name, algorithm, **values):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TacitWarning)
        return train(preset(name, algorithm).with_values({"run.record_every": 50, **values}), over)


def test_released_objt_starts_as_the_authors_log_and_learns(mnist):
    result = run(mnist, "released", "objt", **{"run.rounds": 100})
    first, last = result.rounds[0], result.rounds[-1]
    assert first["rho"] == 102
    assert first["noise_scale"] == pytest.approx(0.1572626, rel=1e-6)
    assert first["noise_gradient_units"] == pytest.approx(0.1573, rel=0.01)  # E|xi| = b
    assert first["noise_parameter_units"] == pytest.approx(0.1573 / 102, rel=0.01)
    assert first["consensus_violation_per_agent"] == pytest.approx(12.09, rel=0.01)
    assert 0.45 < last["test_error"] < 0.65  # 56 % at t = 100 in the full-length record


def test_a_trust_region_of_a_twentieth_of_the_released_one_does_not_bind_either(mnist):
    free, narrow, tight = (
        run(mnist, "released", "objt", **{"run.rounds": 60, "run.record_every": 1, "schedule.radius_a": radius})
        for radius in (1.0, 0.05, 0.02)
    )
    assert all(row["binding"] == 0 for row in (*free.rounds, *narrow.rounds))
    np.testing.assert_array_equal(narrow.w, free.w)
    assert max(row["binding"] for row in tight.rounds) > 0  # so that the largest entry of a step lies between


def test_released_outp_has_sigma_squared_for_its_deviation(mnist):
    first = run(mnist, "released", "outp", **{"run.rounds": 1}).rounds[0]
    mu = 102 + 1649.8  # rho + 1/eta of round one
    assert first["noise_scale"] / mu == pytest.approx(0.0146, rel=0.005)
    assert first["noise_parameter_units"] == pytest.approx(0.0146 * np.sqrt(2 / np.pi), rel=0.01)


def test_the_radius_of_the_text_freezes_where_a_constant_one_learns(mnist):
    frozen = run(mnist, "paper", "objt", **{"run.rounds": 120})
    free = run(mnist, "paper", "objt", **{"run.rounds": 120, "schedule.radius": "constant"})
    assert np.abs(frozen.w).max() < 2 * np.pi**2 / 6  # w extrapolates what z_p can travel
    assert frozen.test_error > 0.7
    assert free.test_error < 0.6


def test_sound_reaches_a_useful_model_in_few_rounds(mnist):
    result = run(mnist, "sound", "objt", **{"run.rounds": 60})
    assert result.test_error < 0.12
    assert result.summary["epsilon"] <= 1
