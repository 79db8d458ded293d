"""tacit attacks tacit: honest mechanisms stand, every broken one is caught."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from tacit.agent.agent import DeployedAgent
from tacit.audit import finding, mechanism, reconstruction, suite, training
from tacit.audit.answering import answer, answering, drawn, views
from tacit.audit.controls import CONTROLS, fainter, shared, stuck
from tacit.audit.finding import NOISE, claimed
from tacit.audit.neighbours import neighbours
from tacit.cli import main
from tacit.data import synthetic
from tacit.errors import SpecError
from tacit.features.registry import FEATURES
from tacit.privacy import lattice
from tacit.privacy.mechanism import Gaussian
from tacit.run.presets import preset

SIMULATED = [spec for spec in suite.mechanisms() if spec.privacy.noise != "exact"]
DEPLOYED = [spec for spec in suite.mechanisms() if spec.privacy.noise == "exact"]
METHODS = [name for name, control in CONTROLS.items() if control.method]  # tests/audit/test_methods.py
SEEDED = [name for name, one in CONTROLS.items() if one.spec.privacy.noise != "exact" and name not in METHODS]
SURE = 1 - 1e-9  # noise of the operating system is new in every run of the tests: a false alarm must be no event
OTHERS = [
    suite.standard().with_values({"problem.domain": "box"}),
    suite.standard().with_values({"problem.domain": "ball", "privacy.epsilon": 3.0}),
    suite.standard().with_values({"problem.loss": "squared", "privacy.adjacency": "replace_one"}),
    suite.standard().with_values({"privacy.sensitivity": "row_norm"}),
    preset("paper", "outp").with_values({"privacy.epsilon": 1.0}),
    preset("paper", "objt").with_values({"privacy.sensitivity": "feature_bounds", "privacy.epsilon": 3.0}),
    preset("paper", "objp").with_values(
        {"privacy.sensitivity": "feature_bounds", "privacy.epsilon": 1.0, "privacy.adjacency": "replace_one"}
    ),
    preset("paper", "outp").with_values({"privacy.epsilon": 1.0, "privacy.adjacency": "zero_out"}),
    preset("paper", "objt").with_values(
        {"privacy.sensitivity": "feature_bounds", "privacy.epsilon": 1.0, "data.low": 4.0, "data.high": 5.0,
         "privacy.adjacency": "replace_one"}
    ),
    preset("paper", "objp").with_values(
        {"privacy.sensitivity": "clip", "privacy.epsilon": 3.0, "data.low": -2.0, "data.high": 1.0}
    ),
]  # fmt: skip
SOUND = suite.standard().with_values(
    {"data.source": "synthetic", "data.agents": 4, "run.rounds": 20, "privacy.epsilon": 3.0}
)


LAPLACE_IN_L2 = suite.standard().with_values({"privacy.mechanism": "laplace"})


def refuted_by(found):
    """The attacks that refute the claim; the test of the noise is none."""
    return [name for name, check in found.checks.items() if check.violated and name != NOISE]


@pytest.fixture(scope="module")
def small():
    """A federation whose canaries, and not its records, take the time."""
    return synthetic.make(4, 200, 10, 3)


def respond(agent, question):
    """The trace of a simulated answer, whose noise is not looked at: a deployed agent has no seed."""
    return replace(agent, key=(0, 0)).respond(question.own, question.msg)[2]


@pytest.mark.parametrize("spec", suite.mechanisms() + OTHERS, ids=mechanism.name_of)
def test_the_canary_nearly_reaches_the_declared_sensitivity_and_never_passes_it(spec):
    pair = neighbours(mechanism.few_rounds(spec))
    for question in pair.questions:
        moved = [answer(agent, question)[0].reshape(1, -1) for agent in pair.sides]
        sensitivity = [respond(agent, question).sensitivity for agent in pair.sides]
        assert sensitivity[0] == sensitivity[1]
        distance = float(pair.present.variant.bound.norm.of_rows(moved[0] - moved[1])[0])
        assert 0.9 * sensitivity[0] <= distance <= sensitivity[0] * (1 + 1e-9)


ABSENT = [
    spec
    for spec in suite.mechanisms() + OTHERS
    if (spec.privacy.adjacency, spec.problem.domain, spec.features.map) == ("zero_out", "everywhere", "none")
]


@pytest.mark.parametrize("spec", ABSENT, ids=mechanism.name_of)
def test_where_a_record_may_be_absent_the_gradient_of_the_canary_sits_on_two_entries(spec):
    pair = neighbours(mechanism.few_rounds(spec))
    moved = np.subtract(*(answer(agent, pair.questions[0])[0] for agent in pair.sides))
    assert (np.abs(moved) > 1e-9 * np.abs(moved).max()).sum() == 2


@pytest.mark.parametrize("spec", SIMULATED + OTHERS, ids=mechanism.name_of)
def test_no_honest_mechanism_exceeds_its_claim(spec):
    found = mechanism.audit(spec, draws=500)
    assert found.verdict == "consistent"
    assert found.claim.epsilon <= spec.privacy.epsilon * (1 + 1e-9)
    assert set(found.checks) >= {"noise", "rates", "mu", "two agents", "two rounds"}
    assert found.by != NOISE


@pytest.mark.parametrize("spec", SIMULATED, ids=mechanism.name_of)
def test_four_fifths_of_the_noise_are_caught_by_an_attack_at_the_default_draws(spec):
    """And at the confidence of one finding of `tacit audit`: nine share 95 %."""
    found = mechanism.audit(spec, confidence=1 - 0.05 / 9, break_=fainter(0.8))
    assert refuted_by(found)
    assert found.checks[NOISE].violated


def mapped(name, adjacency):
    values = {"features.map": name, "data.row_mode": "clip", "privacy.adjacency": adjacency}
    bounds = {"data.low": -1.0, "data.high": 3.0} if name in ("columns", "fourier") else {}
    return suite.standard().with_values(values | bounds | {"data.source": "patients.csv"})


@pytest.mark.parametrize("adjacency", ["zero_out", "replace_one"])
@pytest.mark.parametrize("name", [name for name in FEATURES if name != "own"])
def test_canaries_that_pass_a_feature_map_reach_the_sensitivity_and_catch_faint_noise(name, adjacency):
    spec = mapped(name, adjacency)
    pair = neighbours(mechanism.few_rounds(spec))
    moved = [answer(agent, pair.questions[0])[0] for agent in pair.sides]
    sensitivity = respond(pair.present, pair.questions[0]).sensitivity
    assert 0.9 * sensitivity <= np.linalg.norm(np.subtract(*moved)) <= sensitivity * (1 + 1e-9)
    assert mechanism.audit(spec, draws=500, confidence=0.999).verdict == "consistent"
    assert refuted_by(mechanism.audit(spec, draws=1500, break_=fainter(0.5)))


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_the_measured_bound_comes_near_a_tight_claim(epsilon):
    found = mechanism.audit(suite.standard().with_values({"privacy.epsilon": epsilon}), draws=3000)
    assert 0.7 * epsilon < found.measured <= found.claim.epsilon


def test_a_laplace_run_is_tested_against_the_gaussian_that_dominates_it_though_another_bound_is_smaller():
    spec = mechanism.few_rounds(LAPLACE_IN_L2)
    claim = claimed(spec, neighbours(spec).present.variant, mechanism.LAPLACE_ROUNDS)
    assert claim.gaussian is not None
    assert claim.gaussian.epsilon > 1.1 * claim.epsilon
    found = mechanism.audit(LAPLACE_IN_L2, draws=400)
    assert found.checks["mu"].claimed == claim.gaussian.epsilon
    assert found.checks["rates"].claimed == claim.epsilon


def test_a_pure_epsilon_is_tested_against_its_gaussian_too():
    found = mechanism.audit(CONTROLS["halved-laplace"].spec, draws=400)
    assert found.claim.dp_delta == 0
    assert found.claim.epsilon == found.checks["rates"].claimed < found.checks["mu"].claimed < math.inf


@pytest.mark.parametrize("name", SEEDED)
@pytest.mark.parametrize("seed", [0, 1])
def test_every_broken_mechanism_is_caught(name, seed):
    """By an attack, and most of them with far fewer draws than the default."""
    draws = {"faint-noise": 8000, "halved-laplace-l2": 3000}.get(name, 1000)
    assert refuted_by(CONTROLS[name].audit(draws=draws, seed=seed))


@pytest.mark.parametrize(("name", "by"), [("shared-stream", "two agents"), ("reused-noise", "two rounds")])
def test_noise_that_is_not_new_is_caught_by_one_view_alone(name, by):
    found = CONTROLS[name].audit(draws=800)
    assert [check for check in found.checks if found.checks[check].violated] == [by]


@pytest.mark.parametrize("break_", [shared, stuck])
def test_noise_that_is_not_new_is_caught_in_the_ordinary_audit_of_any_mechanism(break_):
    for spec in SIMULATED[::2]:
        assert mechanism.audit(spec, draws=800, break_=break_).violated, mechanism.name_of(spec)


def test_the_mended_twins_of_the_controls_stand():
    """The attacks of the controls, against mechanisms that are whole."""
    for name in SEEDED:
        control = CONTROLS[name]
        if name not in ("clean-dual", "data-scale"):  # their specs themselves are broken
            assert replace(control, break_=lambda variant: variant).audit(draws=500).verdict == "consistent", name


# --- the agent as it is deployed: gate, ledger, noise of the operating system ----------------------------------------


@pytest.mark.parametrize("spec", DEPLOYED, ids=mechanism.name_of)
def test_a_deployed_agent_keeps_its_claim_and_the_attack_sees_much_of_it(spec):
    found = mechanism.audit(spec, draws=1600, confidence=SURE)
    assert found.verdict == "consistent"
    assert found.measured > 0.3 * found.checks[found.by].claimed
    assert found.detects is not None


SUMS = [name for name, control in CONTROLS.items() if control.fault]  # tests/audit/test_sum.py
BY_NOISE = ("deployed-default", "deployed-laplace", "deployed-l2", "deployed-law")


@pytest.mark.parametrize("name", [name for name in CONTROLS if name not in (*SEEDED, *METHODS, *BY_NOISE, *SUMS)])
def test_every_fault_of_a_deployed_agent_is_caught(name):
    assert refuted_by(CONTROLS[name].audit(draws=1500))


@pytest.mark.parametrize("name", BY_NOISE)
def test_the_scale_of_the_noise_shows_what_attacks_on_a_deployed_agent_need_many_draws_for(name):
    assert CONTROLS[name].audit(draws=150).checks[NOISE].violated


@pytest.mark.parametrize(("factor", "options"), [
    (0.8, []), (0.8, ["--adjacency", "replace_one"]), (0.8, ["--algorithm", "objp"]), (0.8, ["--epsilon", "8"]),
    (0.5, ["--set", "privacy.mechanism=laplace"]),
], ids=str)  # fmt: skip
def test_a_lattice_with_too_little_noise_is_caught_at_the_default_epsilon_too(factor, options, monkeypatch, capsys):
    """The audit once said `consistent, detects x 0.9` of all but epsilon 8, at twenty times these draws."""
    whole = lattice.release
    monkeypatch.setattr(lattice, "release", lambda value, scale, law: whole(value, factor * scale, law))
    assert main(["audit", "--what", "mechanism", "--noise", "exact", "--draws", "150", *options]) == 1
    assert "VIOLATED" in capsys.readouterr().out


def test_a_lattice_that_adds_no_noise_is_caught_though_everything_else_is_right(monkeypatch, capsys):
    """The audit once never reached it: `consistent`, at any epsilon."""
    def bare(value, scale, law, bits=None):  # noqa: ARG001
        return np.rint(value / lattice.grid(scale)) * lattice.grid(scale)

    monkeypatch.setattr(lattice, "release", bare)
    options = ["--noise", "exact", "--epsilon", "1", "--draws", "300", "--canaries", "200", "--rounds", "3"]
    for what in ("mechanism", "run"):
        data = ["--data", "synthetic", "--agents", "2"] if what == "run" else []
        assert main(["audit", "--what", what, *options, *data]) == 1
        assert "VIOLATED" in capsys.readouterr().out


@pytest.mark.parametrize(("which", "by"), [
    (lambda agent, _t: id(agent), "two rounds"), (lambda agent, t: (agent.terms.run, t), "two agents"),
], ids=["stuck", "shared"])  # fmt: skip
def test_deployed_agents_that_do_not_draw_noise_anew_are_caught_by_one_view_alone(which, by, monkeypatch):
    """The same noise in every round of an agent, or at every agent of a run: of the right law each time."""
    now, noise, asked, drawn = [], {}, DeployedAgent.answer, lattice.sample

    def answer_one(self, question):
        now[:] = [which(self, question.t)]
        return asked(self, question)

    def sample(law, t, shape, bits):
        unit = noise.setdefault(now[0], drawn(law, 2**30, shape, bits) / 2**30)
        return np.rint(t * unit).astype(np.int64)

    monkeypatch.setattr(DeployedAgent, "answer", answer_one)
    monkeypatch.setattr(lattice, "sample", sample)
    found = mechanism.audit(DEPLOYED[0], draws=800, confidence=SURE)
    assert [check for check in found.checks if found.checks[check].violated] == [by]


def test_a_whole_run_of_deployed_agents_keeps_its_claim_and_half_its_noise_does_not(small):
    spec = SOUND.with_values({"privacy.noise": "exact", "run.rounds": 5})
    honest = training.audit(spec, small, canaries=1200, confidence=SURE)
    broken = training.audit(spec, small, canaries=1200, break_=fainter(0.5))
    assert honest.verdict == "consistent"
    assert broken.verdict == "VIOLATED"


def test_an_audit_of_a_run_with_ledgers_spends_nothing_of_them(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(finding, "CONFIDENCE_DEPLOYED", SURE)
    spec = SOUND.with_values({"privacy.noise": "exact", "privacy.ledger": str(tmp_path / "l"), "run.name": "mine"})
    (tmp_path / "spec.toml").write_text(spec.toml())
    assert main(["audit", "--config", str(tmp_path / "spec.toml"), "--what", "mechanism", "--draws", "200"]) == 0
    assert "deployed" in capsys.readouterr().out
    assert [file.name for file in tmp_path.iterdir()] == ["spec.toml"]


def test_an_attack_catches_what_it_says_that_it_detects():
    found = mechanism.audit(suite.standard(), draws=1000)
    assert 0.85 <= found.detects < 0.98
    assert mechanism.audit(suite.standard(), draws=1000, break_=fainter(found.detects)).verdict == "VIOLATED"
    assert mechanism.audit(suite.standard(), draws=1000, break_=fainter(found.detects + 0.05)).verdict == "consistent"


def test_more_draws_detect_more():
    few, some, many = (mechanism.audit(suite.standard(), draws=draws).detects for draws in (64, 400, 4000))
    assert few < some < many


def test_the_attacker_sees_the_same_whoever_computes_a_round():
    # a long step, so that z moves far: float32 then holds the gradient in it to five digits
    spec = mechanism.few_rounds(LAPLACE_IN_L2).with_values({"schedule.step": 1000.0, "algorithm.momentum": 0.0})
    pair = neighbours(spec)
    agents = drawn([pair.present], 5, 0)
    fast, plain = (
        views(answering(spec.with_values({"run.engine": engine})), agents, pair.questions)
        for engine in ("fast", "plain")
    )
    np.testing.assert_allclose(fast, plain, rtol=0, atol=1e-5 * np.abs(plain).max())
    assert (fast[0] != fast[1]).all()  # every draw has noise of its own
    assert (fast[:, :, 0] != fast[:, :, 1]).all()  # and so has every round


def test_a_draw_has_the_same_noise_with_the_record_and_without():
    spec = mechanism.few_rounds(suite.standard())
    pair, how = neighbours(spec), answering(spec)
    noise = [
        views(how, drawn([agent], 5, 0), pair.questions)[:, 0, 0] - answer(agent, pair.questions[0])[0]
        for agent in pair.sides
    ]
    assert how.keyed
    np.testing.assert_allclose(noise[0], noise[1], rtol=0, atol=1e-5 * np.abs(noise[0]).max())


def test_a_scale_read_from_the_data_is_violated_under_the_released_preset():
    found = mechanism.audit(preset("released", "objt"), draws=500)
    assert found.verdict == "VIOLATED"
    assert "not private" in found.claim.note


def test_nothing_is_audited_where_nothing_is_claimed():
    with pytest.raises(SpecError, match="claims nothing"):
        mechanism.audit(suite.standard().with_values({"privacy.epsilon": math.inf}))


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"run.engine": "plain"},
        {"privacy.mechanism": "laplace"},
        {"privacy.adjacency": "replace_one"},
        {"algorithm.order": "wzd", "algorithm.linearize_at": "z", "schedule.rho": "static"},
        {"algorithm.rule": "prox", "algorithm.perturbation": "output"},
    ],
)
def test_whole_runs_keep_within_their_claim(values, small):
    found = training.audit(SOUND.with_values(values), small, canaries=1600)
    assert found.verdict == "consistent"
    assert set(found.checks) >= {"rates", "mu", "one run"}


def test_a_whole_run_with_half_the_noise_is_caught(small):
    honest = training.audit(SOUND, small, canaries=1600)
    broken = training.audit(SOUND, small, canaries=1600, break_=fainter(0.5))
    assert 1 < honest.measured <= honest.claim.epsilon < broken.measured
    assert honest.detects >= 0.6
    faint = training.audit(SOUND, small, canaries=1600, break_=fainter(0.85))
    assert faint.detects == pytest.approx(honest.detects, abs=0.05)  # of the claim, however much noise there is
    assert training.audit(SOUND, small, canaries=1600, break_=fainter(honest.detects)).verdict == "VIOLATED"


def test_noise_for_one_round_sold_as_noise_for_the_run_is_caught_without_assuming_its_shape(small):
    one = neighbours(mechanism.few_rounds(SOUND)).present.variant.mechanism.multiplier
    found = training.audit(SOUND, small, canaries=3000, break_=lambda m: replace(m, mechanism=Gaussian(one)))
    assert found.checks["rates"].violated
    assert found.checks["one run"].violated


def test_without_noise_a_server_sees_the_record_and_with_it_none():
    over = synthetic.make(3, 60, 400, 3, density=0.2)
    bare, private = reconstruction.reconstruct(SOUND, over, epsilons=(math.inf, 1.0), targets=3)
    assert bare.cosines.min() > 0.999
    assert np.abs(private.cosines).max() < 0.3
    assert bare.originals.shape == bare.guesses.shape == (3, 400)


def test_the_command_says_that_a_control_is_caught(capsys):
    assert main(["audit", "--control", "clean-dual", "--draws", "400"]) == 0
    out = capsys.readouterr().out
    assert "VIOLATED: caught" in out
    assert "mechanism" not in out


def test_the_command_fails_on_a_claim_that_is_violated(capsys):
    assert main(["audit", "--preset", "released", "--what", "mechanism", "--draws", "400", "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert not said["passed"]
    assert said["findings"][0]["verdict"] == "VIOLATED"
    assert said["findings"][0]["measured"] > said["findings"][0]["claimed"]
    assert said["findings"][0]["detects"] is None  # as it stands, it is refuted


def test_the_command_states_the_smallest_defect_that_it_would_have_found(capsys):
    assert main(["audit", "--what", "mechanism", "--epsilon", "3", "--draws", "2000"]) == 0
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("mechanism"))
    assert main(["audit", "--what", "mechanism", "--epsilon", "3", "--draws", "2000", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)["findings"][0]
    assert said["detects"] >= 0.8
    assert f"x {said['detects']:g}" in row
    assert said["checks"]["mu"]["claimed"] == said["claimed"]


def test_the_findings_of_one_command_share_its_risk_of_error(capsys):
    measured = []
    for methods in (["fedgd"], ["fedgd", "outp-plus", "secure-sum"]):
        flags = [flag for name in methods for flag in ("--method", name)]
        assert main(["audit", *flags, "--draws", "200", "--json"]) == 0
        findings = json.loads(capsys.readouterr().out)["findings"]
        measured += [one["measured"] for one in findings if one["name"] == "fedgd"]
    assert measured[0] > measured[1] > 0


def test_the_help_lists_every_control(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["audit", "--help"])
    assert stopped.value.code == 0
    out = capsys.readouterr().out
    for one in CONTROLS.values():
        assert f"  {one.name}  " in out
        assert one.about in " ".join(out.split())


def test_the_command_attacks_training_and_draws_what_a_server_sees(capsys, tmp_path):
    where = tmp_path / "seen.png"
    data = ["--data", "synthetic", "--agents", "2", "--rounds", "3", "--set", "data.records=60"]
    assert main(["audit", *data, "--draws", "200", "--canaries", "200", "--picture", str(where)]) == 0
    out = capsys.readouterr().out
    assert out.count("consistent\n") == 2
    assert "no noise: cosine to the record 1.000" in out
    assert where.stat().st_size > 100


@pytest.mark.parametrize(
    "options",
    [["--control", "nonsense"], ["--draws", "3"], ["--epsilon", "inf", "--what", "run", "--data", "synthetic"]],
)
def test_what_cannot_be_audited_is_refused_in_a_line(options, capsys):
    assert main(["audit", *options]) == 2
    assert capsys.readouterr().err.startswith("tacit: ")
