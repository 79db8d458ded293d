"""DP-FedAvg (McMahan et al. 2018): FedAvg that hides whether an agent took part at all.

    w+ = w + (sum_{p in S} shrink(u_p - w) + xi) / (rate P),   |shrink(.)| <= clip,   xi ~ N(0, (multiplier clip)^2)

u_p is what agent p's epochs of SGD make of w (tacit.methods.local_sgd); each agent is in S with probability `rate`. All
updates weigh the same, so that one agent moves their sum by at most `clip`, whatever the number of its records.
"""

from __future__ import annotations

from dataclasses import dataclass

from tacit.admm.messages import Broadcast
from tacit.methods.local_sgd import LocalSGD, shrink
from tacit.methods.method import Answers, Budget, Choice, Entry, KeepsNothing, Own, StartsAtZero
from tacit.methods.promise import Promise, Trusted, Unit, gaussian_releases
from tacit.methods.sampling import poisson
from tacit.methods.task import Facts, Task
from tacit.problem.sensitivity import ROOM
from tacit.rounds import State


@dataclass(frozen=True)
class DPFedAvg(StartsAtZero, KeepsNothing):
    """The server draws who takes part, clips, sums and adds the noise; it tells nobody who took part."""

    rounds: int
    rate: float
    clip: float
    multiplier: float
    local: LocalSGD

    def promise(self, facts: Facts) -> Promise:  # noqa: ARG002
        return gaussian_releases(self.multiplier, unit=Unit.CLIENT, rate=self.rate, trusted=Trusted.SERVER)

    def ask(self, facts: Facts, state: State) -> Broadcast:
        t, n = state.t + 1, facts.n_agents
        return Broadcast(t, state.w, to=poisson(facts, n, t, n, self.rate))

    def share(self, facts: Facts) -> float:  # noqa: ARG002
        return self.rate  # the share expected: how many agents came is private

    def answer(self, agents: Task, own: Own, msg: Broadcast) -> tuple[Own, Answers]:
        return own, {"update": self.local.models(agents, msg) - msg.w}

    def conclude(self, facts: Facts, state: State, msg: Broadcast, answers: Answers) -> State:
        updates = shrink(answers["update"], self.clip * ROOM)
        noise = self.multiplier * self.clip * facts.gaussian(facts.n_agents, msg.t)
        return state.next(state.w + (updates.sum(0) + noise) / (self.rate * facts.n_agents))


def build(facts: Facts, budget: Budget, choice: Choice) -> DPFedAvg:  # noqa: ARG001
    """The method with the noise with which the rounds spend the budget."""
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
