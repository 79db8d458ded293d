"""Noise of released OutP stands beside that of ObjT in the units of one gradient."""

import pytest

from tacit import record
from tacit.paper.archive import Archive, on_one_weight, select
from tests.paper.test_reproduce import RECORDS


@pytest.fixture(scope="module")
def recorded():
    return Archive(RECORDS / "paper.jsonl")


def noise(recorded, algorithm, epsilon):
    """The noise of seed 0 on MNIST on one weight, at the first and at the last of 20,000 rounds."""
    where = {"data.source": "mnist", "algorithm.name": algorithm, "privacy.epsilon": epsilon, "run.rounds": 20_000}
    where |= {"run.seed": 0, "schedule.rho_factor": 1.0, "schedule.rho": "dynamic", "data.partition": None}
    where |= {"schedule.eta_a": 1.0, "schedule.radius_a": 1.0}
    where |= {"algorithm.gradient_weight": "local" if algorithm == "outp" else "global"}  # as released
    (one,) = select(recorded, where)
    curve = on_one_weight(one)["curve"]["noise_one_weight"]
    return curve[0], curve[-1]


@pytest.mark.parametrize(("epsilon", "first", "last"), [(0.05, 13, 1.1), (1.0, 0.76, 0.47)])
def test_on_one_weight_outp_has_thirteen_times_the_noise_of_objt_or_less(recorded, epsilon, first, last):
    ours, theirs = noise(recorded, "objt", epsilon), noise(recorded, "outp", epsilon)
    assert theirs[0] / ours[0] == pytest.approx(first, rel=0.03)
    assert theirs[1] / ours[1] == pytest.approx(last, rel=0.05)


def test_a_weight_of_one_over_all_records_changes_nothing(recorded):
    one = select(recorded, {"algorithm.name": "objt"})[0]
    shown = on_one_weight(one)
    assert shown["curve"]["noise_one_weight"] == one["curve"]["noise_gradient_units"]
    assert record.checked(record.lines([shown]).strip(), "here") == shown  # its seal is its own


def test_a_run_that_diverged_has_no_noise_to_weigh():
    lost = {"name": "lost", "diverged": "in round 3"}
    assert on_one_weight(lost) == lost
