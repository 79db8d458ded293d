"""DP-FedAvg (McMahan et al. 2018): FedAvg that hides whether an agent took part at all.

    w+ = w + (sum_{p in S} shrink(u_p - w) + xi) / (rate P),   |shrink(.)| <= clip,   xi ~ N(0, (multiplier clip)^2)

u_p is what agent p's epochs of SGD make of w (tacit.methods.local); each agent is in S with probability `rate`. All
updates weigh the same, so that one agent moves their sum by at most `clip`, whatever the number of its records.
"""

from __future__ import annotations

from dataclasses import dataclass

from tacit.methods.local import LocalSGD, shrink
from tacit.methods.method import Budget, Choice, Entry, Info, State, model_bytes, start
from tacit.methods.promise import Promise, Trusted, Unit, gaussian_releases
from tacit.methods.sampling import poisson
from tacit.methods.task import Task
from tacit.problem.sensitivity import ROOM


@dataclass(frozen=True)
class DPFedAvg:
    """The server clips, sums and adds the noise; who took part stays with it."""

    rounds: int
    rate: float
    clip: float
    multiplier: float
    local: LocalSGD

    def promise(self, task: Task) -> Promise:  # noqa: ARG002
        return gaussian_releases(self.multiplier, unit=Unit.CLIENT, rate=self.rate, trusted=Trusted.SERVER)

    def init(self, task: Task) -> State:
        return start(task)

    def run_round(self, task: Task, state: State) -> tuple[State, Info]:
        t, server = state.t + 1, task.n_agents
        agents = poisson(task, server, t, task.n_agents, self.rate)
        updates = shrink(self.local.models(task, state.w, t, agents) - state.w, self.clip * ROOM)
        noise = self.multiplier * self.clip * task.gaussian(server, t)
        w = state.w + (updates.sum(0) + noise) / (self.rate * task.n_agents)
        return State(t, w), Info((w,), model_bytes(task, self.rate))  # as many as expected: how many came is private


def build(task: Task, budget: Budget, choice: Choice) -> DPFedAvg:  # noqa: ARG001
    """The noise with which the rounds spend the budget."""
    rounds, rate = int(choice["rounds"]), choice["rate"]
    local = LocalSGD(int(choice["epochs"]), int(choice["batch"]), choice["step"])
    return DPFedAvg(rounds, rate, choice["clip"], budget.multiplier(rounds, rate), local)


ENTRY = Entry(
    "dp-fedavg",
    "FedAvg with noise that hides a whole agent",
    build,
    tuple(
        {"rounds": rounds, "rate": rate, "epochs": 3, "batch": 0, "step": 10.0, "clip": clip}
        for rounds, rate, clip in ((10, 1.0, 1.0), (10, 1.0, 0.3), (30, 0.3, 1.0), (30, 1.0, 3.0))
    ),
)
