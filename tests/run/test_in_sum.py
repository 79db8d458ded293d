"""Runs that trust a secure sum, in one process: the steps, the noise, the price, restarts, and who cannot have one."""

from __future__ import annotations

import hashlib
import math
from pathlib import Path

import numpy as np
import pytest

import tacit
from tacit.agent.agent import DeployedAgent
from tacit.cli import main
from tacit.errors import IncompatibleError, Interrupted, Refused, SpecError
from tacit.privacy import lattice, summed
from tacit.privacy.budget import total
from tacit.privacy.exact import Law
from tacit.privacy.ledger import Ledger
from tacit.privacy.release import GaussianRelease
from tacit.privacy.summed import Attempt, Peers, attempt_of
from tacit.run import build, deploy, deployment
from tacit.run.presets import preset
from tests.conftest import federation

pytest.importorskip("cryptography")

SMALL = {
    "data.source": "synthetic", "data.records": 80, "data.agents": 4, "run.rounds": 6, "features.map": "none",
    "privacy.trust": "sum",
}  # fmt: skip
SOUND = preset("sound", "objt").with_values(SMALL)
FIXED = {"privacy.clip": 0.5, "schedule.step": 0.5, "algorithm.momentum": 0.3}
FLAGS = ["train", "--data", "synthetic", "--agents", "4", "--set", "data.records=80", "--rounds", "6", "-qq"]


@pytest.fixture
def injected(monkeypatch):
    """Noise that the value itself decides: whoever adds the same value adds the same share."""

    def share(self, value, _bits=None):
        digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).digest()
        drawn = np.random.default_rng(list(digest)).normal(size=value.shape) * self.share_steps
        whole = np.rint(value / self.step).astype(np.int64) + np.rint(drawn).astype(np.int64)
        return whole.view(np.uint64) & np.uint64((1 << self.width) - 1)

    monkeypatch.setattr(Attempt, "share", share)


@pytest.fixture
def silent(monkeypatch):
    """No noise at all, behind a sum and without one."""

    def nothing(_law, _scale, shape, _bits=None):
        return np.zeros(shape, np.int64)

    monkeypatch.setattr(summed, "sample", nothing)
    monkeypatch.setattr(lattice, "sample", nothing)


def releases(run: Path) -> list[int]:
    """How many releases each agent of a run noted in the run's own ledgers."""
    counts = []
    for agent in "0123":
        with Ledger.open(run / "ledgers" / f"{agent}.ledger", deployment.price, create=False) as ledger:
            counts.append(ledger.verify().releases)
    return counts


# --- the steps


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("algorithm", ["objt", "objp"])
@pytest.mark.parametrize("order", ["zwd", "wzd"])
@pytest.mark.parametrize("eta", [0.7, 1e6])
def test_the_steps_are_those_of_agents_who_send_their_own_models(algorithm, order, eta):
    momentum = {"algorithm.momentum": 0.3 if order == "zwd" else 0.0}
    same = FIXED | momentum | {"algorithm.order": order, "schedule.eta_a": eta, "problem.beta": 0.1}
    spec = preset("sound", algorithm).with_values(SMALL | same)
    over = federation(4)
    hidden, shown = (tacit.train(spec.with_values({"privacy.trust": whom}), over) for whom in ("sum", "nobody"))
    assert np.abs(shown.w).max() > 0.01
    np.testing.assert_allclose(hidden.w, shown.w, atol=1e-7)  # each entry was rounded to a grid


@pytest.mark.usefixtures("injected")
def test_a_simulated_and_a_deployed_run_have_the_same_model_bit_for_bit_under_the_same_noise(tmp_path):
    over = federation(4)
    simulated = tacit.train(SOUND.with_values({"run.seed": 0}), over)
    deployed = tacit.train(SOUND, over, tmp_path / "run")
    assert simulated.summary["simulated_noise"]
    assert not deployed.summary["simulated_noise"]
    np.testing.assert_array_equal(deployed.w, simulated.w)
    assert [row["step"] for row in deployed.rounds] == [row["step"] for row in simulated.rounds]


def test_a_seed_repeats_a_simulation_and_another_one_does_not():
    first, again, other = (tacit.train(SOUND.with_values({"run.seed": seed})) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.w, again.w)
    assert np.abs(first.w - other.w).max() > 1e-6


# --- noise and price


def test_the_noise_of_a_sum_is_that_of_one_agent_whoever_colludes():
    spec = SOUND.with_values({"run.seed": 0})
    over = federation(4)
    agreed = build.admm_setup(spec, over).deployment.first_agreement
    numbers = agreed.summed(0)
    for c in (1, 2):
        attempt = attempt_of(numbers, Peers(4, c))
        assert attempt.share_steps * attempt.step * math.sqrt(4 - c) >= numbers.scale
        assert attempt.share_steps * attempt.step * math.sqrt(4 - c) <= 1.001 * numbers.scale
    needed = max(agreed.queries[0].sensitivity(agreed.adjacency, len(shard)) for shard in over.shards)
    assert numbers.scale >= numbers.multiplier * needed


