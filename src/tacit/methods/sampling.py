"""Poisson samples of records and of agents: each is in by a coin of its own, and so the size of a sample is random."""

from __future__ import annotations

import numpy as np

from tacit.methods.task import Facts, Task, record_sum
from tacit.problem.sensitivity import RecordBound
from tacit.types import Array

SLACK = 1 - 1e-6  # the coins are float32: with it none falls more often than the rate that is accounted


def poisson(facts: Facts, agent: int, t: int, n: int, rate: float, step: int = 0) -> Array:
    """Which of n are in, each with probability `rate`, by a stream of `agent`; at rate 1 all are."""
    return np.arange(n) if rate == 1 else np.flatnonzero(facts.uniform(agent, t, n, step) < rate * SLACK)


def lot_sums(agents: Task, points: Array, bound: RecordBound, t: int, rate: float, step: int = 0) -> Array:
    """sum_i x_i a_i^T over a lot of every agent's records, at points[p] or at one point for all: (P, J, K)."""
    if rate == 1:
        return agents.sums(agents.shards, agents.problem, points, bound)
    each = np.broadcast_to(points, agents.zeros.shape)
    sums = []
    for p, shard, u in zip(agents.index, agents.shards, each, strict=True):
        lot = poisson(agents, p, t, len(shard), rate, step)
        sums.append(record_sum(shard, agents.problem, u, bound, lot))
    return np.stack(sums)
