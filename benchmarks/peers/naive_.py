"""The paper's ObjT in the naive style (benchmarks/naive.py), with as much Laplace noise as the whole run may cost."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from benchmarks.naive import Naive
from benchmarks.peers.peer import Constants, Peer, Trained
from benchmarks.peers.task import DELTA, Task
from tacit.admm.updates import consensus
from tacit.privacy.budget import calibrate, total
from tacit.privacy.release import LaplaceRelease
from tacit.run import build
from tacit.run.presets import preset


def train(task: Task, seed: int, constants: Constants) -> Trained:
    """Rounds of ObjT, each with the l1 sensitivity that is observed, as published."""
    rounds = int(constants["rounds"])
    release = calibrate(LaplaceRelease(1.0), task.epsilon, DELTA, rounds)
    assert isinstance(release, LaplaceRelease)
    values = {"privacy.epsilon": release.l1, "run.rounds": rounds, "schedule.rho_factor": constants["rho_factor"]}
    spec = preset("released", "objt").with_values(values)
    setup = build.admm_setup(spec, task.over)
    np.random.seed(seed)  # noqa: NPY002  that is the style
    start = time.perf_counter()
    naive = Naive(setup)
    for _ in range(rounds):
        naive()
    # w of the last releases, which are paid for
    w = consensus(np.mean(naive.z, axis=0), np.mean(naive.dual, axis=0), setup.rho(rounds))
    seconds = time.perf_counter() - start
    spent = total([(release, rounds)], DELTA)
    return Trained(task.over.test.x @ w, seconds, spent.epsilon, DELTA, f"{rounds} rounds")


PEER = Peer(
    "the paper's ObjT, research style", "nobody: each agent adds its own noise",
    "one record, present or absent: if the observed sensitivity were public, which it is not",
    "tacit, Laplace composition (the paper states one round)", train,
    constants={"mnist": {"rounds": 30, "rho_factor": 0.001}, "adult": {"rounds": 300, "rho_factor": 0.001}},
    grid={"rounds": (30, 100, 300), "rho_factor": (0.0001, 0.001, 0.01, 0.1, 1.0)},
)  # fmt: skip

# of the figure at four budgets: few rounds are best, for more of them have more noise each
AT_BUDGETS = replace(PEER, constants={}, grid={"rounds": (1, 3, 10, 30), "rho_factor": (0.00001, 0.0001, 0.001)})
