"""Training at an agent between two messages, and the mean of what comes back.

    F_p(u) = 1/I_p sum_{i <= I_p} l(u; x_pi, y_pi) + beta r(u),   sum_p (I_p / I) F_p = sum_p f_p, the objective (1)

A step on a batch of records goes to

    argmin_u <F'(u_e), u> + mu/2 |u - w|^2 + 1/(2 step) |u - u_e|^2

the proximal term of (5) with mu for rho and w the model that was broadcast: stable for every mu. With mu = 0 it is a
step of gradient descent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.admm.messages import Broadcast
from tacit.admm.updates import prox_center
from tacit.methods.task import Facts, Task, record_sum
from tacit.problem.sensitivity import Observed
from tacit.types import Array, Norm

WHOLE = Observed(Norm.L2)  # no record is shrunk


@dataclass(frozen=True)
class LocalSGD:
    """`epochs` passes over an agent's records, in random order, `batch` at a time; 0 is all of them at once."""

    epochs: int
    batch: int
    step: float
    mu: float = 0.0

    def models(self, agents: Task, msg: Broadcast) -> Array:
        """What each agent that was asked makes of w: a row each, (n, J, K)."""
        rows = agents.asked(msg.to)
        if not self.batch:
            return self._descend(agents, msg.w)[rows]
        models = np.empty((len(rows), *agents.shape))
        for model, row in zip(models, rows, strict=True):
            model[...] = self._train(agents, msg, row)
        return models

    def _descend(self, agents: Task, w: Array) -> Array:
        """Every agent here on all of its records, in one call: (P, J, K)."""
        u = np.broadcast_to(w, agents.zeros.shape)
        for _ in range(self.epochs):
            u = self._move(agents, w, u, agents.sums(agents.shards, agents.problem, u, WHOLE) / agents.own_sizes)
        return u

    def _train(self, agents: Task, msg: Broadcast, row: int) -> Array:
        """One agent, batch after batch: (J, K)."""
        u, shard = msg.w, agents.shards[row]
        for epoch in range(self.epochs):
            order = np.argsort(agents.uniform(agents.index[row], msg.t, len(shard), epoch))
            for start in range(0, len(shard), self.batch):
                lot = order[start : start + self.batch]
                u = self._move(agents, msg.w, u, record_sum(shard, agents.problem, u, WHOLE, lot) / len(lot))
        return u

    def _move(self, facts: Facts, w: Array, u: Array, data: Array) -> Array:
        """The step, given the gradient of the mean loss at u."""
        slope = data + facts.problem.beta * facts.problem.regularizer.gradient(u)
        moved: Array = prox_center(w, u, 0.0, slope, self.mu, self.step)
        return moved


def weighted_mean(facts: Facts, models: Array, to: Array | None) -> Array:
    """sum_p I_p u_p / sum_p I_p over the agents that were asked, None for all."""
    weight = np.array(facts.sizes, dtype=np.float64)[slice(None) if to is None else to, None, None]
    return np.asarray((weight * models).sum(0) / weight.sum())


def shrink(models: Array, clip: float) -> Array:
    """u / max(1, |u| / clip), each of a stack; 0 for one that is not finite, which would pass any clip."""
    models = np.where(np.isfinite(models).all(axis=(1, 2), keepdims=True), models, 0.0)
    size = np.linalg.norm(models, axis=(1, 2), keepdims=True)
    return np.asarray(models / np.maximum(1, size / clip))