def test_what_is_kept_back_of_delta_covers_the_law_of_a_sum_of_shares():
    spec = SOUND.with_values({"run.seed": 0})
    numbers = build.admm_setup(spec, federation(4)).deployment.first_agreement.summed(0)
    for peers in (Peers(3, 1), Peers(4, 2), Peers(1000, 1), Peers(10**6, 10)):
        own = summed.gap(attempt_of(numbers, peers).share_steps, peers.honest, numbers.dimension)
        assert own <= lattice.gap(Law.LAPLACE, numbers.scale, numbers.dimension)


@pytest.mark.parametrize("repetitions", [0, 3])
def test_repetitions_are_calibrated_for_agreed_to_and_stated(repetitions, tmp_path):
    spec = SOUND.with_values({"privacy.repetitions": repetitions, "privacy.epsilon": 2.0})
    result = tacit.train(spec, federation(4), tmp_path / "run")
    (release, _), = build.admm_setup(spec, federation(4)).promise.each_round
    assert isinstance(release, GaussianRelease)
    delta = result.summary["accounted_delta"]
    assert total([(release, 6 + repetitions)], delta).epsilon == pytest.approx(2.0, rel=1e-3)
    assert result.summary["epsilon"] == pytest.approx(2.0, rel=1e-3)
    assert (f"up to {repetitions} repetitions" in result.guarantee) == bool(repetitions)
    mu = math.sqrt(6 + repetitions) / release.multiplier  # a repetition tells as much as a round
    held_back = spec.privacy.dp_delta - delta  # for whole steps, and for masks
    assert result.summary["best_guess"] == pytest.approx((1 + math.erf(mu / math.sqrt(8)) + held_back) / 2, rel=1e-12)
    with Ledger.open(tmp_path / "run" / "ledgers" / "0.ledger", deployment.price, create=False) as ledger:
        (place,) = ledger.history().places.values()
        assert place.terms.repetitions == repetitions
        assert place.releases == 6


def test_the_guarantee_says_who_must_not_collude_with_whom(tmp_path):
    result = tacit.train(SOUND.with_values({"privacy.colluding": 2}), federation(4), tmp_path / "run")
    assert "the server and any 2 of the 4 agents together, if the other 2 follow the protocol" in result.guarantee
    for told in (result.summary["trust"], result.summary["covers"]):
        assert "nor any 2 of the 4 agents" in told
        assert "3 agents that do so void the guarantee" in told


def test_more_colluding_agents_take_more_noise():
    over, seeded = federation(4), SOUND.with_values({"run.seed": 0})
    one, two = (
        tacit.train(seeded.with_values({"privacy.colluding": c}), over).rounds[-1]["noise_scale"] for c in (1, 2)
    )
    assert two == pytest.approx(one * math.sqrt(3 / 2))


# --- what is on record, and restarts


@pytest.mark.usefixtures("silent")
def test_a_ledger_holds_masked_words_that_add_up_to_the_total_and_tell_nothing_alone(tmp_path, monkeypatch):
    seen = {}
    answer = DeployedAgent.answer

    def spied(self, question):
        found = answer(self, question)
        seen[question.t, self.name] = self.agreement, found.value
        return found

    monkeypatch.setattr(DeployedAgent, "answer", spied)
    over = federation(4)
    tacit.train(SOUND, over, tmp_path / "run")
    attempt = attempt_of(seen[1, "0"][0].summed(0), Peers(4, 1))
    low = np.uint64((1 << attempt.width) - 1)
    small = 2 ** (attempt.width - 8)  # without noise no share is larger, and its words would be that small too
    sent = np.array([[seen[t, name][1] for name in "0123"] for t in range(1, 7)])  # rounds, agents, entries
    assert sent.shape[:2] == (6, 4)
    total_of = attempt.steps(np.add.reduce(sent, axis=1, dtype=np.uint64) & low)
    assert np.abs(total_of).max() <= small
    large = np.abs(attempt.steps(sent)) > small  # a uniform word is, but for one in 128
    assert large.mean(axis=(0, 2)).min() > 0.85  # 11 of the 72 of an agent are small by chance once in 10^10 runs
    assert large.any(axis=0).all()  # and no entry goes without a mask


@pytest.mark.usefixtures("injected")
def test_a_run_that_was_stopped_goes_on_with_its_keys_and_leaves_none_behind(tmp_path):
    over = federation(4)
    whole = tacit.train(SOUND, over, tmp_path / "whole")

    def stop_at_three(done, _row):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        tacit.train(SOUND, over, tmp_path / "run", listener=stop_at_three)
    keys = list((tmp_path / "run" / "ledgers").glob("*.runkey"))
    assert len(keys) == 4
    assert all(key.stat().st_mode & 0o777 == 0o600 for key in keys)
    again = tacit.resume(tmp_path / "run", over)
    np.testing.assert_array_equal(again.w, whole.w)
    assert releases(tmp_path / "run") == [6] * 4
    assert not list((tmp_path / "run" / "ledgers").glob("*.runkey"))


