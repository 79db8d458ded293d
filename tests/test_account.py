"""tacit account, and the glue that prices a run: no mutation of it can report less than was spent."""

import json
import math
from dataclasses import replace

import pytest

from tacit.admm.compatible import release
from tacit.cli import main
from tacit.privacy.budget import total
from tacit.privacy.release import GaussianRelease, LaplaceRelease
from tacit.run import build, compose, guarantee
from tacit.run.presets import preset
from tests.conftest import federation


def account(capsys, *arguments):
    assert main(["account", "--json", *arguments]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_papers_headline_run_composes_to_fifty_seven(capsys):
    told = account(capsys, "--mechanism", "laplace", "--epsilon", "0.05", "--rounds", "20000", "--dp-delta", "1e-6")
    assert told["pld"] == pytest.approx(57.1425, rel=1e-4)
    assert told["rdp"] <= 59.8713
    assert told["basic"] == pytest.approx(1000)
    assert told["epsilon"] == told["pld"]


def test_the_same_noise_accounted_in_l2_is_worth_below_one(capsys):
    arguments = ["--mechanism", "laplace", "--epsilon", "0.05", "--rounds", "20000", "--l2-ratio", "0.02525"]
    told = account(capsys, *arguments)
    assert told["rdp"] == pytest.approx(0.797, abs=1e-3)
    assert told["bound"] == "gdp"


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_inverting_a_target_meets_it_from_below(capsys, mechanism):
    told = account(capsys, "--mechanism", mechanism, "--target-epsilon", "1", "--rounds", "100")
    assert 0.999 <= told["epsilon"] <= 1
    again = account(capsys, "--mechanism", mechanism, "--multiplier", repr(told["multiplier"]), "--rounds", "100")
    assert again["epsilon"] == pytest.approx(told["epsilon"], rel=1e-6)


def test_local_steps_count_like_rounds(capsys):
    one = account(capsys, "--multiplier", "50", "--rounds", "100", "--local-steps", "5")
    other = account(capsys, "--multiplier", "50", "--rounds", "500")
    assert one["epsilon"] == other["epsilon"]


@pytest.mark.parametrize("arguments", [
    ["--rounds", "10"], ["--rounds", "0", "--multiplier", "1"], ["--rounds", "10", "--multiplier", "-1"],
    ["--rounds", "10", "--multiplier", "1", "--epsilon", "1"], ["--rounds", "10", "--multiplier", "1e308"],
    ["--rounds", "10", "--target-epsilon", "1", "--multiplier", "2"], ["--rounds", "10", "--target-epsilon", "0"],
    ["--rounds", "10", "--multiplier", "1", "--l2-ratio", "0.5"],
    ["--rounds", "10", "--multiplier", "1", "--dp-delta", "2"],
])  # fmt: skip
def test_bad_questions_get_one_line(capsys, arguments):
    assert main(["account", *arguments]) == 2
    assert capsys.readouterr().err.count("\n") == 1


SOUND = preset("sound", "objt")
CASES = {
    "gaussian": SOUND,
    "laplace in l2": SOUND.with_values({"privacy.mechanism": "laplace"}),
    "replace one": SOUND.with_values({"privacy.adjacency": "replace_one"}),
    "exact": SOUND.with_values({"privacy.noise": "exact"}),
    "laplace a round": preset("paper", "objt").with_values({"privacy.sensitivity": "clip", "run.rounds": 20}),
    "gaussian a round": preset("paper", "outp").with_values({"run.rounds": 20}),
}


@pytest.mark.parametrize("spec", CASES.values(), ids=CASES)
def test_what_is_reported_is_what_the_noise_in_use_is_worth(spec):
    """From the scale that agents draw at and the bound of a record, with nothing but the theorem in between."""
    over = federation()
    setup = build.setup(spec, over)
    told = guarantee.spent_by(spec, setup)
    agent = setup.agents[-1]
    bound = agent.variant.bound.value
    reach = agent.problem.weight * bound * {"zero_out": 1, "replace_one": 2}[spec.privacy.adjacency]
    over_noise = agent.calibration * bound / reach  # scale over sensitivity
    if spec.privacy.mechanism == "gaussian":
        one = GaussianRelease(over_noise)
    elif spec.privacy.covers == "run":
        one = LaplaceRelease(math.inf, 1 / over_noise)
    else:
        one = LaplaceRelease(1 / over_noise)
    assert told.epsilon >= total([(one, spec.run.rounds)], spec.privacy.dp_delta).epsilon * (1 - 1e-6)
    if spec.privacy.covers == "run":
        assert 0.995 * spec.privacy.epsilon <= told.epsilon <= spec.privacy.epsilon


@pytest.mark.parametrize("spec", CASES.values(), ids=CASES)
def test_less_noise_or_more_rounds_always_costs_more(spec):
    over = federation()
    setup = build.setup(spec, over)
    told = guarantee.spent_by(spec, setup).epsilon
    variant = setup.agents[0].variant
    quieter = replace(variant, mechanism=replace(variant.mechanism, multiplier=variant.mechanism.multiplier / 2))
    agents = (*setup.agents[1:], replace(setup.agents[0], variant=quieter))  # one agent of several is enough
    promise = compose._promise(agents, None)
    assert guarantee.spent_by(spec, replace(setup, agents=agents, promise=promise)).epsilon > 1.3 * told
    longer = spec.with_values({"run.rounds": 2 * spec.run.rounds})
    assert guarantee.spent_by(longer, setup).epsilon > 1.2 * told


@pytest.mark.parametrize("values", [
    {"privacy.sensitivity": "observed"}, {"privacy.epsilon": math.inf}, {"privacy.sensitivity": "record_count"},
])  # fmt: skip
def test_what_has_no_guarantee_reports_none(values):
    spec = preset("paper", "objt").with_values(values | {"run.rounds": 3})
    setup = build.setup(spec, federation())
    assert guarantee.spent_by(spec, setup) is None
    assert release(setup.agents[0].variant) is None
    assert guarantee.of(spec, setup).sentence.startswith("not private")


def test_the_paper_preset_states_its_claim_and_what_it_composes_to():
    spec = preset("paper", "objt").with_values({"run.rounds": 20_000, "privacy.epsilon": 0.05})
    said = guarantee.of(spec, build.setup(spec, federation())).sentence
    assert said.startswith("not private")
    assert "epsilon 0.05 a round" in said
    assert "(57.14, 1e-06)-DP" in said


def test_noise_of_sigma_squared_is_credited_with_no_epsilon_at_all():
    spec = preset("released", "outp").with_values({"run.rounds": 20_000, "privacy.epsilon": 4.9})
    said = guarantee.of(spec, build.setup(spec, federation())).sentence
    assert "sigma^2" in said
    assert "-DP" not in said


def test_classes_read_from_private_labels_are_no_guarantee():
    over = replace(federation(), public_classes=False)
    setup = build.setup(SOUND, over)
    assert guarantee.spent_by(SOUND, setup) is None
    assert "list of classes" in guarantee.of(SOUND, setup).sentence


def test_epsilon_and_delta_in_a_result_belong_together():
    from tacit.run.train import train

    values = {"privacy.sensitivity": "clip", "privacy.epsilon": 0.5, "run.rounds": 200}
    summary = train(preset("paper", "objp").with_values(values), federation()).summary
    assert summary["epsilon"] < 100
    assert summary["dp_delta"] == 1e-6  # not the 0 of a pure epsilon, whose total is 100
