"""Which noise a run draws: exact noise where no seed is given, a simulation wherever a run is only looked at."""

from __future__ import annotations

import math
import shutil
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tacit
from tacit import toml
from tacit.cli import main
from tacit.compare.job import Job
from tacit.engine.registry import ENGINES
from tacit.errors import IncompatibleError, Interrupted, RunDirectoryError, SpecError, TacitWarning
from tacit.methods.method import Budget
from tacit.methods.registry import METHODS
from tacit.paper.archive import key_of
from tacit.privacy.ledger import Ledger
from tacit.run import build, deploy, deployment, sweep
from tacit.run.directory import RunDirectory
from tacit.run.noise import deployable, simulated, with_noise
from tacit.run.presets import PRESETS, preset
from tacit.run.spec import Spec
from tests.conftest import federation

SMALL = {"data.source": "synthetic", "data.records": 60, "data.agents": 3, "run.rounds": 6, "features.map": "none"}
SOUND = preset("sound", "objt").with_values(SMALL)
FLAGS = ["train", "--data", "synthetic", "--agents", "3", "--set", "data.records=60", "--rounds", "6", "-qq"]


def stop_at_three(done: int, _row: object) -> None:
    if done == 3:
        raise KeyboardInterrupt


def releases(run: Path) -> list[int]:
    """How many releases each agent of a run noted in the run's own ledgers."""
    counts = []
    for agent in "012":
        with Ledger.open(run / "ledgers" / f"{agent}.ledger", deployment.price, create=False) as ledger:
            counts.append(ledger.verify().releases)
    return counts


def test_a_run_without_a_seed_draws_exact_noise_and_may_be_released(tmp_path):
    first, second = tacit.train(SOUND, out=tmp_path / "a"), tacit.train(SOUND, out=tmp_path / "b")
    assert not np.array_equal(first.w, second.w)
    assert first.summary["seed"] is None
    assert first.summary["simulated_noise"] is False
    assert first.guarantee.endswith("exact noise from the operating system")
    assert not any("seed" in one for one in first.summary["not_covered"])
    written = toml.read(tmp_path / "a" / "spec.toml")
    assert written["privacy.noise"] == "exact"
    assert "run.seed" not in written
    assert RunDirectory.open(tmp_path / "a").spec() == with_noise(SOUND)


def test_a_run_with_a_seed_is_simulated_and_repeats(tmp_path):
    seeded = SOUND.with_values({"run.seed": 7})
    first, second = tacit.train(seeded, out=tmp_path / "a"), tacit.train(seeded)
    np.testing.assert_array_equal(first.w, second.w)
    assert first.summary["seed"] == 7
    assert first.summary["simulated_noise"] is True
    assert first.summary["ledger_heads"] is None
    assert any("without a seed" in one for one in first.summary["not_covered"])
    written = toml.read(tmp_path / "a" / "spec.toml")
    assert (written["privacy.noise"], written["run.seed"]) == ("simulated", 7)


@pytest.mark.parametrize("values", [
    {"run.seed": 0, "privacy.noise": "simulated"}, {"run.seed": 0}, {"privacy.noise": "simulated"},
])  # fmt: skip
def test_what_an_earlier_version_wrote_or_what_asks_for_a_simulation_is_simulated_from_seed_zero(values):
    found = with_noise(SOUND.with_values(values))
    assert (found.privacy.noise, found.run.seed) == ("simulated", 0)


@pytest.mark.parametrize("name", sorted(set(PRESETS) - {"sound"}))
def test_presets_that_reproduce_are_simulated_from_seed_zero(name):
    found = with_noise(preset(name, "objt").with_values({"privacy.sensitivity": "clip"}))
    assert deployable(found)
    assert (found.privacy.noise, found.run.seed) == ("simulated", 0)


def test_an_engine_that_only_simulates_asks_for_a_simulation():
    found = with_noise(SOUND.with_values({"run.engine": "plain"}))
    assert (found.privacy.noise, found.run.seed) == ("simulated", 0)


