"""Runs over deployed agents: exact noise, every answer in its ledger first, a refusal before a budget is passed."""

import os
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tacit.cli import main
from tacit.errors import DataError, IncompatibleError, Interrupted, RefusalWarning, Refused, RunDirectoryError
from tacit.privacy import chain
from tacit.privacy.history import Limit
from tacit.privacy.ledger import Ledger
from tacit.run import deployment, sweep
from tacit.run import train as experiment
from tacit.run.directory import RunDirectory
from tacit.run.presets import preset
from tacit.run.train import resume, train
from tests.agent.agents import EXACT
from tests.agent.agents import spec as spec_with
from tests.conftest import federation


@pytest.fixture
def fast():
    """A place that is quick to sync: tests there kill processes, not machines."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        yield Path(folder)


def spec(tmp_path, **values):
    return spec_with(tmp_path / "ledgers", **values)


def spent(tmp_path, agent="0"):
    with Ledger.open(tmp_path / "ledgers" / f"{agent}.ledger", deployment.price) as ledger:
        return ledger.show()[0]


def allow(tmp_path, limit):
    for agent in "012":
        with Ledger.open(tmp_path / "ledgers" / f"{agent}.ledger", deployment.price) as ledger:
            ledger.set_limit(limit)


def test_a_run_with_ledgers_spends_what_it_says(tmp_path):
    result = train(spec(tmp_path), out=tmp_path / "run")
    assert result.summary["noise"] == "exact noise from the operating system"
    assert not result.summary["simulated_noise"]
    assert result.summary["epsilon"] <= 1.0
    account = spent(tmp_path)
    assert account.releases == 6
    assert account.epsilon == pytest.approx(result.summary["epsilon"], rel=1e-3)


def test_data_priced_for_one_adjacency_are_not_released_under_another(tmp_path):
    train(spec(tmp_path), out=tmp_path / "first")
    (tmp_path / "ledgers" / "0.ledger").unlink()  # the first agent is new: it must not pay for what others refuse
    with pytest.raises(IncompatibleError, match=r"agent 1: .* priced for zero_out"):
        train(spec(tmp_path, **{"privacy.adjacency": "replace_one"}), out=tmp_path / "second")
    assert not (tmp_path / "second").exists()
    assert (spent(tmp_path, "1").releases, spent(tmp_path, "1").adjacency) == (6, "zero_out")
    with Ledger.open(tmp_path / "ledgers" / "0.ledger", deployment.price) as ledger:
        assert not ledger.history().answers


def test_a_new_file_name_opens_no_new_account(tmp_path):
    over, own = federation(), {"data.source": "x"}
    train(spec(tmp_path, **own), replace(over, name="patients"), out=tmp_path / "first")
    renamed = replace(over, name="patients-2")
    with pytest.raises(IncompatibleError, match="agent 0 has answered for 'patients',"):
        train(spec(tmp_path, **own), renamed, out=tmp_path / "second")
    assert not (tmp_path / "second").exists()
    train(spec(tmp_path, **own, **{"privacy.data_id": "patients"}), renamed, out=tmp_path / "second")
    assert spent(tmp_path).releases == 12


def test_a_run_that_its_ledgers_could_not_pay_to_the_end_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(IncompatibleError, match=r"up to epsilon = 1 and every ledger would allow 0\.5"):
        train(spec(tmp_path, **{"privacy.limit": 0.5}), out=tmp_path / "run")
    assert not list(tmp_path.iterdir())


def test_a_second_run_beyond_the_limit_is_refused_before_its_first_round(tmp_path):
    train(spec(tmp_path, **{"privacy.limit": 1.2}), out=tmp_path / "first")
    before = spent(tmp_path)
    with pytest.raises(IncompatibleError, match=r"does not begin: agent 0: 6 more .* beyond the limit of 1\.2"):
        train(spec(tmp_path, **{"privacy.limit": 1.2}), out=tmp_path / "second")
    assert not (tmp_path / "second").exists()
    assert spent(tmp_path) == before
    allow(tmp_path, Limit(5.0, 1e-6))
    train(spec(tmp_path), out=tmp_path / "second")
    assert [spent(tmp_path, agent).releases for agent in "012"] == [12, 12, 12]


def test_an_interrupted_run_holds_its_budget_until_it_is_resumed_or_closed(tmp_path, capsys):
    def stop(done, _row):
        if done == 2:
            raise KeyboardInterrupt

    own = {"privacy.limit": 1.2}
    with pytest.raises(Interrupted, match="stopped after 2 of 6 rounds"):
        train(spec(tmp_path, **own), out=tmp_path / "first", listener=stop)
    with pytest.raises(IncompatibleError, match=r"6 more releases .* beside 4 that open runs hold, would bring"):
        train(spec(tmp_path, **own), out=tmp_path / "second")
    assert resume(tmp_path / "first").summary["rounds"] == 6
    with pytest.raises(IncompatibleError, match=r"agent 0: 6 more releases of 'synthetic: 0' in run '\w+' would bring"):
        train(spec(tmp_path, **own), out=tmp_path / "second")
    with Ledger.open(tmp_path / "ledgers" / "0.ledger", deployment.price) as ledger:
        (release,) = ledger.history().spent["synthetic: 0"]
    allow(tmp_path, Limit(deployment.price([(release, 15)], 1e-6), 1e-6))  # two runs and a half
    with pytest.raises(Interrupted):
        train(spec(tmp_path), out=tmp_path / "third", listener=stop)
    name = RunDirectory.open(tmp_path / "third").spec().run.name
    with pytest.raises(IncompatibleError, match="beside 4 that open runs hold"):
        train(spec(tmp_path), out=tmp_path / "fourth")
    for agent in "012":
        assert main(["ledger", "close", str(tmp_path / "ledgers" / f"{agent}.ledger"), name]) == 0
    assert f"closed      run {name} on synthetic: 0" in capsys.readouterr().out
    assert train(spec(tmp_path), out=tmp_path / "fourth").summary["rounds"] == 6
    with pytest.raises(Refused, match="has ended here"):
        resume(tmp_path / "third")


def test_no_agent_joins_a_run_that_another_one_refuses(tmp_path):
    train(spec(tmp_path), out=tmp_path / "first")
    with Ledger.open(tmp_path / "ledgers" / "2.ledger", deployment.price) as ledger:
        ledger.set_limit(Limit(1.2, 1e-6))
    (tmp_path / "ledgers" / "0.ledger").unlink()
    with pytest.raises(IncompatibleError, match="agent 2"):
        train(spec(tmp_path), out=tmp_path / "second")
    assert not (tmp_path / "ledgers" / "0.ledger").exists()
    with Ledger.open(tmp_path / "ledgers" / "1.ledger", deployment.price) as ledger:
        assert len(ledger.history().places) == 1


def test_a_run_that_is_refused_on_its_way_goes_on_when_its_agents_allow_it(tmp_path):
    def lower(done, _row):
        if done == 3:
            allow(tmp_path, Limit(0.5, 1e-6))

    with pytest.warns(RefusalWarning, match="0.5"), pytest.raises(Refused, match="agent 0: this agent does not answer"):
        train(spec(tmp_path), out=tmp_path / "run", listener=lower)
    assert spent(tmp_path).releases == 3
    with pytest.warns(RefusalWarning), pytest.raises(Refused):
        resume(tmp_path / "run")
    assert spent(tmp_path).releases == 3
    allow(tmp_path, None)
    resume(tmp_path / "run")
    assert [spent(tmp_path, agent).releases for agent in "012"] == [6, 6, 6]


def test_the_sentence_of_trust_is_for_agents_whose_ledgers_outlive_the_process(tmp_path):
    exact = preset("sound", "objt").with_values(EXACT)
    runs = spec(tmp_path), exact, exact.with_values({"privacy.noise": "simulated"})
    with_ledger, without, simulated = (train(one).summary["trust"] for one in runs)
    own = train(exact, out=tmp_path / "run").summary["trust"]
    assert own == with_ledger + "; the ledgers are of this run alone (with --ledger, of all runs)"
    assert "no server, agent or channel is trusted" in with_ledger
    assert "no ledger outlives it" in without
    assert "simulation" in simulated


def test_the_result_keeps_the_heads_of_the_ledgers_and_a_rewritten_chain_does_not_go_through_them(tmp_path, capsys):
    result = train(spec(tmp_path), out=tmp_path / "run")
    file = tmp_path / "ledgers" / "0.ledger"
    with Ledger.open(file, deployment.price) as ledger:
        assert result.summary["ledger_heads"]["0"] == ledger.head
    assert main(["ledger", "verify", str(file), "--run", str(tmp_path / "run")]) == 0
    assert "goes through the head" in capsys.readouterr().out
    rewrite(file, lambda body: body.replace('"multiplier":', '"multiplier":100'))
    assert main(["ledger", "verify", str(file)]) == 0  # every hash is right: the file alone cannot tell
    assert "rewritten" in capsys.readouterr().out
    assert main(["ledger", "verify", str(file), "--run", str(tmp_path / "run")]) == 1
    assert "noted earlier" in capsys.readouterr().err


def rewrite(file, change):
    """Change the text of every entry, and make the whole chain again as its owner could."""
    before = chain.START
    with sqlite3.connect(file) as connection:
        for n, key, body in connection.execute("SELECT n, key, body FROM entry ORDER BY n").fetchall():
            before = chain.link(before, key, change(body))
            connection.execute("UPDATE entry SET body = ?, hash = ? WHERE n = ?", (change(body), before, n))
        connection.execute("UPDATE tip SET hash = ?", (before,))
    connection.close()


def test_a_name_that_was_answered_before_is_no_name_for_a_new_run(tmp_path):
    train(spec(tmp_path), out=tmp_path / "first")
    again = RunDirectory.open(tmp_path / "first").spec().with_values({"problem.beta": 0.5})
    with pytest.raises(IncompatibleError, match=r"leave run\.name out of the config"):
        train(again, out=tmp_path / "second")
    assert not (tmp_path / "second").exists()


@pytest.mark.parametrize("change", [
    lambda over: replace(over, agents=("1", "0", "2")),
    lambda over: replace(over, shards=(replace(over.shards[0], x=0 * over.shards[0].x), *over.shards[1:])),
])  # fmt: skip
def test_a_run_killed_before_any_checkpoint_is_resumed_on_the_same_records_alone(tmp_path, change, monkeypatch):
    monkeypatch.setattr(experiment, "CHECKPOINT_SECONDS", 1e9)

    def stop(done, _row):
        if done == 3:
            raise SystemExit  # and nothing is saved

    over, own = federation(), spec(tmp_path, **{"data.source": "x"})
    with pytest.raises(SystemExit):
        train(own, over, out=tmp_path / "run", listener=stop)
    with pytest.raises(RunDirectoryError, match="started on other data"):
        resume(tmp_path / "run", change(over))
    resume(tmp_path / "run", over)
    assert [spent(tmp_path, name).releases for name in "012"] == [6, 6, 6]


def test_a_limit_whose_delta_exact_noise_would_use_up_is_refused_before_a_release(tmp_path):
    with pytest.raises(IncompatibleError, match="of delta at epsilon 40"):
        train(spec(tmp_path, **{"privacy.limit": 40.0}), out=tmp_path / "first")
    assert not list(tmp_path.iterdir())
    train(spec(tmp_path), out=tmp_path / "first")
    allow(tmp_path, Limit(40.0, 1e-6))
    with pytest.raises(IncompatibleError, match="of delta at epsilon 40"):
        train(spec(tmp_path), out=tmp_path / "second")
    assert spent(tmp_path).releases == 6


def test_agents_whose_names_look_alike_have_ledgers_of_their_own():
    names = ["a/b", "a_b", "a b", "北京", "上海", "x" * 300, "x" * 301, "..", "A"]
    files = {deployment.ledger_file_name(name) for name in names}
    assert len(files) == len(names)
    assert all(len(name) < 120 and "/" not in name for name in files)


def test_exact_noise_without_a_ledger_is_never_drawn_again(tmp_path, monkeypatch):
    monkeypatch.setattr(deployment, "OWN_LEDGERS", 2)  # and there are three agents

    def stop(done, _row):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted, match=r"kept no ledger.*--ledger") as stopped:
        train(preset("sound", "objt").with_values(EXACT), out=tmp_path / "run", listener=stop)
    assert "--resume" not in str(stopped.value)  # which would be refused
    with pytest.raises(RunDirectoryError, match="would be released again"):
        resume(tmp_path / "run")
    member = sweep.Member("run", {}, preset("sound", "objt").with_values(EXACT))
    with pytest.raises(RunDirectoryError, match="would be released again"):
        sweep.run([member], tmp_path)


def test_a_run_whose_ledgers_are_gone_is_not_resumed(tmp_path):
    def stop(done, _row):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        train(spec(tmp_path), out=tmp_path / "run", listener=stop)
    (tmp_path / "ledgers").rename(tmp_path / "elsewhere")
    with pytest.raises(DataError, match="put it back, or start anew"):
        resume(tmp_path / "run")


def test_a_ledger_that_cannot_be_used_leaves_no_run_behind(tmp_path):
    (tmp_path / "ledgers").mkdir()
    (tmp_path / "ledgers" / "0.ledger").write_text("no ledger")
    with pytest.raises(IncompatibleError, match="cannot be trusted"):
        train(spec(tmp_path), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_run_killed_after_its_agents_joined_and_before_its_first_round_goes_on(tmp_path, monkeypatch):
    def killed(*_):
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(experiment, "_lockstep", killed)
        with pytest.raises(SystemExit):
            train(spec(tmp_path), out=tmp_path / "run")
    resume(tmp_path / "run")
    assert [spent(tmp_path, agent).releases for agent in "012"] == [6, 6, 6]


def test_an_agent_whose_budget_goes_to_another_run_while_others_join_ends_the_run_before_it_begins(
    tmp_path, monkeypatch
):
    train(spec(tmp_path, **{"privacy.limit": 1.2}), out=tmp_path / "first")
    monkeypatch.setattr(Ledger, "check_terms", lambda *_: None)  # it was enough when it was asked
    with pytest.raises(IncompatibleError, match="does not begin"):
        train(spec(tmp_path), out=tmp_path / "second")
    assert not (tmp_path / "second").exists()
    assert [spent(tmp_path, agent).releases for agent in "012"] == [6, 6, 6]


def limited(cwd, limits, arguments):
    """tacit with these limits of open files, soft and hard."""
    command = (
        f"import resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, {limits}); from tacit.cli import main; "
        f"sys.exit(main({arguments.split()}))"
    )
    return subprocess.run([sys.executable, "-c", command], cwd=cwd, capture_output=True, text=True, check=False)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit of open files")
def test_ledgers_may_open_as_many_files_as_the_system_allows(tmp_path):
    train = "train -q --data synthetic --agents 60 --rounds 1 --noise exact --ledger l --out run"
    refused = limited(tmp_path, (100, 200), train)
    assert refused.returncode == 2
    assert "need 280 open files, and the system allows 200" in refused.stderr
    assert list(tmp_path.iterdir()) == []
    assert limited(tmp_path, (100, 512), train).returncode == 0


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit of open files")
def test_a_sweep_has_the_ledgers_of_one_run_open(tmp_path):
    (tmp_path / "grid.toml").write_text(
        '[data]\nsource = "synthetic"\nagents = 10\n[privacy]\nnoise = "exact"\nledger = "l"\n'
        "clip = [0.5, 0.6, 0.7, 0.8, 0.9, 1.0]\n[run]\nrounds = 1\n"
    )
    done = limited(tmp_path, (130, 130), "sweep -q --config grid.toml")
    assert done.returncode == 0, done.stderr


def test_a_sweep_names_each_of_its_runs_in_the_ledgers(tmp_path):
    (tmp_path / "grid.toml").write_text(
        f'[data]\nsource = "synthetic"\nagents = 2\nrecords = 60\n[privacy]\nnoise = "exact"\n'
        f'ledger = "{tmp_path / "ledgers"}"\nclip = [0.7, 0.8]\n[run]\nrounds = 4\n'
    )
    members = sweep.read(tmp_path / "grid.toml")
    first, second = sweep.run(members, tmp_path / "out")
    assert first["consensus_violation"] != second["consensus_violation"]
    assert spent(tmp_path).releases == 8
    assert sweep.run(members, tmp_path / "out") == [first, second]
    assert spent(tmp_path).releases == 8


def test_the_command_line_reports_a_refusal_in_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    arguments = ["train", "--data", "synthetic", "--rounds", "6", "--noise", "exact", "--ledger", "l", "--limit", "1.2"]
    assert main([*arguments, "-q"]) == 0
    capsys.readouterr()
    assert main([*arguments, "-q"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("tacit: the run does not begin: agent 0: 6 more releases of")


def test_a_limit_is_raised_by_its_owner_at_the_command_line(tmp_path, capsys):
    train(spec(tmp_path, **{"privacy.limit": 1.2}), out=tmp_path / "first")
    file = str(tmp_path / "ledgers" / "0.ledger")
    assert main(["ledger", "limit", file, "--epsilon", "5", "--json"]) == 0
    assert '"epsilon": 5' in capsys.readouterr().out
    assert spent(tmp_path).limit == 5
    assert main(["ledger", "limit", file, "--epsilon", "0"]) == 2


def stored(tmp_path, agent="0"):
    """How many answers a ledger has on record, and how many of them it could send again."""
    with Ledger.open(tmp_path / "ledgers" / f"{agent}.ledger", deployment.price) as ledger:
        found = ledger.verify()
    return found.releases, found.releases - found.forgotten


def test_ledgers_keep_the_answers_since_the_last_checkpoint_and_none_of_a_run_that_has_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(experiment, "KEPT_ROUNDS", 2)
    kept = []

    def look(_done, _row):
        kept.append(stored(tmp_path))

    result = train(spec(tmp_path), out=tmp_path / "run", listener=look)
    assert kept == [(1, 1), (2, 2), (3, 1), (4, 2), (5, 1), (6, 2)]
    assert [stored(tmp_path, agent) for agent in "012"] == [(6, 0)] * 3
    assert spent(tmp_path).epsilon == pytest.approx(result.summary["epsilon"], rel=1e-3)
    assert main(["ledger", "verify", str(tmp_path / "ledgers" / "0.ledger"), "--run", str(tmp_path / "run")]) == 0


def test_a_run_forgets_its_own_answers_alone(tmp_path):
    def stop(done, _row):
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        train(spec(tmp_path), out=tmp_path / "first", listener=stop)
    train(spec(tmp_path), out=tmp_path / "second")
    assert stored(tmp_path) == (10, 4)
    resume(tmp_path / "first")
    assert stored(tmp_path) == (12, 0)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not sync directories")
def test_a_checkpoint_is_on_disk_with_its_name_before_a_ledger_is_told_to_forget(tmp_path, monkeypatch):
    monkeypatch.setattr(experiment, "KEPT_ROUNDS", 2)
    events, on_disk = [], set()

    def sync(number, fsync=os.fsync):
        events.append("folder" if stat.S_ISDIR(os.fstat(number).st_mode) else "file")
        fsync(number)

    def noting(whole):
        def forget(ledger, run, before):
            directory = RunDirectory(tmp_path / "run")
            events.append("forget")
            on_disk.add((before - 1, "result" if directory.finished else int(directory.saved()["t"])))
            return whole(ledger, run, before)

        return forget

    for name in ("forget", "forget_later"):
        monkeypatch.setattr(Ledger, name, noting(getattr(Ledger, name)))
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", sync)
        train(spec(tmp_path), out=tmp_path / "run")
    told = [n for n, event in enumerate(events) if event == "forget" and events[n - 1] != "forget"]
    assert on_disk == {(0, 0), (2, 2), (4, 4), (6, "result")}
    assert len(told) == 4
    assert all(events[n - 2 : n] == ["file", "folder"] for n in told)


KILLED_ANYWHERE = """
import os, signal, sys
from pathlib import Path
import tacit
from tacit import toml
from tacit.privacy.ledger import Ledger
from tacit.run import deploy, directory, run, train
train.KEPT_ROUNDS = 2
left = [0]

