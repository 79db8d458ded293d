"""FedAvg and its family: agents train by themselves between two messages, and the server averages what comes back.

    F_p(u) = 1/I_p sum_{i <= I_p} l(u; x_pi, y_pi) + beta r(u),   sum_p (I_p / I) F_p = sum_p f_p, the objective (1)

A step of an agent, on a batch of its records, goes from u_e to

    argmin_u <F'(u_e), u> + mu/2 |u - w|^2 + 1/(2 step) |u - u_e|^2

the proximal term of (5) with mu for rho and w the model that was broadcast: stable for every mu. With mu = 0 it is a
step of gradient descent. What the steps make of w is u_p ~ argmin_u F_p(u) + mu/2 |u - w|^2.

fedprox (Li et al. 2018), and fedavg (McMahan et al. 2017), which is fedprox with mu = 0:

    w+ = sum_{p in S} (I_p / sum_S I_p) u_p,   S a fixed fraction of the agents, drawn without replacement

With one epoch of one batch at every agent, fedavg takes a gradient step on (1): w+ = w - step sum_p f'_p(w).

dp-fedavg (McMahan et al. 2018) hides whether an agent took part at all:

    w+ = w + (sum_{p in S} shrink(u_p - w) + xi) / (rate P),   |shrink(.)| <= clip,   xi ~ N(0, (multiplier clip)^2)

Each agent is in S with probability `rate`. All updates weigh the same, so that one agent moves their sum by at most
`clip`, whatever the number of its records.

nbafl (Wei et al. 2020), as published, is fedprox whose models get noise on the way up, and again on the way down:

    u_p <- u_p / max(1, |u_p| / C),   w+ = sum_p (I_p / I) (u_p + N(0, sigma_U^2)) + N(0, sigma_D^2)
    sigma_U = c L Delta_U / epsilon,   Delta_U = 2 C / m,   m = min_p I_p,   c = sqrt(2 ln(1.25 / delta))
    sigma_D = 2 c C sqrt(T^2 - L^2 P) / (m P epsilon)   if T > L sqrt(P), else 0

T is the number of rounds, and L of how many of them the uploads are seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.admm.messages import Broadcast
from tacit.admm.updates import prox_center
from tacit.methods.method import (
    SILENT,
    Answers,
    Budget,
    Choice,
    Entry,
    KeepsNothing,
    Own,
    StartsInW,
    Stateless,
    grid,
)
from tacit.methods.promise import Promise, Trusted, Unit, gaussian_releases, no_privacy
from tacit.methods.task import Facts, Task, poisson, record_sum
from tacit.problem.sensitivity import ROOM, Observed
from tacit.rounds import State
from tacit.types import Array, Norm

WHOLE = Observed(Norm.L2)  # no record is shrunk
UNPROVED = (
    "noise as published: it takes a clipped model to move by at most 2 C / m when one record changes, "
    "which clipping does not give."
)


@dataclass(frozen=True)
class LocalSGD:
    """`epochs` passes over an agent's records, in random order, `batch` at a time; 0 is all of them at once."""

    epochs: int
    batch: int
    step: float
    mu: float = 0.0

    @classmethod
    def of(cls, choice: Choice) -> LocalSGD:
        return cls(int(choice["epochs"]), int(choice["batch"]), choice["step"], choice.get("mu", 0.0))

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
        return np.asarray(prox_center(w, u, 0.0, slope, self.mu, self.step))


def weighted_mean(facts: Facts, models: Array, to: Array | None) -> Array:
    """sum_p I_p u_p / sum_p I_p over the agents that were asked, None for all."""
    weight = np.array(facts.sizes, dtype=np.float64)[slice(None) if to is None else to, None, None]
    return np.asarray((weight * models).sum(0) / weight.sum())


def shrink(models: Array, clip: float) -> Array:
    """u / max(1, |u| / clip), each of a stack; 0 for one that is not finite, which would pass any clip."""
    models = np.where(np.isfinite(models).all(axis=(1, 2), keepdims=True), models, 0.0)
    size = np.linalg.norm(models, axis=(1, 2), keepdims=True)
    return np.asarray(models / np.maximum(1, size / clip))