@pytest.mark.usefixtures("injected")
def test_a_run_that_died_between_answers_and_total_pays_once(tmp_path, monkeypatch):
    over = federation(4)
    whole = tacit.train(SOUND, over, tmp_path / "whole")
    answer = DeployedAgent.answer_or_refuse

    def dies(self, question):
        if question.t == 4 and self.name in "23":  # the other two have answered: their words are on record
            raise Refused("the process ends here")
        return answer(self, question)

    with monkeypatch.context() as patched:
        patched.setattr(DeployedAgent, "answer_or_refuse", dies)
        with pytest.raises(Refused):
            tacit.train(SOUND, over, tmp_path / "run")
    assert releases(tmp_path / "run") == [4, 4, 3, 3]
    again = tacit.resume(tmp_path / "run", over)
    np.testing.assert_array_equal(again.w, whole.w)
    assert releases(tmp_path / "run") == [6] * 4


@pytest.mark.usefixtures("injected")
def test_keys_that_a_process_left_behind_its_result_go_when_the_run_is_read(tmp_path, monkeypatch):
    over = federation(4)
    with monkeypatch.context() as killed:
        killed.setattr(deploy, "forget_keys", lambda *_: None)
        tacit.train(SOUND, over, tmp_path / "run")
    ledgers = tmp_path / "run" / "ledgers"
    assert len(list(ledgers.glob("*.runkey"))) == 4
    tacit.resume(tmp_path / "run", over)
    assert not list(ledgers.glob("*.runkey"))


# --- who cannot have a sum


@pytest.mark.parametrize(("values", "why"), [
    ({"data.agents": 2}, "needs 3 agents, and there are 2"),
    ({"data.agents": 1}, "there is one"),
    ({"privacy.colluding": 3}, "needs 5 agents"),
    ({"algorithm.linearize_at": "z", "algorithm.order": "wzd", "algorithm.momentum": 0.0}, "hidden z_p"),
    ({"privacy.mechanism": "laplace"}, "Gaussian noise"),
    ({"privacy.epsilon": math.inf}, "noise"),
    ({"privacy.covers": "round"}, "whole run"),
    ({"algorithm.gradient_weight": "local"}, "weigh"),
    ({"run.engine": "torch"}, "torch adds no shares"),
    ({"privacy.trust": "nobody", "privacy.colluding": 2}, "set trust to .sum."),
    ({"privacy.trust": None, "privacy.repetitions": 2}, "set trust to .sum."),
])  # fmt: skip
def test_a_run_that_needs_more_than_a_sum_is_refused_with_the_reason(values, why, tmp_path):
    spec = SOUND.with_values({"run.seed": 0} | values)
    with pytest.raises((IncompatibleError, SpecError), match=why):
        tacit.train(spec, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("algorithm", ["outp", "objt-laplace", "admm", "fedavg"])
def test_methods_that_need_more_than_a_sum_are_refused_from_the_command_line(algorithm, tmp_path, capsys):
    out = str(tmp_path / "run")
    assert main([*FLAGS, "--trust", "sum", "--seed", "0", "--algorithm", algorithm, "--out", out]) == 2
    said = capsys.readouterr().err.strip()
    assert len(said.splitlines()) == 1
    assert algorithm in said
    assert not (tmp_path / "run").exists()


def test_trusting_nobody_is_the_default():
    assert preset("sound", "objt").in_sum is None
    assert preset("sound", "objt").with_values({"privacy.trust": "nobody"}).in_sum is None


def test_a_word_of_a_sum_is_counted_as_eight_bytes():
    over, seeded = federation(4), SOUND.with_values({"run.seed": 0})
    hidden, shown = (tacit.train(seeded.with_values({"privacy.trust": whom}), over) for whom in ("sum", "nobody"))
    assert hidden.summary["sent_bytes"] == 2 * shown.summary["sent_bytes"] > 0


@pytest.mark.parametrize("words", [
    ["compare", "--data", "synthetic", "--agents", "2", "--methods", "objt", "--trust", "sum"],
    ["audit", "--method", "fedgd", "--trust", "sum"],
    ["audit", "--trust", "sum", "--colluding", "2"],
])  # fmt: skip
def test_commands_that_cannot_keep_a_sum_say_so_in_one_line_and_write_nothing(words, tmp_path, capsys):
    out = ["--out", str(tmp_path / "out")] if words[0] == "compare" else []
    assert main([*words, *out, "-qq"]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_the_failure_of_a_graph_of_masks_is_part_of_delta():
    many = SOUND.with_values({"data.agents": 120, "data.records": 2000, "privacy.noise": "exact"})
    small = many.with_values({"privacy.dp_delta": 1e-9})
    with pytest.raises(IncompatibleError, match="more than is kept back"):
        tacit.train(small)
    deploy.check(many, build.setup(many, build.federation(many)))
    few = small.with_values({"data.agents": 100})
    deploy.check(few, build.setup(few, build.federation(few)))