def step(whole):
    def stepped(*values, **named):
        for _ in range(2):  # before it, and after it
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            if _ == 0:
                found = whole(*values, **named)
        return found
    return stepped

for owner, name in ((Ledger, "release"), (deploy, "forget"), (Ledger, "forget"), (directory, "write_whole"),
                    (directory.RunDirectory, "append")):
    setattr(owner, name, step(getattr(owner, name)))
folder, n, lived = Path(sys.argv[1]), 0, False
while not lived:
    n += 1
    place = folder / str(n)
    place.mkdir()
    spec = tacit.Spec().with_values(toml.read(folder / "spec.toml") | {"privacy.ledger": str(place / "ledgers")})
    child = os.fork()
    if not child:
        left[0] = n
        train.train(spec, out=place / "run")
        os._exit(0)
    lived = os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_run_killed_at_any_moment_is_resumed_to_its_end_and_pays_for_each_round_once(fast):
    chosen = spec(fast, **{"run.rounds": 5, "data.agents": 2})
    (fast / "spec.toml").write_text(chosen.toml())
    arguments = [sys.executable, "-c", KILLED_ANYWHERE, str(fast)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # the script forks
    assert subprocess.run(arguments, check=False, env=environment).returncode == 0
    places = [place for place in fast.iterdir() if place.is_dir()]
    assert len(places) > 40
    found = Counter()
    for place in places:
        if not (place / "run").exists():  # killed before the run had a directory
            continue
        before = {agent: stored(place, agent) for agent in "01" if (place / "ledgers" / f"{agent}.ledger").exists()}
        found.update(before.values())
        resume(place / "run")
        after = [stored(place, agent) for agent in "01"]
        # a run that had its result on disk is read, and what it had not yet forgotten stays
        assert [releases for releases, _ in after] == [5, 5]
        assert all(kept == 0 for _, kept in after) or all(releases == 5 for releases, _ in before.values())
    assert {releases for releases, _ in found} == {0, 1, 2, 3, 4, 5}
    assert {(3, 1), (2, 2), (5, 0)} <= found.keys()


KILLED = """
import os, sys
from pathlib import Path
import tacit
from tacit.run import train as run
from tacit import toml
def stop(done, row):
    if done == 3:
        os._exit(9)  # the answers of three rounds are out, and no checkpoint was written
spec = tacit.Spec().with_values(toml.read(Path(sys.argv[1])))
run.train(spec, out=sys.argv[2], listener=stop)
"""


def test_a_run_killed_after_a_release_sends_it_again_and_spends_nothing_twice(tmp_path):

    chosen = spec(tmp_path, **{"run.name": "once"})
    (tmp_path / "spec.toml").write_text(chosen.toml())
    arguments = [sys.executable, "-c", KILLED, str(tmp_path / "spec.toml"), str(tmp_path / "run")]
    assert subprocess.run(arguments, check=False).returncode == 9
    assert spent(tmp_path).releases == 3
    resume(tmp_path / "run")
    assert [spent(tmp_path, name).releases for name in "012"] == [6, 6, 6]


@pytest.mark.parametrize(("values", "says"), [
    ({"privacy.noise": "simulated"}, "drawn again from its seed"),
    ({"algorithm.perturbation": "output"}, "added to gradients"),
    ({"privacy.sensitivity": "observed", "privacy.covers": "round", "privacy.mechanism": "laplace"}, "public bound"),
])  # fmt: skip
def test_what_a_ledger_cannot_guard_is_refused(tmp_path, values, says):
    with pytest.raises(IncompatibleError, match=says):
        train(spec(tmp_path, **values), out=tmp_path / "run")
    assert not list(tmp_path.iterdir())


def test_a_limit_needs_a_ledger():
    with pytest.raises(IncompatibleError, match="kept in a ledger"):
        train(preset("sound", "objt").with_values(EXACT | {"privacy.limit": 1.0}))


def test_a_run_that_makes_its_ledgers_says_so_and_the_next_run_does_not(tmp_path, capsys):
    command = ["train", "--data", "heart", "--rounds", "2", "--ledger", str(tmp_path / "ledgers"), "--out"]
    for name, made in (("first", True), ("second", False)):
        assert main([*command, str(tmp_path / name)]) == 0
        assert ("new ledger  made for cleveland" in capsys.readouterr().out) == made
        totals = RunDirectory.open(tmp_path / name).result()["ledger_totals"]
        assert {one["new"] for one in totals.values()} == {made}
    assert main(["train", "--data", "heart", "--rounds", "2", "--out", str(tmp_path / "own")]) == 0
    assert "new ledger" not in capsys.readouterr().out  # ledgers of one run are always new