@dataclass(frozen=True)
class FedProx(StartsInW, KeepsNothing):
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


def build_fedprox(facts: Facts, budget: Budget, choice: Choice) -> FedProx:  # noqa: ARG001
    """The method as chosen; it has no noise that a budget could set."""
    return FedProx(int(choice["rounds"]), choice["fraction"], LocalSGD.of(choice))


@dataclass(frozen=True)
class DPFedAvg(StartsInW, KeepsNothing):
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


def build_dp_fedavg(facts: Facts, budget: Budget, choice: Choice) -> DPFedAvg:  # noqa: ARG001
    """The method with the noise with which the rounds spend the budget."""
    rounds, rate = int(choice["rounds"]), choice["rate"]
    return DPFedAvg(rounds, rate, choice["clip"], budget.multiplier(rounds, rate), LocalSGD.of(choice))


@dataclass(frozen=True)
class NbAFL(Stateless):
    """Agents send clipped, noisy models; `epsilon` and `dp_delta` serve the published formulas alone."""

    rounds: int
    exposures: int
    clip: float
    epsilon: float
    dp_delta: float
    local: LocalSGD

    def promise(self, facts: Facts) -> Promise:  # noqa: ARG002
        noisy = not math.isinf(self.epsilon)
        return Promise(Unit.REPLACED, Trusted.NOBODY, caveats=(UNPROVED,)) if noisy else no_privacy()

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
        return math.sqrt(2 * math.log(1.25 / self.dp_delta)) * (2 * self.clip / min(facts.sizes)) / self.epsilon


def build_nbafl(facts: Facts, budget: Budget, choice: Choice) -> NbAFL:  # noqa: ARG001
    """The method as chosen; every upload counts as seen where choice["exposures"] is the number of rounds."""
    rounds, exposures = int(choice["rounds"]), int(choice["exposures"])
    return NbAFL(rounds, exposures, choice["clip"], budget.epsilon, budget.dp_delta, LocalSGD.of(choice))


LOCAL = {
    "epochs": "passes that an agent makes over its records per round",
    "batch": "records per local step; 0: all records of the agent",
    "step": "length of a local gradient step",
}
PROXIMAL = {"mu": "weight of the proximal term, which holds local models near the shared model; 0: no such term"}
DRAWN = {"fraction": "share of the agents that a round draws; at least one agent is drawn"}

FEDAVG = Entry("fedavg", "agents train by themselves and are averaged; not private", build_fedprox, grid(
    rounds=30, fraction=1.0, epochs=(1, 3, 1, 3), batch=50, step=(30.0, 30.0, 100.0, 100.0),
), values=SILENT, constants=DRAWN | LOCAL)  # fmt: skip
FEDPROX = Entry("fedprox", "FedAvg with a proximal term at the agents; not private", build_fedprox, grid(
    rounds=30, fraction=1.0, epochs=1, batch=50, step=(30.0, 30.0, 10.0, 10.0), mu=(0.001, 0.01, 0.001, 0.01),
), values=SILENT, constants=DRAWN | LOCAL | PROXIMAL)  # fmt: skip
DP_FEDAVG = Entry("dp-fedavg", "FedAvg with noise that hides a whole agent", build_dp_fedavg, grid(
    rounds=(10, 10, 30, 30), rate=(1.0, 1.0, 0.3, 1.0), epochs=3, batch=0, step=10.0, clip=(1.0, 0.3, 1.0, 3.0),
), constants={"rate": "probability that an agent takes part in a round", **LOCAL})  # fmt: skip
NBAFL = Entry("nbafl", "FedProx with noise on clipped models, as published; no guarantee", build_nbafl, grid(
    rounds=(10, 10, 5, 5), exposures=(10, 10, 5, 5), epochs=1, batch=50, step=5.0, mu=0.01,
    clip=(10.0, 3.0, 10.0, 3.0),
), constants={
    "exposures": "number of rounds whose uploads count as seen, in the published noise", **LOCAL, **PROXIMAL,
})  # fmt: skip
