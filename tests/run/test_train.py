"""A run is its spec: complete, repeatable, and it survives being stopped."""

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest

import tacit
from tacit import toml
from tacit.errors import (
    IncompatibleError,
    Interrupted,
    NotPrivateWarning,
    RunDirectoryError,
    SpecError,
    StabilityWarning,
    SummableRadiusWarning,
)
from tacit.methods.registry import METHODS
from tacit.run import build
from tacit.run.directory import RunDirectory
from tacit.run.noise import simulated
from tacit.run.presets import PRESETS, preset
from tacit.run.spec import Spec, keys
from tacit.run.train import resume, train
from tests.conftest import federation

SMALL = {
    "data.source": "synthetic", "data.records": 200, "data.agents": 4, "data.seed": 1, "run.rounds": 12, "run.seed": 0,
}  # fmt: skip

FAMILY = [name for name, entry in METHODS.items() if entry.is_admm]


def quiet_train(*args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tacit.errors.TacitWarning)
        return train(*args, **kwargs)


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("algorithm", FAMILY)
def test_every_preset_of_every_algorithm_runs_and_repeats(name, algorithm):
    spec = preset(name, algorithm).with_values(SMALL)
    first, second = quiet_train(spec), quiet_train(spec)
    np.testing.assert_array_equal(first.w, second.w)
    assert first.summary["algorithm"] == algorithm
    assert np.isfinite(first.w).all()
    assert first.w.dtype == np.float64


def test_the_written_spec_gives_the_same_result_again(tmp_path):
    spec = preset("released", "objt").with_values(SMALL)
    first = quiet_train(spec, out=tmp_path / "run")
    again = Spec().with_values(toml.read(tmp_path / "run" / "spec.toml"))
    assert again == simulated(spec)
    np.testing.assert_array_equal(quiet_train(again).w, first.w)


def test_a_run_directory_holds_the_promised_files_and_keys(tmp_path):
    result = quiet_train(preset("released", "outp").with_values(SMALL), out=tmp_path / "run")
    assert {path.name for path in (tmp_path / "run").iterdir()} == {
        "spec.toml", "rounds.jsonl", "result.json", "model.npz",
    }  # fmt: skip
    written = json.loads((tmp_path / "run" / "result.json").read_text())
    assert written == result.summary
    assert written.keys() >= {
        "algorithm", "preset", "dataset", "agents", "rounds", "seed", "test_error", "test_error_averaged",
        "objective", "consensus_violation", "epsilon_per_round", "dp_delta", "seconds", "version",
    }  # fmt: skip
    rows = [json.loads(line) for line in (tmp_path / "run" / "rounds.jsonl").read_text().splitlines()]
    assert [row["t"] for row in rows] == list(range(1, 13))
    assert rows[0].keys() >= {
        "test_error", "test_error_averaged", "objective", "consensus_violation", "consensus_violation_per_agent",
        "noise_gradient_units", "noise_parameter_units", "noise_scale", "step", "rho",
        "seconds_gradient", "seconds_noise", "seconds_update", "seconds_evaluation",
    }  # fmt: skip


def test_an_interrupted_run_resumes_to_the_same_bits(tmp_path):
    spec = preset("released", "outp").with_values(SMALL)
    whole = quiet_train(spec, out=tmp_path / "whole")

    def stop_at_five(done, _row):
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted, match="after 5 of 12"):
        quiet_train(spec, out=tmp_path / "cut", listener=stop_at_five)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tacit.errors.TacitWarning)
        resumed = resume(tmp_path / "cut")
    np.testing.assert_array_equal(resumed.w, whole.w)
    np.testing.assert_array_equal(resumed.w_average, whole.w_average)
    assert [row["test_error"] for row in resumed.rounds] == [row["test_error"] for row in whole.rounds]
    assert resume(tmp_path / "cut").summary == resumed.summary  # a finished run is only read


