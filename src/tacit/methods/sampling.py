"""Poisson samples, of records and of agents: each is in by a coin of its own, so the size of a sample is random."""

from __future__ import annotations

import numpy as np

from tacit.methods.task import Task, record_sum
from tacit.problem.sensitivity import RecordBound
from tacit.types import Array

SLACK = 1 - 1e-6  # the coins are float32: with it none falls more often than the rate that is accounted


def poisson(task: Task, agent: int, t: int, n: int, rate: float, step: int = 0) -> Array:
    """Which of n, by a stream of `agent`: each with probability `rate`; all of them at rate 1."""
    return np.arange(n) if rate == 1 else np.flatnonzero(task.uniform(agent, t, n, step) < rate * SLACK)


def lot_sums(task: Task, points: Array, bound: RecordBound, t: int, rate: float, step: int = 0) -> Array:
    """sum_i x_i a_i^T over a lot of every agent's records, at points[p] or at one point for all: (P, J, K)."""
    if rate == 1:
        return task.sums(task.shards, task.problem, points, bound)
    each = np.broadcast_to(points, (task.n_agents, *task.shape))
    sums = []
    for p, shard in enumerate(task.shards):
        lot = poisson(task, p, t, len(shard), rate, step)
        sums.append(record_sum(shard, task.problem, each[p], bound, lot))
    return np.stack(sums)
