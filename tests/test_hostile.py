"""How far one hostile agent of ten moves a model of MNIST: docs/guarantees.md has the numbers of whole runs."""

import warnings

import pytest
from benchmarks import hostile

from tacit.errors import TacitWarning
from tacit.run import build
from tacit.run.presets import preset

VALUES = {"data.source": "mnist", "data.agents": 10, "algorithm.name": "objt", "privacy.epsilon": 1.0,
          "privacy.noise": "exact", "run.rounds": 30}  # fmt: skip


@pytest.fixture(scope="module")
def error():
    over = build.federation(preset("sound", "objt", "mnist").with_values(VALUES))

    def of(kind, checks):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TacitWarning)
            return hostile.error(VALUES, over, kind, checks)

    return of


def test_without_the_check_one_agent_of_ten_ruins_a_model_and_with_it_the_model_is_that_of_the_others(error):
    honest = error("honest", True)
    assert honest < 0.06
    for kind in ("garbage", "far"):
        assert error(kind, False) > 0.5
        assert error(kind, True) < honest + 0.01


def test_an_agent_that_stays_below_the_threshold_or_lies_about_its_records_is_not_recognised(error):
    for kind in ("one class", "labels"):
        assert error(kind, True) == pytest.approx(error(kind, False), abs=0.02)
    assert error("one class", True) > 0.1
    assert error("claims", True) > error("one class", True) + 0.05
