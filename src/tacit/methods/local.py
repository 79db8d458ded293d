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

from tacit.admm.updates import prox_center
from tacit.methods.task import Task, record_sum
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

    def models(self, task: Task, w: Array, t: int, agents: Array) -> Array:
        """What each of `agents` makes of w: (len(agents), J, K)."""
        if not self.batch:
            return self._descend(task, w)[agents]
        return np.stack([self._train(task, w, t, p) for p in agents]) if len(agents) else np.zeros((0, *task.shape))

    def _descend(self, task: Task, w: Array) -> Array:
        """Whole shards, every agent in one call: (P, J, K)."""
        u = np.broadcast_to(w, (task.n_agents, *task.shape))
        for _ in range(self.epochs):
            u = self._move(task, w, u, task.sums(task.shards, task.problem, u, WHOLE) / sizes(task))
        return u

    def _train(self, task: Task, w: Array, t: int, agent: int) -> Array:
        """One agent, batch after batch: (J, K)."""
        u, shard = w, task.shards[agent]
        for epoch in range(self.epochs):
            order = np.argsort(task.uniform(agent, t, len(shard), epoch))
            for start in range(0, len(shard), self.batch):
                rows = order[start : start + self.batch]
                u = self._move(task, w, u, record_sum(shard, task.problem, u, WHOLE, rows) / len(rows))
        return u

    def _move(self, task: Task, w: Array, u: Array, data: Array) -> Array:
        """The step, given the gradient of the mean loss at u."""
        slope = data + task.problem.beta * task.problem.regularizer.gradient(u)
        moved: Array = prox_center(w, u, 0.0, slope, self.mu, self.step)
        return moved


def sizes(task: Task) -> Array:
    """I_p, which is public: (P, 1, 1)."""
    return np.array([float(len(shard)) for shard in task.shards])[:, None, None]


def weighted_mean(task: Task, models: Array, agents: Array) -> Array:
    """sum_p I_p u_p / sum_p I_p over `agents`."""
    weight = sizes(task)[agents]
    return np.asarray((weight * models).sum(0) / weight.sum())


def shrink(models: Array, clip: float) -> Array:
    """u / max(1, |u| / clip), each of a stack; 0 for one that is not finite, which would pass any clip."""
    models = np.where(np.isfinite(models).all(axis=(1, 2), keepdims=True), models, 0.0)
    size = np.linalg.norm(models, axis=(1, 2), keepdims=True)
    return np.asarray(models / np.maximum(1, size / clip))
