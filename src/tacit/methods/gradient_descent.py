"""Gradient descent with Gaussian noise: at every agent, by a curator, or at every agent in several steps.

In all of them |x_i a_i^T| <= clip, step^t falls in a straight line to zero, and each noise is drawn afresh.

fedgd: every agent answers with the gradient of its records at the shared model, with noise of its own. The server adds
the regulariser's part.

    w+ = w - step^t ( sum_p ( f'_p(w) + xi_p ) + beta r'(w) ),   xi_p ~ N(0, (multiplier clip / I)^2)

secure-sum: fedgd behind a secure sum. Agents put their gradients at w into the sum of tacit.methods.behind_sum; one
record moves one of them by clip / I, so that the noise of the total is that of one
release, P / (P - colluding) times in variance. fedgd has P of them there, because each is seen.

    w+ = w - step^t ( total + beta r'(w) )

Inexact ADMM linearised at w takes these steps too, because its duals cancel in the mean (tacit.admm.local_models).

dpsgd, DP-SGD (Abadi et al. 2016): a curator with all records takes noisy steps on Poisson lots of them.

    w+ = w - step^t ( (sum_{i in lot} x_i a_i^T + xi) / (rate I) + beta r'(w) )
    xi ~ N(0, (multiplier clip)^2),   each record in the lot with probability `rate`

The sum is divided by the expected size of a lot: the size of the lot that was drawn is private.

dpsgd-local (the local form of Naseri et al. 2020): every agent takes such steps, and the server averages the models.

    u_{e+1} = u_e - step^t ( (sum_{i in lot} x_i a_i^T + xi_e) / (rate I_p) + beta r'(u_e) ),   u_0 = w
    w+ = sum_p (I_p / I) u_p after `local_steps` of them, each with a fresh lot of the agent's records

Each noisy sum is accounted as a release: `local_steps` of them a round. With one step on all records this is fedgd.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit.admm.messages import Broadcast
from tacit.methods import behind_sum
from tacit.methods.fedavg import weighted_mean
from tacit.methods.method import Answers, Budget, Choice, Curated, Entry, Own, Stateless, grid, summed
from tacit.methods.promise import Promise, Trusted, gaussian_releases
from tacit.methods.queried import QueryMethod
from tacit.methods.task import Facts, Task, noise_std, poisson, record_sum
from tacit.privacy.summed import InSum
from tacit.problem.sensitivity import Clipped
from tacit.query.gradient import Gradient
from tacit.rounds import State
from tacit.schedule import Cooling, cooled_step
from tacit.types import Array, Norm


@dataclass(frozen=True)
class FedGD(QueryMethod):
    """Agents answer with noisy gradients at w, and the server adds them up; or they put them into a secure sum."""

    rounds: int
    clip: float
    multiplier: float
    step: float
    in_sum: InSum | None = None  # None: there is no secure sum, and each agent has the whole noise
    fades: ClassVar[bool] = True  # gradients are at w, which moves slowly

    def query(self, facts: Facts) -> Gradient:
        problem = facts.problem
        return Gradient(facts.shape, problem.loss, Clipped(Norm.L2, self.clip), problem.weight)

    def conclude(self, facts: Facts, state: State, msg: Broadcast, answers: Answers) -> State:
        slope = self.total(facts, answers).reshape(facts.shape)
        slope = slope + facts.problem.beta * facts.problem.regularizer.gradient(msg.w)
        return state.next(state.w - cooled(self.step, self.rounds, msg.t) * slope)


@dataclass(frozen=True)
class DPSGD(Curated):
    """The curator adds one noise for all records."""

    rounds: int
    rate: float
    clip: float
    multiplier: float
    step: float

    def promise(self, facts: Facts) -> Promise:  # noqa: ARG002
        # the law of a Poisson sample is known for a record that is there or not, and for no other neighbour
        return gaussian_releases(self.multiplier, rate=self.rate, trusted=Trusted.CURATOR)

    def train(self, records: Task, msg: Broadcast) -> Array:
        t, w, problem = msg.t, msg.w, records.problem
        lot = lot_sums(records, w, self.clip, t, self.rate).sum(0)
        noise = noise_std(records, self.multiplier, self.clip) * records.gaussian(records.n_agents, t)
        slope = (problem.weight * lot + noise) / self.rate + problem.beta * problem.regularizer.gradient(w)
        return np.asarray(w - cooled(self.step, self.rounds, t) * slope)


@dataclass(frozen=True)
class LocalDPSGD(Stateless):
    """Agents send models that noisy steps made."""

    rounds: int
    local_steps: int
    rate: float
    clip: float
    multiplier: float
    step: float

    def promise(self, facts: Facts) -> Promise:  # noqa: ARG002
        return gaussian_releases(self.multiplier, count=self.local_steps, rate=self.rate)

    def answer(self, agents: Task, own: Own, msg: Broadcast) -> tuple[Own, Answers]:
        u, step = np.broadcast_to(msg.w, agents.zeros.shape), cooled(self.step, self.rounds, msg.t)
        for e in range(self.local_steps):
            u = u - step * self.slope(agents, u, msg.t, e)
        return own, {"model": u}

    def slope(self, agents: Task, u: Array, t: int, e: int) -> Array:
        """The noisy gradient of every agent's mean loss at its own u_e: (P, J, K)."""
        lots, problem = lot_sums(agents, u, self.clip, t, self.rate, e), agents.problem
        noise = self.multiplier * self.clip * agents.rounding * agents.agents_gaussian(t, e)
        return (lots + noise) / (self.rate * agents.own_sizes) + problem.beta * problem.regularizer.gradient(u)

    def conclude(self, facts: Facts, state: State, msg: Broadcast, answers: Answers) -> State:
        return state.next(weighted_mean(facts, answers["model"], msg.to))


