"""A secure sum over Flower, in real processes over TLS: one site is killed in the middle, and the sum stays exact."""

from __future__ import annotations

import threading

import numpy as np
import pytest

pytest.importorskip("flwr")

from tacit.data.mnist import read as read_mnist
from tacit.federation import folders, status, sum_files
from tacit.privacy.summed import Attempt
from tacit.run import build, deploy
from tacit.run.asking import apply_sum
from tacit.run.directory import load_npz
from tacit.run.run import Run
from tacit.run.train import together as run_together
from tacit.run.train import train
from tests.distributed.conftest import Federation, until
from tests.distributed.test_flower import together
from tests.federation.summing import seeded

SITES = {"north": ("a0", "a1", "a2"), "south": ("a3", "a4", "a5"), "east": ("a6", "a7", "a8"), "west": ("a9",)}
AGENTS = [agent for agents in SITES.values() for agent in agents]
ROUNDS, REPETITIONS, COLLUDING = 6, 2, 3  # as many as one site has
KILLED_AFTER = 3  # rounds
FAULTS = "[faults]\ndeadline = 20.0\nresend = 10.0\nmost_missed = 1000\n\n"
POINTS = 0.1  # of test error between a deployed and a simulated secure sum


def make(folder, draft):
    """Ten agents of MNIST at four sites; one machine draws the keys of all."""
    digits, test = read_mnist()
    np.savez(draft / "test.npz", x=test.x, y=test.y)
    values = {
        "data.class_names": "10", "data.low": 0.0, "data.high": 1.0, "data.label_column": "y", "data.test": "test.npz",
        "features.shape": "28x28", "run.rounds": ROUNDS, "privacy.trust": "sum", "privacy.repetitions": REPETITIONS,
    }  # fmt: skip
    folders.make(folder, folders.FolderLayout("digits", SITES, values=values, base=draft, one_account=True))
    size = len(digits.y) // len(AGENTS)
    for n, (site, agent) in enumerate((site, agent) for site, agents in SITES.items() for agent in agents):
        part = slice(n * size, (n + 1) * size)
        np.savez(folder / site / "agent" / "records" / f"{agent}.npz", x=digits.x[part], y=digits.y[part])
    for site in SITES:
        path = folder / site / "agent" / "site.toml"
        path.write_text(path.read_text().replace(".csv", ".npz"))
    sum_files.draw(folder, SITES)
    plan = folder / "coordinator" / "federation.toml"
    start, _, rest = plan.read_text().partition("[faults]")
    plan.write_text(start + FAULTS + rest[rest.index("[[site]]") :])


class Replay:
    """An engine that adds the shares of known sets, without masks: what a federation must have added, in integers."""

    path = "replay"

    def __init__(self, setup, federation, sets) -> None:
        self.deployment, self.names, self.sets = setup.deployment, list(federation.agents), sets
        self.program = self.deployment.program(False)
        shards = zip(self.deployment.agreements, federation.shards, strict=True)
        self.values = [deploy.queries_of(own, shard)[0].value for own, shard in shards]
        assert self.deployment.in_sum.colluding == COLLUDING

    def exchange_all(self, msgs):
        (msg,) = msgs
        present = [self.names.index(name) for name in self.sets[msg.t]]
        attempt, asked = self.deployment.attempt(msg.t, len(present)), self.program.parameters(msg, 0)
        shares = [attempt.share(self.values[p](asked)).ravel() for p in present]
        residues = np.add.reduce(shares, dtype=np.uint64)
        return [apply_sum(self.program, self.deployment, msg, residues, present, {})]

    def save(self, _r):
        return {}


def releases(federation):
    """Round and attempt of every release, by agent."""
    found = {}
    for agent in AGENTS:
        with federation.ledger(agent) as ledger:
            found[agent] = [(key.round, key.step) for key in ledger.history().answers]
    return found


def check_account(federation, run):
    """Every ledger has what the coordinator counted of its agent."""
    result = run.result()
    for agent, told in result["took_part"].items():
        with federation.ledger(agent) as ledger:
            assert ledger.verify(result["ledger_heads"][agent])
            (account,) = ledger.show(run.spec().privacy.dp_delta)
            assert told["released"] <= account.releases <= told["asked"] <= ROUNDS + REPETITIONS
            assert told["epsilon"] <= account.epsilon <= told["epsilon_at_most"] <= run.spec().privacy.epsilon
            if agent != "a9":  # the answer of a site that is killed may be paid for and lost
                assert told["released"] == account.releases


def test_ten_agents_over_tls_one_of_which_is_killed_in_the_middle(short, tmp_path, monkeypatch):
    folder = short / "f"
    make(folder, tmp_path)
    with Federation(folder, seeded=True) as federation:
        federation.begin(federation.show)

        def kill() -> None:
            until((folder / "coordinator" / "status.json").exists, 120)
            until(lambda: status.read(folder / "coordinator").get("round", 0) >= KILLED_AFTER, 120)
            assert federation.kill("west-node")
            assert federation.kill("west-agent")

        killer = threading.Thread(target=kill, daemon=True)
        killer.start()
        run = federation.result()
        killer.join()
    result, told = run.result(), run.result()["took_part"]
    assert KILLED_AFTER <= told["a9"]["answered"] < ROUNDS
    assert all(told[agent]["answered"] == ROUNDS for agent in AGENTS[:-1])
    assert 1 <= result["repetitions"]["used"] <= REPETITIONS
    check_account(federation, run)

    paid = releases(federation)
    last = dict(sorted(place for each in paid.values() for place in each))  # attempt of each round
    sets = {t: [agent for agent in AGENTS if (t, last[t]) in paid[agent]] for t in last}
    assert sets[ROUNDS] == AGENTS[:-1]
    monkeypatch.setattr(Attempt, "share", seeded)
    whole = together(folder)
    spec = run.spec()
    same = build.transformed(spec, whole)
    setup = build.setup(spec, same)
    replayed = run_together([Run(spec, same, setup)], host=lambda *_: Replay(setup, same, sets))[0]
    assert np.array_equal(load_npz(run.path / "model.npz")["w"], replayed.w)
    assert np.array_equal(load_npz(run.path / "model.npz")["w_average"], replayed.w_average)

    monkeypatch.undo()
    simulated = spec.with_values({"privacy.noise": "simulated", "run.seed": 0})
    apart = 100 * abs(result["test_error"] - train(simulated, whole).test_error)
    print(f"test error {100 * result['test_error']:.2f} %, {apart:.2f} points from a simulated secure sum")
    assert apart <= POINTS
