"""Real processes, real TLS, loopback: a federation over Flower trains what one process trains, whatever is killed."""

from __future__ import annotations

import dataclasses
import random
import threading
import time

import numpy as np
import pytest

pytest.importorskip("flwr")

from tacit.data.mnist import read as read_mnist
from tacit.federation import asked, demonstration, folders, status
from tacit.federation.plan import read_plan
from tacit.federation.site import load, read
from tacit.privacy import lattice
from tacit.run.directory import RunDirectory, load_npz
from tacit.run.train import train
from tests.distributed.conftest import Federation, until
from tests.distributed.seeded_agent import seeded

ROUNDS = 10


def together(folder):
    """All records of a federation in one process, its agents in the order of the run."""
    found = [load(read(folder / site.name / "agent" / "site.toml")) for site in read_plan(folder / "coordinator").sites]
    coordinator = folder / "coordinator"
    test = asked.test_records(coordinator, asked.read_run(coordinator))
    return dataclasses.replace(
        found[0], shards=tuple(shard for one in found for shard in one.shards),
        agents=tuple(name for one in found for name in one.agents), name=read_plan(coordinator).name,
        test=test.test if len(test.test) else test.shards[0],
    )  # fmt: skip


def comparable(rows):
    """Rows without clocks, and without the objective, which a coordinator cannot know: it has no records."""
    return [{key: value for key, value in row.items() if "seconds" not in key and key != "objective"} for row in rows]


def check_trajectory(folder, run, monkeypatch, tmp_path):
    """The run over Flower has the records and the model of the same run in one process, bit for bit."""
    monkeypatch.setattr(lattice, "release", seeded)
    spec = run.spec().with_values({"privacy.ledger": str(tmp_path / "ledgers"), "run.engine": "plain"})
    train(spec, together(folder), tmp_path / "alone")
    alone = RunDirectory(tmp_path / "alone")
    assert len(run.rows()) >= ROUNDS
    assert comparable(run.rows()) == comparable(alone.rows())
    over_flower, in_process = load_npz(run.path / "model.npz"), load_npz(tmp_path / "alone" / "model.npz")
    for name in ("w", "w_average"):
        assert np.array_equal(over_flower[name], in_process[name]), name


def check_accounts(federation, run):
    """Each ledger has what the server counted of its agent, and goes through the head that the server noted."""
    result, name = run.result(), run.spec().run.name
    for agent, told in result["took_part"].items():
        with federation.ledger(agent) as ledger:
            assert ledger.verify(result["ledger_heads"][agent])
            (account,) = ledger.show(run.spec().privacy.dp_delta)
            (spent,) = [one for one in account.runs if one.run == name]
            assert account.releases == spent.releases == spent.rounds
            assert told["released"] <= spent.releases <= min(told["asked"], run.spec().run.rounds)
            if told["missed"] == 0:
                assert told["released"] == spent.releases
                assert told["epsilon"] == spent.epsilon


def seconds_of(run):
    return (run.path / "result.json").stat().st_mtime - (run.path / "spec.toml").stat().st_mtime


def test_the_hospitals_of_heart_over_three_nodes_train_what_one_process_trains(short, tmp_path, monkeypatch):
    demonstration.make(short / "f", ROUNDS)
    with Federation(short / "f", seeded=True) as federation:
        federation.begin(federation.show)
        run = federation.result()
    check_trajectory(short / "f", run, monkeypatch, tmp_path)
    check_accounts(federation, run)
    assert status.read(short / "f" / "coordinator")["round"] == ROUNDS


MNIST_SITES = {"north": ("a0", "a1", "a2", "a3"), "south": ("a4", "a5", "a6"), "east": ("a7", "a8", "a9")}
DIGITS = 500  # of each agent, and of the test set


def make_mnist(folder, draft):
    digits, test = read_mnist()
    np.savez(draft / "test.npz", x=test.x[:DIGITS], y=test.y[:DIGITS])
    values = {
        "data.class_names": "10", "data.low": 0.0, "data.high": 1.0, "data.label_column": "y", "data.test": "test.npz",
        "features.shape": "28x28", "run.rounds": ROUNDS,
    }  # fmt: skip
    folders.make(folder, folders.Layout("digits", MNIST_SITES, values=values, base=draft))
    for n, (site, agent) in enumerate((site, agent) for site, agents in MNIST_SITES.items() for agent in agents):
        part = slice(n * DIGITS, (n + 1) * DIGITS)
        np.savez(folder / site / "agent" / "records" / f"{agent}.npz", x=digits.x[part], y=digits.y[part])
    for site in MNIST_SITES:
        path = folder / site / "agent" / "site.toml"
        path.write_text(path.read_text().replace(".csv", ".npz"))


def test_ten_agents_of_mnist_over_three_nodes_train_what_one_process_trains(short, tmp_path, monkeypatch):
    make_mnist(short / "f", tmp_path)
    with Federation(short / "f", seeded=True) as federation:
        federation.begin(federation.show)
        run = federation.result()
    check_trajectory(short / "f", run, monkeypatch, tmp_path)
    check_accounts(federation, run)


KINDS = ("node", "courier", "agent", "app", "superlink")
KILLS = 20
LONG = 36  # rounds
FAULTS = "[faults]\ndeadline = 15.0\nresend = 8.0\nmost_missed = 1000\n\n"


def test_whatever_is_killed_the_run_finishes_and_no_round_is_paid_twice(short):
    """kill -9 of every kind of process, at twenty random moments of one run, each in the middle of a round."""
    folder, rng = short / "f", random.Random(17)
    demonstration.make(folder, LONG)
    plan = folder / "coordinator" / "federation.toml"
    start, _, rest = plan.read_text().partition("[faults]")
    plan.write_text(start + FAULTS + rest[rest.index("[[site]]") :])
    done, killed = threading.Event(), []
    victims = [kind for kind in KINDS for _ in range(KILLS // len(KINDS))]
    rng.shuffle(victims)
    with Federation(folder) as federation:
        federation.begin(federation.show)
        federation.supervise()

        def rounds():
            return status.read(folder / "coordinator").get("round", 0)

        def kill_now_and_then():
            until(lambda: (folder / "coordinator" / "status.json").exists(), 120)
            for kind in victims:
                before, end = rounds(), time.monotonic() + 60.0
                while rounds() == before and time.monotonic() < end and not done.wait(0.2):
                    pass
                done.wait(rng.uniform(0.0, 6.0))
                sites, end = rng.sample(federation.sites, len(federation.sites)), time.monotonic() + 60.0
                names = [kind] if kind in ("app", "superlink") else [f"{site}-{kind}" for site in sites]
                while not any(map(federation.kill, names)) and time.monotonic() < end and not done.is_set():
                    time.sleep(0.02)  # a courier lives for two seconds: wait for one
                if time.monotonic() < end and not done.is_set():
                    killed.append(kind)

        killer = threading.Thread(target=kill_now_and_then, daemon=True)
        killer.start()
        run = federation.result()
        done.set()
        killer.join()
    print(f"killed {' '.join(killed)}; {seconds_of(run):.0f} s for {LONG} rounds; {run.result()['took_part']}")
    assert len(killed) == KILLS, "the run was over too soon"
    assert len(run.rows()) == LONG
    check_accounts(federation, run)