def cooled(first: float, rounds: int, t: int) -> float:
    """step^t, where step^1 = first."""
    return 1 / Cooling(1 / first, rounds)(t)


def lot_sums(agents: Task, points: Array, clip: float, t: int, rate: float, step: int = 0) -> Array:
    """sum_i x_i a_i^T over a lot of every agent's records, at points[p] or at one point for all: (P, J, K)."""
    bound = Clipped(Norm.L2, clip)
    if rate == 1:
        return agents.sums(agents.shards, agents.problem, points, bound)
    sums = []
    for p, shard, u in zip(agents.index, agents.shards, np.broadcast_to(points, agents.zeros.shape), strict=True):
        lot = poisson(agents, p, t, len(shard), rate, step)
        sums.append(record_sum(shard, agents.problem, u, bound, lot))
    return np.stack(sums)


def build_fedgd(facts: Facts, budget: Budget, choice: Choice) -> FedGD:
    """The method at the budget; the noise of every agent enters a round, or that of one release where they share it."""
    own = _calibrated(facts, budget, choice, behind_sum.noises(facts, budget.in_sum))
    made = FedGD(int(choice["rounds"]), choice["clip"], *own, budget.in_sum)
    made.behind(facts)  # which refuses what no word holds, before a round begins
    return made


def build_dpsgd(facts: Facts, budget: Budget, choice: Choice) -> DPSGD:
    """The method at the budget; one noise enters a round."""
    return DPSGD(int(choice["rounds"]), choice["rate"], choice["clip"], *_calibrated(facts, budget, choice, 1))


def build_dpsgd_local(facts: Facts, budget: Budget, choice: Choice) -> LocalDPSGD:
    """The method at the budget; the noise of every local step of every agent enters a round."""
    rounds, steps = int(choice["rounds"]), int(choice["local_steps"])
    own = _calibrated(facts, budget, choice, facts.n_agents * steps)
    return LocalDPSGD(rounds, steps, choice["rate"], choice["clip"], *own)


def _calibrated(facts: Facts, budget: Budget, choice: Choice, noises: float) -> tuple[float, float]:
    """The multiplier that spends the budget, and the first step.

    With this step a score of w gathers noise of std choice["score_noise"] over a run with `noises` noises a round.
    """
    rounds, steps, rate = int(choice["rounds"]), int(choice.get("local_steps", 1)), choice.get("rate", 1.0)
    multiplier = budget.multiplier(behind_sum.counted(rounds * steps, budget.in_sum), rate)
    std = math.sqrt(noises) * noise_std(facts, multiplier, choice["clip"]) / rate * facts.row_norm
    return multiplier, cooled_step(choice["score_noise"], std, rounds, facts.largest_step)


FEDGD = Entry("fedgd", "gradient descent over agents, Gaussian noise at each", build_fedgd, grid(
    rounds=100, clip=(0.7, 0.7, 0.35, 0.35), score_noise=(1.0, 0.5, 1.0, 2.0),
), sums=True, queries=True)  # fmt: skip
SECURE_SUM = Entry(
    "secure-sum", "fedgd, or inexact ADMM at w, behind a secure sum: agents share Gaussian noise",
    summed(build_fedgd), FEDGD.grid, values={"privacy.trust": "sum"}, sums=True, queries=True,
)  # fmt: skip
CENTRAL = Entry("dpsgd", "DP-SGD by a curator who holds all records", build_dpsgd, grid(
    rounds=(100, 100, 100, 600), rate=(1.0, 1.0, 1.0, 0.05), clip=(0.7, 0.7, 0.35, 0.7),
    score_noise=(1.0, 0.5, 1.0, 1.0),
), constants={"rate": "probability that a record is in the lot of a round"})  # fmt: skip
LOCAL = Entry("dpsgd-local", "DP-SGD at each agent, models averaged", build_dpsgd_local, grid(
    rounds=(50, 50, 30, 50), local_steps=(2, 2, 3, 2), rate=(1.0, 1.0, 1.0, 0.1), clip=(0.7, 0.35, 0.35, 0.7),
    score_noise=(1.0, 1.0, 1.0, 0.5),
), constants={
    "local_steps": "noisy steps of an agent per round, each of which is a release",
    "rate": "probability that a record of the agent is in the lot of a local step",
})  # fmt: skip
