"""Flower's simulation with its central DP: FedAvg over ten clients, the server clips and adds the noise.

The unit is a whole client: (epsilon, delta) hides whether one of the ten took part at all, with all of its records.
That is far more than hiding one record, and with ten clients the noise that it needs drowns the model: the numbers are
not to be compared with those of tools that hide a record. Flower has no strategy whose unit is a record. Its LocalDpMod
protects a client too, message by message: its epsilon is that of one message, and rounds are not added up.
"""

from __future__ import annotations

import logging
import os
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.peer import Constants, Peer, Trained
from benchmarks.peers.task import AGENTS, DELTA, EPSILON, Task
from tacit.types import Array

# set before flwr and ray are imported, which read them once: no telemetry, and ray's processes meet on 127.0.0.1
QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}  # fmt: skip


def train(task: Task, seed: int, constants: Constants) -> Trained:
    """A simulation of as many rounds; the clock runs from the first round to the last, and ray is up before."""
    os.environ.update(QUIET)
    from flwr.app import ArrayRecord
    from flwr.server import ServerApp
    from flwr.serverapp.strategy import DifferentialPrivacyServerSideFixedClipping, FedAvg
    from flwr.simulation import run_simulation

    logging.getLogger("flwr").setLevel(logging.ERROR)
    rounds, found = int(constants["rounds"]), {}
    multiplier = least_noise(rounds)
    server, begin = ServerApp(), time.perf_counter()

    @server.main()
    def main(grid: Any, _context: Any) -> None:
        while len(list(grid.get_node_ids())) < AGENTS:  # clients come up one after another
            time.sleep(0.01)
        np.random.seed(seed)  # noqa: NPY002  Flower draws its noise from NumPy's global state
        strategy = DifferentialPrivacyServerSideFixedClipping(
            FedAvg(fraction_evaluate=0.0, min_train_nodes=AGENTS, min_available_nodes=AGENTS), multiplier,
            constants["clip"], AGENTS, accountant=_accountant(),
        )  # fmt: skip
        _wake(grid)
        w = np.zeros((task.over.n_features, task.over.n_classes), np.float32)
        start = time.perf_counter()
        result = strategy.start(grid, ArrayRecord([w]), num_rounds=rounds)
        found["seconds"], found["start"] = time.perf_counter() - start, start - begin
        found["w"], found["spent"] = result.arrays.to_numpy_ndarrays()[0], strategy.privacy_spent()

    with tempfile.TemporaryDirectory() as folder:
        for p, shard in enumerate(task.over.shards):
            np.savez(Path(folder, f"{p}.npz"), x=shard.x, y=shard.y)
        run_simulation(
            server, client(folder, int(constants["local_steps"]), constants["lr"]), AGENTS,
            backend_config={
                "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
                "init_args": {"include_dashboard": False},
            },
        )  # fmt: skip
    spent, score = found["spent"], task.over.test.x @ found["w"]
    steps = f"{rounds} rounds of {constants['local_steps']} local steps"
    return Trained(score, found["seconds"], spent.epsilon, spent.delta, steps, found["start"])


def _wake(grid: Any) -> None:
    """Ask every client once, so that ray's processes are up and hold their records."""
    from flwr.app import Message, MessageType, RecordDict

    asked = [Message(RecordDict(), dst_node_id=node, message_type=MessageType.QUERY) for node in grid.get_node_ids()]
    for reply in grid.send_and_receive(asked):
        if reply.has_error():
            raise RuntimeError(f"a client of the simulation does not answer: {reply.error}")


def client(folder: str, local_steps: int, lr: float) -> Any:
    """Gradient descent on the client's own records; every client counts alike, as the accountant demands."""
    from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
    from flwr.clientapp import ClientApp

    app = ClientApp()

    @app.query()
    def wake(msg: Any, context: Any) -> Any:
        _records(folder, int(context.node_config["partition-id"]))
        return Message(content=RecordDict(), reply_to=msg)

    @app.train()
    def descend(msg: Any, context: Any) -> Any:
        x, y = _records(folder, int(context.node_config["partition-id"]))
        w = msg.content["arrays"].to_numpy_ndarrays()[0].copy()
        for _ in range(local_steps):
            w -= lr * gradient(w, x, y)
        content = RecordDict({"arrays": ArrayRecord([w]), "metrics": MetricRecord({"num-examples": 1})})
        return Message(content=content, reply_to=msg)

    return app


@cache
def _records(folder: str, p: int) -> tuple[Array, Array]:
    """Read once a process: ray keeps its workers."""
    with np.load(Path(folder, f"{p}.npz")) as kept:
        return kept["x"], kept["y"]


def gradient(w: Array, x: Array, y: Array) -> Array:
    """Of the mean cross entropy: 1/I sum_i x_i (h_i - y_i)^T."""
    score = x @ w
    score -= score.max(axis=1, keepdims=True)
    h = np.exp(score)
    h /= h.sum(axis=1, keepdims=True)
    h[np.arange(len(y)), y] -= 1
    return np.asarray(x.T @ h / len(y), np.float32)


def _accountant() -> Any:
    """Flower's own: Renyi divergences, no amplification, clients added or removed."""
    from flwr.supercore import privacy_accounting as own
    from flwr.supercore.privacy_accounting.rdp_accountant import RdpAccountant

    relation, sampling = own.NeighboringRelation.ADD_OR_REMOVE_ONE, own.SamplingMethod.NO_AMPLIFICATION
    return RdpAccountant(own.PrivacyConfig(DELTA, AGENTS, relation, sampling))


def least_noise(rounds: int) -> float:
    """The least noise multiplier with which Flower's accountant states at most epsilon for all rounds."""
    from flwr.supercore.privacy_accounting import GaussianPrivacyEvent

    def spent(multiplier: float) -> float:
        accountant = _accountant()
        accountant.compose(GaussianPrivacyEvent(multiplier, AGENTS, AGENTS), rounds)
        return float(accountant.get_epsilon(DELTA))

    low, high = 0.1, 1e4  # too little, enough
    while high / low > 1.0001:
        middle = (low * high) ** 0.5
        low, high = (low, middle) if spent(middle) <= EPSILON else (middle, high)
    return high


PEER = Peer(
    "Flower, FedAvg with server-side fixed clipping", "the server, which sees every client's model and adds the noise",
    "one CLIENT of ten with all of its records: not comparable with the rest", "Flower, RDP accountant", train,
    constants={
        "mnist": {"rounds": 3, "clip": 1.0, "local_steps": 5, "lr": 5.0},
        "adult": {"rounds": 1, "clip": 1.0, "local_steps": 5, "lr": 5.0},
    },
    grid={"rounds": (1, 3, 10), "clip": (0.1, 1.0, 10.0), "local_steps": (5,), "lr": (5.0,)},
    packages=("flwr", "ray"),
)  # fmt: skip
