"""tacit itself, as `tacit train` runs it: the sound preset with its own constants, whatever the data."""

from __future__ import annotations

import time
from functools import partial

from benchmarks.peers.peer import Constants, Peer, Trained
from benchmarks.peers.task import DELTA, Task
from tacit.run import build
from tacit.run.noise import simulated
from tacit.run.presets import preset
from tacit.run.run import Run
from tacit.run.train import together


def train(method: str, task: Task, seed: int, constants: Constants) -> Trained:
    """One run. The test set is looked at once, at the end: no other tool looks at it on its way."""
    spec = preset("sound", method).with_values(
        {"privacy.epsilon": task.epsilon, "privacy.dp_delta": DELTA, "run.seed": seed, **constants}
    )
    spec = spec.with_values({"run.record_every": spec.run.rounds})
    start = time.perf_counter()
    result = together([Run(spec, task.over, build.setup(spec, task.over))])[0]
    seconds = time.perf_counter() - start
    summary = result.summary
    score = task.over.test.x @ result.w
    return Trained(score, seconds, summary["epsilon"], summary["dp_delta"], f"{summary['rounds']} rounds")


def _peer(method: str, title: str, trusts: str) -> Peer:
    return Peer(
        title, trusts, "one record, present or absent", "tacit, Gaussian composition (exact)", partial(train, method),
        constants={"mnist": {}, "adult": {}}, grid={}, note="one set of constants for all data",
        settings=lambda: simulated(preset("sound", method)).values(),
    )  # fmt: skip


AGENTS_ALONE = _peer("objt", "tacit, ObjT (`tacit train`)", "nobody: each agent adds its own noise")
SECURE_SUM = _peer("secure-sum", "tacit, secure sum", "a secure sum: the server sees totals alone")
CURATOR = _peer("dpsgd", "tacit, DP-SGD by a curator", "a curator, who holds all records")
