"""A task over the small federation of the tests, and runs of a method on it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from tacit.admm.agent import Agent
from tacit.admm.algorithm import Consensus
from tacit.admm.messages import Order
from tacit.engine.plain import PlainEngine
from tacit.methods.method import Coordinator, Here, Method, Own
from tacit.methods.task import Task
from tacit.problem.objective import Problem
from tacit.rounds import Info, State, rounds
from tacit.schedule import Schedule
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


def one_round(of: Task, method: Method, w: np.ndarray, t: int = 1) -> tuple[State, Info]:
    """What round t makes of the model w, as if it were the first."""
    asking = Coordinator(method, of.facts)
    state = replace(asking.start(), t=t - 1, w=w)
    msg = asking.ask(state)
    (answers,) = Here(asking, of)([msg])
    return asking.conclude(state, msg, answers)


def followed(of: Task, method: Method) -> Iterator[tuple[State, Info, Own]]:
    """The state and the info after each round, and what agents carry out of it."""
    asking = Coordinator(method, of.facts)
    here = Here(asking, of)
    for ((state, info),) in rounds([asking], [asking.start()], here):
        yield state, info, here.own


def of_the_paper(
    agents: Sequence[Agent], shape: tuple[int, int], rho: Schedule, order: Order, n: int
) -> Iterator[tuple[State, np.ndarray]]:
    """n rounds of the ADMM of tacit.admm, and the z_p of every agent."""
    engine, asking = PlainEngine([agents], shape), Consensus(n, shape, rho, order)
    for ((state, _),) in rounds([asking], [asking.start()], engine.exchange_all):
        yield state, engine.save(0)["z"]
