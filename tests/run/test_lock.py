"""One process at a time writes a run directory; who comes second is told so, or given the finished run."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack

import numpy as np
import pytest

from tacit import lock
from tacit.cli import main
from tacit.errors import Interrupted, RunDirectoryError
from tacit.run import build, sweep
from tacit.run.directory import RunDirectory
from tacit.run.presets import preset
from tacit.run.run import Run
from tacit.run.train import resume, together, train

pytestmark = [
    pytest.mark.filterwarnings("ignore::tacit.errors.TacitWarning"),
    pytest.mark.skipif(lock.fcntl is None, reason="this system has no flock"),
]

SMALL = {"data.source": "synthetic", "data.records": 200, "data.agents": 4, "run.rounds": 12}
SPEC = preset("released", "objt").with_values(SMALL)
TRAIN = ["train", "--preset", "released", "--data", "synthetic", "--set", "data.records=200", "--agents", "4"]
LONG = [*TRAIN, "--rounds", "200000", "--record-every", "2000", "--out", "run", "-v"]


def stop_at(rounds):
    def listener(done, _row):
        if done == rounds:
            raise KeyboardInterrupt

    return listener


@pytest.fixture
def stopped(tmp_path):
    with pytest.raises(Interrupted):
        train(SPEC, out=tmp_path / "run", listener=stop_at(5))
    return tmp_path / "run"


def tacit(*arguments, cwd):
    command = [sys.executable, "-m", "tacit", *arguments]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=cwd)


def wait_for_a_row(process):
    for line in process.stderr:
        if line.startswith("t="):
            return


def recorded(path):
    return [json.loads(line)["t"] for line in path.read_text().splitlines()]


def test_a_run_that_another_process_writes_is_not_resumed(tmp_path):
    with tacit(*LONG, cwd=tmp_path) as first:
        wait_for_a_row(first)
        second = tacit("train", "--resume", "run", "-qq", cwd=tmp_path)
        _, said = second.communicate()
        assert (second.returncode, said.count("\n")) == (2, 1)
        assert "run is in use" in said
        assert first.poll() is None
        first.send_signal(signal.SIGINT)
        first.stderr.read()
    assert first.returncode == 130
    rows = recorded(tmp_path / "run" / "rounds.jsonl")
    assert rows == sorted(set(rows))
    assert (tmp_path / "run" / "checkpoint.npz").exists()


def test_two_that_resume_at_once_leave_one_whole_run(stopped, tmp_path):
    whole = train(SPEC)
    both = [tacit("train", "--resume", "run", "-qq", cwd=tmp_path) for _ in range(2)]
    said = [process.communicate()[1] for process in both]
    assert sorted(process.returncode for process in both) in ([0, 0], [0, 2]), said
    assert recorded(stopped / "rounds.jsonl") == list(range(1, 13))
    np.testing.assert_array_equal(resume(stopped).w, whole.w)


def test_a_run_that_a_killed_process_left_is_free(tmp_path):
    with tacit(*LONG, cwd=tmp_path) as first:
        wait_for_a_row(first)
        os.kill(first.pid, signal.SIGKILL)
    with RunDirectory.open(tmp_path / "run").alone():
        pass


def test_a_run_that_was_finished_meanwhile_is_read_and_not_run_again(stopped, monkeypatch):
    load, told = build.federation, []

    def slow(spec):
        monkeypatch.setattr(build, "federation", load)
        told.append(resume(stopped))  # by another process, while this one loads its data
        return load(spec)

    monkeypatch.setattr(build, "federation", slow)
    assert resume(stopped, listener=stop_at(6)).summary == told[0].summary
    assert recorded(stopped / "rounds.jsonl") == list(range(1, 13))


def lanes(tmp_path):
    """Two runs of a batch, each with a directory of its own."""
    over = build.federation(SPEC)
    specs = [SPEC.with_values({"run.seed": seed}) for seed in range(2)]
    runs = [Run(spec, over, build.setup(spec, over)) for spec in specs]
    for run, name in zip(runs, "ab", strict=True):
        run.directory = RunDirectory.create(tmp_path / name, run.spec)
    return runs


def test_a_run_that_was_finished_meanwhile_does_not_stop_its_batch(tmp_path):
    runs = lanes(tmp_path)
    first = resume(tmp_path / "a")
    results = together(runs)
    assert results[0].summary == first.summary
    assert results[1].summary["seed"] == 1
    np.testing.assert_array_equal(results[0].w, first.w)


def test_runs_that_are_no_longer_at_one_round_are_refused(tmp_path):
    runs = lanes(tmp_path)
    with pytest.raises(Interrupted):
        resume(tmp_path / "a", listener=stop_at(5))
    with pytest.raises(RunDirectoryError, match=r"went on meanwhile.*same command again"):
        together(runs)
    assert recorded(tmp_path / "a" / "rounds.jsonl") == list(range(1, 6))


def test_what_another_process_took_up_is_not_removed_by_the_one_that_made_it(tmp_path, monkeypatch):
    make = RunDirectory.create

    def create(path, spec):
        made = make(path, spec)
        elsewhere.enter_context(RunDirectory.open(path).alone())
        return made

    monkeypatch.setattr(RunDirectory, "create", create)
    with ExitStack() as elsewhere:
        with pytest.raises(RunDirectoryError, match="in use"):
            train(SPEC, out=tmp_path / "run")
        assert (tmp_path / "run" / "spec.toml").exists()


def test_a_run_that_is_gone_is_said_to_be(tmp_path):
    held = RunDirectory.create(tmp_path / "run", SPEC)
    shutil.rmtree(tmp_path / "run")
    with pytest.raises(RunDirectoryError, match="holds no run"), held.alone():
        pass


def test_a_file_system_without_locks_is_used_without_them(stopped, monkeypatch):
    def refuse(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(lock.fcntl, "flock", refuse)
    assert resume(stopped).summary["rounds"] == 12


GRID = """
[data]
source = "synthetic"
agents = 4
records = 200
[run]
preset = "released"
rounds = {}
record_every = {}
seed = [0, 1]
"""
SWEEP = ("sweep", "--config", "grid.toml", "--out", "out", "-qq")


def test_a_sweep_beside_a_sweep_is_refused_and_spoils_nothing(tmp_path):
    (tmp_path / "grid.toml").write_text(GRID.format(100_000, 1000))
    with tacit(*SWEEP, cwd=tmp_path) as first:
        while not any(path.stat().st_size for path in tmp_path.glob("out/*/rounds.jsonl")) and first.poll() is None:
            time.sleep(0.01)
        second = tacit(*SWEEP, cwd=tmp_path)
        _, said = second.communicate()
        assert (second.returncode, said.count("\n")) == (2, 1), said
        assert "in use" in said
        assert first.poll() is None
        first.send_signal(signal.SIGINT)
        first.stderr.read()
    assert first.returncode == 130
    for path in tmp_path.glob("out/*/rounds.jsonl"):
        rows = recorded(path)
        assert rows == sorted(set(rows))


def test_two_sweeps_at_once_end_with_whole_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "grid.toml").write_text(GRID.format(300, 1))
    both = [tacit(*SWEEP, cwd=tmp_path) for _ in range(2)]
    said = [process.communicate()[1] for process in both]
    assert {process.returncode for process in both} <= {0, 2}, said
    assert main(list(SWEEP)) == 0
    for member in sweep.read(tmp_path / "grid.toml"):
        assert recorded(tmp_path / "out" / member.name / "rounds.jsonl") == list(range(1, 301))


def ask_to_stop_at(rounds, directory, make=lambda path: path.touch()):
    def listener(done, _row):
        if done == rounds:
            make(directory / lock.STOP)

    return listener


@pytest.fixture
def looks_each_round(monkeypatch):
    monkeypatch.setattr(lock, "LOOK", 0.0)


@pytest.mark.usefixtures("looks_each_round")
def test_a_file_named_stop_stops_a_run_after_its_round_and_the_run_can_go_on(tmp_path):
    with pytest.raises(Interrupted, match=r"stopped after 5 of 12 rounds; continue with: tacit train --resume"):
        train(SPEC, out=tmp_path / "run", listener=ask_to_stop_at(5, tmp_path / "run"))
    assert not (tmp_path / "run" / lock.STOP).exists()
    np.testing.assert_array_equal(resume(tmp_path / "run").w, train(SPEC).w)


@pytest.mark.usefixtures("looks_each_round")
def test_a_request_that_was_left_by_an_earlier_process_is_removed_and_stops_nothing(stopped):
    (stopped / lock.STOP).touch()
    assert resume(stopped).summary["rounds"] == 12
    assert not (stopped / lock.STOP).exists()


@pytest.mark.usefixtures("looks_each_round")
def test_a_request_that_cannot_be_removed_stops_no_later_process_until_it_is_renewed(stopped, monkeypatch):
    def refuse(_):
        raise PermissionError(1, "Operation not permitted")  # another owner's, in a folder with the sticky bit

    (stopped / lock.STOP).touch()
    os.utime(stopped / lock.STOP, (1, 1))
    remove = lock.Path.unlink
    monkeypatch.setattr(lock.Path, "unlink", lambda path, **_: (refuse if path.name == lock.STOP else remove)(path))
    with pytest.raises(Interrupted, match="stopped after 8 of 12 rounds"):
        resume(stopped, listener=ask_to_stop_at(8, stopped))
    assert resume(stopped).summary["rounds"] == 12
    assert (stopped / lock.STOP).exists()


@pytest.mark.usefixtures("looks_each_round")
@pytest.mark.parametrize("make", [lambda path: path.mkdir(), os.mkfifo, lambda path: path.symlink_to("spec.toml")])
def test_what_is_no_plain_file_stops_no_run(tmp_path, make):
    run = tmp_path / "run"
    assert train(SPEC, out=run, listener=ask_to_stop_at(5, run, make)).summary["rounds"] == 12
    assert (run / "spec.toml").is_file()


def test_a_glance_at_a_lock_tells_who_holds_it_and_keeps_nobody_out(tmp_path):
    descriptor = os.open(tmp_path, os.O_RDONLY)
    try:
        assert not lock.is_held(descriptor)
        with lock.locked(tmp_path, wait=False) as ours:
            assert ours
            assert lock.is_held(descriptor)
        assert not lock.is_held(descriptor)
        with lock.locked(tmp_path, wait=False) as ours:
            assert ours
    finally:
        os.close(descriptor)


def test_who_finds_a_lock_taken_for_a_glance_tries_again(tmp_path, monkeypatch):
    descriptor = os.open(tmp_path, os.O_RDONLY)
    lock.fcntl.flock(descriptor, lock.fcntl.LOCK_SH)

    def let_go(pause):
        if pause:
            lock.fcntl.flock(descriptor, lock.fcntl.LOCK_UN)

    monkeypatch.setattr(lock.time, "sleep", let_go)
    with lock.locked(tmp_path, wait=False) as ours:
        assert ours
    os.close(descriptor)
