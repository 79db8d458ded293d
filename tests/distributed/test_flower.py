"""Real processes, real TLS, loopback: a federation over Flower trains what one process trains, whatever is killed."""

from __future__ import annotations

import dataclasses
import json
import random
import subprocess
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
            assert told["released"] <= spent.releases <= min(told["asked"], run.spec().run.rounds)
            if told["missed"] == 0:
                assert told["released"] == spent.releases
                assert told["epsilon"] == spent.epsilon


def seconds_a_round(run):
    return (run.path / "result.json").stat().st_mtime - (run.path / "spec.toml").stat().st_mtime


def test_the_hospitals_of_heart_train_over_three_nodes_what_one_process_trains(short, tmp_path, monkeypatch, record_property):
    demonstration.make(short / "f", ROUNDS)
    with Federation(short / "f", seeded=True) as federation:
        federation.begin(federation.show)
        run = federation.result()
    record_property("seconds_a_round", seconds_a_round(run) / ROUNDS)
    check_trajectory(short / "f", run, monkeypatch, tmp_path)
    check_accounts(federation, run)
    told = status.read(short / "f" / "coordinator")
    assert told["round"] == ROUNDS
