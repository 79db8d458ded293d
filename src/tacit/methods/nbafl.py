"""NbAFL (Wei et al. 2020), as published: FedProx whose models are clipped and noised on the way up, and again down.

    u_p ~ argmin_u F_p(u) + mu/2 |u - w|^2   (tacit.methods.local_sgd),   u_p <- u_p / max(1, |u_p| / C)
    w+ = sum_p (I_p / I) (u_p + N(0, sigma_U^2)) + N(0, sigma_D^2)

    sigma_U = c L Delta_U / epsilon,   Delta_U = 2 C / m,   m = min_p I_p,   c = sqrt(2 ln(1.25 / delta))
    sigma_D = 2 c C sqrt(T^2 - L^2 P) / (m P epsilon)   if T > L sqrt(P), else 0

T is the number of rounds, and L of how many of them the uploads are seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit.admm.messages import Broadcast
from tacit.methods.local_sgd import LocalSGD, shrink, weighted_mean
from tacit.methods.method import Answers, AsksEveryone, Budget, Choice, Entry, KeepsNothing, Own, StartsAtZero
from tacit.methods.promise import Promise, Trusted, Unit, no_privacy
from tacit.methods.task import Facts, Task
from tacit.rounds import State

UNPROVED = (
    "noise as published: it takes a clipped model to move by at most 2 C / m when one record changes, "
    "which clipping does not give."
)


@dataclass(frozen=True)
class NbAFL(StartsAtZero, AsksEveryone, KeepsNothing):
    """Agents send clipped, noisy models; `epsilon` and `dp_delta` serve the published formulas alone."""

    rounds: int
    exposures: int
    clip: float
    epsilon: float
    dp_delta: float
    local: LocalSGD

    def promise(self, facts: Facts) -> Promise:  # noqa: ARG002
        if math.isinf(self.epsilon):
            return no_privacy()
        return Promise(Unit.REPLACED, Trusted.NOBODY, caveats=(UNPROVED,))

    def answer(self, agents: Task, own: Own, msg: Broadcast) -> tuple[Own, Answers]:
        models = shrink(self.local.models(agents, msg), self.clip)
        return own, {"model": models + self.uplink_std(agents) * agents.agents_gaussian(msg.t)}

    def conclude(self, facts: Facts, state: State, msg: Broadcast, answers: Answers) -> State:
        noise = self.downlink_std(facts) * facts.gaussian(facts.n_agents, msg.t)
        return state.next(weighted_mean(facts, answers["model"], msg.to) + noise)

    def uplink_std(self, facts: Facts) -> float:
        """sigma_U."""
        return self.exposures * self._unit(facts)

    def downlink_std(self, facts: Facts) -> float:
        """sigma_D."""
        excess = self.rounds**2 - self.exposures**2 * facts.n_agents
        return self._unit(facts) * math.sqrt(max(excess, 0)) / facts.n_agents

    def _unit(self, facts: Facts) -> float:
        """c Delta_U / epsilon; 0 without a budget."""
        if math.isinf(self.epsilon):
            return 0.0
        sensitivity = 2 * self.clip / min(facts.sizes)
        return math.sqrt(2 * math.log(1.25 / self.dp_delta)) * sensitivity / self.epsilon


def build(facts: Facts, budget: Budget, choice: Choice) -> NbAFL:  # noqa: ARG001
    """The method as chosen; every upload counts as seen where choice["exposures"] is the number of rounds."""
    local = LocalSGD(int(choice["epochs"]), int(choice["batch"]), choice["step"], choice["mu"])
    rounds, exposures = int(choice["rounds"]), int(choice["exposures"])
    return NbAFL(rounds, exposures, choice["clip"], budget.epsilon, budget.dp_delta, local)


ENTRY = Entry(
    "nbafl",
    "FedProx with noise on clipped models, as published; no guarantee",
    build,
    tuple(
        {"rounds": rounds, "exposures": rounds, "epochs": 1, "batch": 50, "step": 5.0, "mu": 0.01, "clip": clip}
        for rounds in (10, 5)
        for clip in (10.0, 3.0)
    ),
)
