"""A task over the small federation of the tests."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tacit.methods.method import Info, Method, State
from tacit.methods.task import Task
from tacit.problem.objective import Problem
from tacit.types import Federation, Shard
from tests.conftest import federation


def task(over: Federation | None = None, beta: float = 1e-3, seed: int = 0) -> Task:
    """Records in float64, so that identities hold to the last digits; features in [0, 1]."""
    over = federation() if over is None else over
    shards = tuple(Shard(shard.x, shard.y, dtype=np.float64) for shard in over.shards)
    problem = Problem(over.n_agents, 1 / over.n_records, beta=beta)
    return Task.whole(shards, problem, (over.n_features, over.n_classes), math.sqrt(over.n_features), seed)


def empty(of: Task, seed: int = 0) -> Task:
    """The same task with nothing in its records, so that a method moves by its noise alone."""
    shards = tuple(replace(shard, x=0 * shard.x) for shard in of.shards)
    return replace(of, shards=shards, seed=seed)


def cooled_noise(rounds: int) -> float:
    """The std that steps falling to zero gather, over what `cooled_step` takes it for."""
    return math.sqrt(sum((1 - t / rounds) ** 2 for t in range(rounds)) / (rounds / 3))


def pooled_gradient(of: Task, w: np.ndarray) -> np.ndarray:
    """sum_p f'_p(w), as one shard."""
    x, y = np.concatenate([s.x for s in of.shards]), np.concatenate([s.y for s in of.shards])
    problem = Problem(1, of.problem.weight, of.problem.loss, of.problem.regularizer, of.problem.beta)
    return problem.gradient(w, Shard(x, y, dtype=np.float64))


def run(of: Task, method: Method) -> Iterator[tuple[State, Info]]:
    """(state, info) after each round."""
    state = method.init(of)
    for _ in range(method.rounds):
        state, info = method.run_round(of, state)
        yield state, info
