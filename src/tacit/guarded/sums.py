"""sum_i x_i a_i^T over the records of one agent, in float64: what `AdmmHalf.value` asks of them.

    a_i = the residual of record i, shrunk to its bound

Whoever sums in another way (tacit.run.deploy may pass one to every half) must keep to what the proofs of
tacit.guarded.half use: float64 throughout, each product rounded once or fused into its sum, in an order that no record
decides; and a clip that is computed from the very numbers that are summed, before they are.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from tacit.admm.agent import Agent
from tacit.types import Array

Sums: TypeAlias = Callable[[Array], Array]  # a point (J, K) -> (J, K); threads may ask at the same time
Summing: TypeAlias = Callable[[Agent], Sums]  # the sums over the records of this agent

_alone = threading.Lock()  # BLAS spreads one product over all cores: two agents at a time would be in each other's way


def numpy_sums(agent: Agent) -> Sums:
    """The sums by NumPy, over all records at once."""
    agent = agent.in_double()
    shard, loss, bound, x_norm = agent.shard, agent.problem.loss, agent.variant.bound, agent.x_norm

    def sums(point: Array) -> Array:
        with _alone:
            score = shard.x @ point
        residual = bound.shrink(loss.residual(score, shard.y), x_norm)
        with _alone:
            return np.asarray(shard.x.T @ residual)

    return sums
