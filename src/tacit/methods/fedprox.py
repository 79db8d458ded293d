"""FedProx (Li et al. 2018): some agents train by themselves, tied to the model they were sent, and are averaged.

    w+ = sum_{p in S} (I_p / sum_S I_p) u_p,   u_p ~ argmin_u F_p(u) + mu/2 |u - w|^2   (tacit.methods.local)

S holds a fixed fraction of the agents, drawn without replacement. With mu = 0 this is FedAvg.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.methods.local import LocalSGD, weighted_mean
from tacit.methods.method import Budget, Choice, Entry, Info, State, model_bytes, start
from tacit.methods.promise import Promise, no_privacy
from tacit.methods.task import Task
from tacit.types import Array


@dataclass(frozen=True)
class FedProx:
    """The models that agents send are averaged by their numbers of records."""

    rounds: int
    fraction: float
    local: LocalSGD

    def promise(self, task: Task) -> Promise:  # noqa: ARG002
        return no_privacy()

    def init(self, task: Task) -> State:
        return start(task)

    def run_round(self, task: Task, state: State) -> tuple[State, Info]:
        t = state.t + 1
        agents = drawn(task, t, self.fraction)
        models = self.local.models(task, state.w, t, agents)
        sent = model_bytes(task, len(agents) / task.n_agents)
        return State(t, weighted_mean(task, models, agents)), Info((models,), sent)


def drawn(task: Task, t: int, fraction: float) -> Array:
    """Which agents take part: `fraction` of them, at least one, by the server's stream."""
    count = max(1, round(fraction * task.n_agents))
    return np.sort(np.argsort(task.uniform(task.n_agents, t, task.n_agents))[:count])


def build(task: Task, budget: Budget, choice: Choice) -> FedProx:  # noqa: ARG001
    """It has no noise to fit to a budget."""
    local = LocalSGD(int(choice["epochs"]), int(choice["batch"]), choice["step"], choice.get("mu", 0.0))
    return FedProx(int(choice["rounds"]), choice["fraction"], local)


ENTRY = Entry(
    "fedprox",
    "FedAvg with a proximal term at the agents; not private",
    build,
    tuple(
        {"rounds": 30, "fraction": 1.0, "epochs": 1, "batch": 50, "step": step, "mu": mu}
        for step in (30.0, 10.0)
        for mu in (0.001, 0.01)
    ),
)
