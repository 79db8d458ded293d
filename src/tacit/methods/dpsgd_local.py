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

from tacit.methods.fedgd import noise_std
from tacit.methods.local import sizes, weighted_mean
from tacit.methods.method import Budget, Choice, Entry, Info, State, model_bytes, start
from tacit.methods.promise import Promise, gaussian_releases
from tacit.methods.sampling import lot_sums
from tacit.methods.task import Task
from tacit.problem.sensitivity import Clipped
from tacit.schedule import Cooling, cooled_step
from tacit.types import Array, Norm


@dataclass(frozen=True)
class LocalDPSGD:
    """Agents send models that noisy steps made."""

    rounds: int
    local_steps: int
    rate: float
    clip: float
    multiplier: float
    step: float

    def promise(self, task: Task) -> Promise:  # noqa: ARG002
        return gaussian_releases(self.multiplier, count=self.local_steps, rate=self.rate)

    def init(self, task: Task) -> State:
        return start(task)

    def run_round(self, task: Task, state: State) -> tuple[State, Info]:
        t = state.t + 1
        step = 1 / Cooling(1 / self.step, self.rounds)(t)
        u = np.broadcast_to(state.w, (task.n_agents, *task.shape))
        for e in range(self.local_steps):
            u = u - step * self.slope(task, u, t, e)
        return State(t, weighted_mean(task, u, np.arange(task.n_agents))), Info((u,), model_bytes(task))

    def slope(self, task: Task, u: Array, t: int, e: int) -> Array:
        """The noisy gradient of every agent's mean loss at its own u_e: (P, J, K)."""
        lots = lot_sums(task, u, Clipped(Norm.L2, self.clip), t, self.rate, e)
        noise = self.multiplier * self.clip * task.rounding * task.agents_gaussian(t, e)
        return (lots + noise) / (self.rate * sizes(task)) + task.problem.beta * task.problem.regularizer.gradient(u)


def build(task: Task, budget: Budget, choice: Choice) -> LocalDPSGD:
    """The step with which a score of w gathers noise of std choice["score_noise"] over the run."""
    rounds, steps, rate, clip = int(choice["rounds"]), int(choice["local_steps"]), choice["rate"], choice["clip"]
    multiplier = budget.multiplier(rounds * steps, rate)
    std = math.sqrt(task.n_agents * steps) * noise_std(task, multiplier, clip) / rate * task.row_norm
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
