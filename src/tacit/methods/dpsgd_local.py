"""DP-SGD at every agent, then an average (the local form of Naseri et al. 2020).

    u_{e+1} = u_e - step^t ( (sum_{i in lot} x_i a_i^T + xi_e) / (rate I_p) + beta r'(u_e) ),   u_0 = w
    |x_i a_i^T| <= clip,   xi_e ~ N(0, (multiplier clip)^2),   a fresh Poisson lot of the agent's records for each step
    w+ = sum_p (I_p / I) u_p after `local_steps` of them

Each noisy sum is accounted as if it were released: `local_steps` releases a round. With one step on all records this
is tacit.methods.fedgd.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.admm.messages import Broadcast
from tacit.methods.local_sgd import weighted_mean
from tacit.methods.method import Answers, AsksEveryone, Budget, Choice, Entry, KeepsNothing, Own, StartsAtZero
from tacit.methods.noisy_gradients import noise_std
from tacit.methods.promise import Promise, gaussian_releases
from tacit.methods.sampling import lot_sums
from tacit.methods.task import Facts, Task
from tacit.problem.sensitivity import Clipped
from tacit.rounds import State
from tacit.schedule import Cooling, cooled_step
from tacit.types import Array, Norm


@dataclass(frozen=True)
class LocalDPSGD(StartsAtZero, AsksEveryone, KeepsNothing):
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
        step = 1 / Cooling(1 / self.step, self.rounds)(msg.t)
        u = np.broadcast_to(msg.w, agents.zeros.shape)
        for e in range(self.local_steps):
            u = u - step * self.slope(agents, u, msg.t, e)
        return own, {"model": u}

    def slope(self, agents: Task, u: Array, t: int, e: int) -> Array:
        """The noisy gradient of every agent's mean loss at its own u_e: (P, J, K)."""
        lots, problem = lot_sums(agents, u, Clipped(Norm.L2, self.clip), t, self.rate, e), agents.problem
        noise = self.multiplier * self.clip * agents.rounding * agents.agents_gaussian(t, e)
        return (lots + noise) / (self.rate * agents.own_sizes) + problem.beta * problem.regularizer.gradient(u)

    def conclude(self, facts: Facts, state: State, msg: Broadcast, answers: Answers) -> State:
        return state.next(weighted_mean(facts, answers["model"], msg.to))


def build(facts: Facts, budget: Budget, choice: Choice) -> LocalDPSGD:
    """The method with the step with which a score of w gathers noise of std choice["score_noise"] over the run."""
    rounds, steps, rate, clip = int(choice["rounds"]), int(choice["local_steps"]), choice["rate"], choice["clip"]
    multiplier = budget.multiplier(rounds * steps, rate)
    std = math.sqrt(facts.n_agents * steps) * noise_std(facts, multiplier, clip) / rate * facts.row_norm
    first = cooled_step(choice["score_noise"], std, rounds)
    return LocalDPSGD(rounds, steps, rate, clip, multiplier, first)


ENTRY = Entry(
    "dpsgd-local",
    "DP-SGD at each agent, models averaged",
    build,
    (
        {"rounds": 100, "local_steps": 3, "rate": 1.0, "clip": 0.35, "score_noise": 1.5},
        {"rounds": 100, "local_steps": 3, "rate": 1.0, "clip": 0.7, "score_noise": 1.5},
        {"rounds": 30, "local_steps": 10, "rate": 1.0, "clip": 0.35, "score_noise": 1.5},
        {"rounds": 100, "local_steps": 5, "rate": 0.1, "clip": 0.35, "score_noise": 1.5},
    ),
)