SIGNALLED = """
import sys, warnings
warnings.simplefilter("ignore")
import tacit
from tacit.cli import main
print("ready", flush=True)
sys.exit(main(["train", "--config", sys.argv[1], "--out", sys.argv[2], "-qq"]))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("engine", ["fast", "plain"])
def test_a_signal_at_any_moment_saves_a_whole_round(tmp_path, number, engine):
    """Real signals, wherever they land: what is resumed ends where the uninterrupted run does."""
    values = {"run.rounds": 400, "run.record_every": 37, "run.engine": engine, "data.records": 2000}
    spec = preset("released", "objt").with_values(SMALL | values)
    whole = quiet_train(spec)
    (tmp_path / "spec.toml").write_text(spec.toml())
    for trial in range(3):
        out = tmp_path / f"cut{trial}"
        arguments = [sys.executable, "-c", SIGNALLED, str(tmp_path / "spec.toml"), str(out)]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
            process.stdout.readline()
            while not (out / "rounds.jsonl").exists() and process.poll() is None:
                time.sleep(0.001)
            time.sleep(0.003 * trial)
            process.send_signal(number)
            code = process.wait()
        late = (out / "result.json").exists()  # the signal found a run that was done, in a process that was ending
        assert code in ((130, 0, -number) if late else (130,))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", tacit.errors.TacitWarning)
            resumed = resume(out)
        np.testing.assert_array_equal(resumed.w, whole.w)
        assert [row["objective"] for row in resumed.rounds] == [row["objective"] for row in whole.rounds]


def test_a_signal_while_the_result_is_written_waits_for_it(tmp_path, monkeypatch):
    write = RunDirectory.finish

    def finish(*arguments):
        signal.raise_signal(signal.SIGINT)
        return write(*arguments)

    monkeypatch.setattr(RunDirectory, "finish", finish)
    result = quiet_train(preset("released", "objt").with_values(SMALL), out=tmp_path / "run")
    assert resume(tmp_path / "run").summary == result.summary


def test_a_run_that_diverges_says_so(tmp_path):
    values = {"schedule.rho": "static", "schedule.rho_static": 1e-300, "schedule.radius_a": 1e300}
    with pytest.raises(tacit.errors.TacitError, match="diverged in round"):
        quiet_train(preset("released", "objt").with_values(SMALL | values), out=tmp_path / "run")


def test_resuming_on_other_data_is_refused(tmp_path):
    def stop(done, _row):
        if done == 5:
            raise KeyboardInterrupt

    over, spec = federation(), preset("released", "objt").with_values({"run.rounds": 12})
    with pytest.raises(Interrupted):
        quiet_train(spec, over, out=tmp_path / "run", listener=stop)
    with pytest.raises(RunDirectoryError, match="given in Python"):
        resume(tmp_path / "run")
    with pytest.warns(NotPrivateWarning), pytest.raises(RunDirectoryError, match="other data"):
        resume(tmp_path / "run", federation(seed=1, sizes=(5, 8, 12)))
    x = over.shards[0].x.copy()
    x[0, 0] /= 2
    edited = replace(over, shards=(replace(over.shards[0], x=x), *over.shards[1:]))
    with pytest.warns(NotPrivateWarning), pytest.raises(RunDirectoryError, match="other data"):
        resume(tmp_path / "run", edited)
    with pytest.warns(NotPrivateWarning):
        resumed = resume(tmp_path / "run", over)
    np.testing.assert_array_equal(resumed.w, quiet_train(spec, over).w)


KILLED = """
import sys, time, warnings
warnings.simplefilter("ignore")
from pathlib import Path
import tacit
from tacit.run import train as run
from tacit import toml
run.CHECKPOINT_SECONDS = 0.0
spec = tacit.Spec().with_values(toml.read(Path(sys.argv[1])))
run.train(spec, out=sys.argv[2], listener=lambda done, row: (print(done, flush=True), time.sleep(0.005)))
"""


@pytest.mark.parametrize("after", [1, 40])
def test_a_run_killed_outright_resumes_to_the_same_bits(tmp_path, after):
    spec = preset("released", "objp").with_values(SMALL | {"run.rounds": 150, "run.record_every": 7})
    whole = quiet_train(spec)
    (tmp_path / "spec.toml").write_text(spec.toml())
    arguments = [sys.executable, "-c", KILLED, str(tmp_path / "spec.toml"), str(tmp_path / "cut")]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if int(line) >= after:
                break
        os.kill(process.pid, signal.SIGKILL)
    assert not (tmp_path / "cut" / "result.json").exists()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tacit.errors.TacitWarning)
        resumed = resume(tmp_path / "cut")
    np.testing.assert_array_equal(resumed.w, whole.w)
    assert [(row["t"], row["objective"]) for row in resumed.rounds] == [
        (row["t"], row["objective"]) for row in whole.rounds
    ]


def test_a_directory_in_use_is_refused_and_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(RunDirectoryError, match="not empty"):
        quiet_train(preset("released", "objt").with_values(SMALL), out=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_bad_combination_leaves_no_directory_behind(tmp_path):
    spec = preset("released", "objt").with_values(SMALL | {"privacy.mechanism": "gaussian", "privacy.epsilon": 0.0})
    with pytest.raises(SpecError, match="epsilon"):
        quiet_train(spec, out=tmp_path / "run")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("values", "message"), [
    ({"privacy.epsilonn": 1}, "did you mean 'privacy.epsilon'"),
    ({"algorithm.rule": "prux"}, "did you mean 'prox'"),
    ({"run.rounds": "many"}, "run.rounds takes a value of type int"),
    ({"run.rounds": 1.5}, "int"),
    ({"problem.beta": "nan"}, "problem.beta"),
    ({"nowhere.epsilon": 1}, "unknown key"),
    ({"data.dedup": "maybe"}, "bool"),
    ({"run.rounds": "²"}, "run.rounds takes a value of type int"),
    ({"run.rounds": "9" * 5000}, "run.rounds takes a value of type int"),
    ({"run.rounds": 10**5000}, "run.rounds takes a value of type int"),
    ({"privacy.epsilon": 10**400}, "privacy.epsilon takes a value of type float"),
    ({"data.label_column": "caf\udce9"}, "data.label_column.*not UTF-8"),
])  # fmt: skip
def test_a_key_or_value_that_does_not_exist_is_named_with_the_nearest_that_does(values, message):
    with pytest.raises(SpecError, match=message):
        Spec().with_values(values)


@pytest.mark.parametrize("values", [
    {"privacy.epsilon": 0}, {"privacy.epsilon": -1}, {"run.rounds": 0}, {"data.agents": 0}, {"problem.beta": -1},
    {"schedule.rho_static": 0}, {"privacy.dp_delta": 0}, {"privacy.dp_delta": 1}, {"run.seed": -1},
    {"data.test_fraction": 1.0}, {"privacy.clip": float("inf")}, {"data.test_fraction": -0.1},
    {"problem.beta": "inf"}, {"schedule.rho_c2": -1}, {"schedule.rho_c2": "inf"}, {"data.class_count": 1},
    {"data.records": 10**12}, {"data.features": 10**12}, {"data.classes": 10**12},
])  # fmt: skip
def test_a_number_out_of_range_is_refused_by_key(values):
    with pytest.raises(SpecError, match=next(iter(values))):
        Spec().with_values(values).checked()


def test_text_from_the_command_line_is_parsed_to_the_declared_type():
    spec = Spec().with_values({"run.rounds": "1e3", "privacy.epsilon": "inf", "data.dedup": "true", "data.agents": "7"})
    assert (spec.run.rounds, spec.privacy.epsilon, spec.data.dedup, spec.data.agents) == (1000, float("inf"), True, 7)


def test_every_key_is_explained():
    assert all(found.metadata["about"] for found in keys().values())


@pytest.mark.parametrize(("values", "message"), [
    ({"algorithm.perturbation": "none"}, "adds no noise"),
    ({"privacy.mechanism": "silence"}, "gives no epsilon"),
    ({"algorithm.rule": "exact"}, "sensitivity of a minimiser"),
    ({"algorithm.perturbation": "output", "problem.domain": "box"}, "output noise can leave the box"),
    ({"algorithm.perturbation": "output", "algorithm.rule": "prox", "problem.domain": "ball"}, "lengthen a step in l1"),
    ({"algorithm.perturbation": "output", "algorithm.trust_norm": "l2"}, "lengthen a step in l1"),
    ({"privacy.sensitivity": "row_norm"}, "rows bounded in l1"),
    ({"problem.loss": "squared", "privacy.sensitivity": "feature_bounds"}, "Use sensitivity 'clip'"),
    ({"algorithm.rule": "prox", "schedule.eta": "huang"}, "declared bound"),
])  # fmt: skip
def test_an_impossible_pair_is_refused_by_name(values, message):
    with pytest.raises(IncompatibleError, match=message):
        build.setup(preset("released", "objt").with_values(values), federation())


def test_an_exact_step_does_not_linearise():
    with pytest.raises(IncompatibleError, match="does not linearise"):
        build.setup(preset("paper", "admm").with_values({"algorithm.linearize_at": "w"}), federation())


def test_summable_radii_warn():
    with pytest.warns(NotPrivateWarning), pytest.warns(SummableRadiusWarning, match="freezes"):
        train(preset("paper", "objt").with_values({"run.rounds": 2}), federation())


def test_a_rho_below_twice_the_curvature_warns_and_one_above_does_not():
    values = {"run.rounds": 2, "schedule.rho": "static", "schedule.radius": "constant"}
    over = federation()
    need = 2 * max(build.setup(preset("paper", "iadmm-trust"), over).problem.smoothness(s) for s in over.shards)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        with pytest.warns(StabilityWarning, match="below 2 max_p L_p"):
            train(preset("paper", "iadmm-trust").with_values(values | {"schedule.rho_static": 0.9 * need}), over)
        train(preset("paper", "iadmm-trust").with_values(values | {"schedule.rho_static": 1.01 * need}), over)


def test_a_scale_read_from_the_data_is_never_called_private():
    with pytest.warns(NotPrivateWarning, match="read from the private data"):
        result = train(preset("released", "objt").with_values({"run.rounds": 2}), federation())
    assert result.guarantee.startswith("not private")


def test_a_declared_bound_states_its_composition():
    values = {"run.rounds": 10, "privacy.sensitivity": "feature_bounds", "privacy.epsilon": 0.1}
    result = train(preset("released", "objt").with_values(values), federation())
    assert result.summary["changed"] == {"privacy.sensitivity": "feature_bounds"}
    assert "-DP for the whole run of 10 rounds" in result.guarantee
    assert result.summary["epsilon"] <= 1.0  # no more than the sum
    assert result.summary["epsilon_per_round"] == 0.1


def test_public_names_are_these():
    extra = ["PrivateFederatedClassifier", "PrivateFederatedRegressor"] if find_spec("sklearn") else []
    assert tacit.__all__ == [
        "Federation", "Model", *extra, "Result", "Shard", "Spec", "Target", "__version__", "errors", "load", "preset",
        "resume", "train",
    ]  # fmt: skip
    plain = [name for name in tacit.__all__ if not name.startswith("PrivateFederated")]  # the extra `sklearn`
    assert all(getattr(tacit, name) is not None for name in plain)
    with pytest.raises(AttributeError):
        tacit.nothing  # noqa: B018


def test_time_is_spent_where_the_record_says():
    start = time.perf_counter()
    result = quiet_train(preset("released", "objt").with_values(SMALL | {"run.engine": "plain"}))  # one thread
    elapsed = time.perf_counter() - start
    parts = [value for key, value in result.rounds[-1].items() if key.startswith("seconds_")]
    assert 0 < sum(parts) <= elapsed


def test_the_earlier_name_of_an_adjacency_is_read_as_its_new_one():
    assert preset("sound", "objt").with_values({"privacy.adjacency": "add_remove"}) == preset("sound", "objt")
    with pytest.raises(SpecError, match="zero_out"):
        preset("sound", "objt").with_values({"privacy.adjacency": "add-remove"})