CHANGES = {
    "as it is": {}, "no budget": {"privacy.epsilon": math.inf}, "observed": {"privacy.sensitivity": "observed"},
    "counted": {"privacy.sensitivity": "record_count"}, "bounds": {"privacy.sensitivity": "feature_bounds"},
    "rows": {"privacy.sensitivity": "row_norm"}, "box": {"problem.domain": "box"}, "ball": {"problem.domain": "ball"},
    "laplace": {"privacy.mechanism": "laplace"},
    "a round": {"privacy.covers": "round"}, "output": {"algorithm.perturbation": "output"},
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", ["objt", "objp", "outp", "iadmm-trust", "admm", "fedgd"])
def test_what_is_deployed_unasked_is_what_can_be_deployed(name, change):
    """Exact noise is chosen where the agents accept it, and nowhere else."""
    spec = preset("sound", name).with_values(SMALL | CHANGES[change] | {"privacy.noise": "exact"})
    try:
        setup = build.setup(spec, build.federation(spec))
        deploy.check(spec, setup)
        accepted = True
    except IncompatibleError:
        accepted = False
    assert deployable(spec) == accepted or (deployable(spec) and not _can_be_simulated(spec))


def _can_be_simulated(spec: Spec) -> bool:
    """Whether the spec has a meaning at all: if it has none, whoever asks for it is told why."""
    try:
        build.setup(spec.with_values({"privacy.noise": "simulated"}), build.federation(spec))
    except IncompatibleError:
        return False
    return True


@pytest.mark.parametrize("name", METHODS)
def test_every_method_trains_without_a_seed_and_says_which_noise_it_drew(name):
    spec = preset("sound", name).with_values({key: value for key, value in SMALL.items() if key != "run.rounds"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TacitWarning)
        told = tacit.train(spec).summary
    exact = deployable(spec) and name not in ("secure-sum", "onemessage-sum")  # a simulation by name
    assert (told["seed"] is None) == exact
    if math.isfinite(spec.privacy.epsilon):
        assert told["simulated_noise"] == (not exact)


def test_what_is_only_looked_at_is_simulated():
    (member,) = sweep.expand({"data.source": "synthetic"}, "a grid")
    job = Job(SOUND, "objt", {}, Budget(1.0, 1e-6), 3, "run")
    for spec, seed in ((member.spec, 0), (job.run_spec, 3)):
        assert (spec.privacy.noise, spec.run.seed) == ("simulated", seed)
    one, other = (build.admm_setup(spec, federation()) for spec in (SOUND, simulated(SOUND)))
    assert [agent.key for agent in one.agents] == [agent.key for agent in other.agents] == [(0, p) for p in range(3)]


def test_records_from_before_there_was_a_choice_are_found_under_the_same_name():
    assert key_of(SOUND.with_values({"run.seed": 0})) == key_of(simulated(SOUND))
    assert key_of(SOUND.with_values({"privacy.noise": "exact"})) != key_of(simulated(SOUND))


def test_sweeps_without_a_seed_repeat(tmp_path):
    members = sweep.expand(SMALL, "a grid")
    first, second = (sweep.run(members, tmp_path / name)[0] for name in "ab")
    assert first["objective"] == second["objective"]
    assert first["seed"] == 0


def test_noise_cannot_be_simulated_without_a_seed():
    exact = with_noise(SOUND)
    agents = build.admm_setup(exact, federation()).agents
    with pytest.raises(IncompatibleError, match="simulated noise needs a seed"):
        ENGINES["fast"]([agents], (4, 3), "cpu")
    with pytest.raises(IncompatibleError, match="simulated noise needs a seed"):
        _ = agents[0].stream
    assert replace(agents[0], key=(0, 1)).stream == (0, 1)


def test_a_seed_beside_exact_noise_is_refused(tmp_path, capsys):
    with pytest.raises(SpecError, match=r"follows no seed, and run\.seed = 5: drop the seed"):
        tacit.train(SOUND.with_values({"run.seed": 5, "privacy.noise": "exact"}), out=tmp_path / "run")
    assert main([*FLAGS, "--noise", "exact", "--seed", "0", "--out", str(tmp_path / "run")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("words", "message"), [
    (["--seed", "1", "--ledger", "ledgers"], "a ledger records releases with real noise"),
    (["--limit", "3"], "privacy.limit is kept in a ledger"),
    (["--seed", "-1"], "run.seed must be a whole number from 0"),
    (["--noise", "none"], "'none'"),
    (["--epsilon", "100"], "simulate the noise with a seed (--seed 0"),
])  # fmt: skip
def test_wrong_input_ends_with_two_and_one_sentence(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main([*FLAGS, *words, "--out", "run"]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_file_gives_way_to_the_noise_that_is_asked_for(tmp_path):
    """Simulate, then release the same run, then simulate it from another seed: later sources win."""
    a, b, c = (tmp_path / name for name in "abc")
    assert main([*FLAGS, "--seed", "3", "--out", str(a)]) == 0
    assert main(["train", "--config", str(a / "spec.toml"), "--noise", "exact", "-qq", "--out", str(b)]) == 0
    assert main(["train", "--config", str(b / "spec.toml"), "--seed", "4", "-qq", "--out", str(c)]) == 0
    kinds = [(spec.privacy.noise, spec.run.seed) for spec in (RunDirectory.open(run).spec() for run in (a, b, c))]
    assert kinds == [("simulated", 3), ("exact", None), ("simulated", 4)]


def test_the_spec_of_a_run_with_exact_noise_asks_for_new_noise_and_new_ledgers(tmp_path):
    tacit.train(SOUND, out=tmp_path / "a")
    again = Spec().with_values(toml.read(tmp_path / "a" / "spec.toml"))
    tacit.train(again, out=tmp_path / "b")
    assert releases(tmp_path / "a") == releases(tmp_path / "b") == [6, 6, 6]
    models = [tacit.Model.read(tmp_path / name).w for name in "ab"]
    assert not np.array_equal(*models)


def test_a_run_that_was_stopped_and_moved_goes_on_with_its_own_ledgers_and_pays_for_each_round_once(tmp_path):
    with pytest.raises(Interrupted):
        tacit.train(SOUND, out=tmp_path / "run", listener=stop_at_three)
    assert releases(tmp_path / "run") == [3, 3, 3]
    shutil.move(tmp_path / "run", tmp_path / "elsewhere")
    result = tacit.resume(tmp_path / "elsewhere")
    assert releases(tmp_path / "elsewhere") == [6, 6, 6]
    assert set(result.summary["ledger_heads"]) == {"0", "1", "2"}


@pytest.mark.parametrize(("lost", "message"), [("ledgers", "kept no ledger"), ("ledgers/1.ledger", "put it back")])
def test_a_run_that_lost_its_own_ledgers_is_not_resumed(lost, message, tmp_path):
    """What was released is not known any more: to go on would be to release rounds twice."""
    with pytest.raises(Interrupted):
        tacit.train(SOUND, out=tmp_path / "run", listener=stop_at_three)
    gone = tmp_path / "run" / lost
    shutil.rmtree(gone) if gone.is_dir() else gone.unlink()
    with pytest.raises(tacit.errors.TacitError, match=message):
        tacit.resume(tmp_path / "run")


def test_a_run_of_an_earlier_version_that_kept_no_ledger_is_not_resumed(tmp_path):
    """It noted a seed beside exact noise."""
    with pytest.raises(Interrupted):
        tacit.train(SOUND, out=tmp_path / "run", listener=stop_at_three)
    shutil.rmtree(tmp_path / "run" / "ledgers")
    with (tmp_path / "run" / "spec.toml").open("a") as file:
        file.write("seed = 0\n")
    with pytest.raises(RunDirectoryError, match="kept no ledger"):
        tacit.resume(tmp_path / "run")
