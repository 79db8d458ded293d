"""FedAvg (McMahan et al. 2017) and FedProx (Li et al. 2018): some agents train by themselves, and are averaged.

    w+ = sum_{p in S} (I_p / sum_S I_p) u_p,   u_p ~ argmin_u F_p(u) + mu/2 |u - w|^2   (tacit.methods.local_sgd)

S holds a fixed fraction of the agents, drawn without replacement. The proximal term ties u_p to the model w that agent
p was sent; with mu = 0 this is FedAvg. One epoch of one batch at every agent is then a gradient step on (1):
w+ = w - step sum_p f'_p(w).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.admm.messages import Broadcast
from tacit.methods.local_sgd import LocalSGD, weighted_mean
from tacit.methods.method import Answers, Budget, Choice, Entry, KeepsNothing, Own, StartsAtZero
from tacit.methods.promise import Promise, no_privacy
from tacit.methods.task import Facts, Task
from tacit.rounds import State
from tacit.types import Array


@dataclass(frozen=True)
class FedProx(StartsAtZero, KeepsNothing):
    """The server averages the models that agents send by their numbers of records."""

    rounds: int
    fraction: float
    local: LocalSGD

    def promise(self, facts: Facts) -> Promise:  # noqa: ARG002
        return no_privacy()

    def ask(self, facts: Facts, state: State) -> Broadcast:
        return Broadcast(state.t + 1, state.w, to=drawn(facts, state.t + 1, self.fraction))

    def share(self, facts: Facts) -> float:
        return _count(facts, self.fraction) / facts.n_agents

    def answer(self, agents: Task, own: Own, msg: Broadcast) -> tuple[Own, Answers]:
        return own, {"model": self.local.models(agents, msg)}

    def conclude(self, facts: Facts, state: State, msg: Broadcast, answers: Answers) -> State:
        return state.next(weighted_mean(facts, answers["model"], msg.to))


def drawn(facts: Facts, t: int, fraction: float) -> Array:
    """Which agents take part: `fraction` of them, at least one, drawn by the server's stream."""
    order = np.argsort(facts.uniform(facts.n_agents, t, facts.n_agents))
    return np.sort(order[: _count(facts, fraction)])


def _count(facts: Facts, fraction: float) -> int:
    return max(1, round(fraction * facts.n_agents))


def build(facts: Facts, budget: Budget, choice: Choice) -> FedProx:  # noqa: ARG001
    """The method as chosen; it has no noise that a budget could set."""
    local = LocalSGD(int(choice["epochs"]), int(choice["batch"]), choice["step"], choice.get("mu", 0.0))
    return FedProx(int(choice["rounds"]), choice["fraction"], local)


FEDAVG = Entry(
    "fedavg",
    "agents train by themselves and are averaged; not private",
    build,
    tuple(
        {"rounds": 30, "fraction": 1.0, "epochs": epochs, "batch": 50, "step": step}
        for step in (30.0, 100.0)
        for epochs in (1, 3)
    ),
)
FEDPROX = Entry(
    "fedprox",
    "FedAvg with a proximal term at the agents; not private",
    build,
    tuple(
        {"rounds": 30, "fraction": 1.0, "epochs": 1, "batch": 50, "step": step, "mu": mu}
        for step in (30.0, 10.0)
        for mu in (0.001, 0.01)
    ),
)
