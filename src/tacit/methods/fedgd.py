"""Federated gradient descent: every agent's gradient at the shared model, with Gaussian noise of its own.

    w+ = w - step^t sum_p ( f'_p(w) + xi_p ),   |x_i a_i^T| <= clip,   xi_p ~ N(0, (multiplier clip / I)^2)

step^t falls in a straight line to zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit.methods.method import Budget, Choice, Entry, Info, State, model_bytes, start
from tacit.methods.promise import Promise, gaussian_releases
from tacit.methods.task import Task
from tacit.problem.sensitivity import Clipped
from tacit.schedule import Cooling, cooled_step
from tacit.types import Norm


@dataclass(frozen=True)
class FedGD:
    """Agents send noisy gradients; the server sums them."""

    rounds: int
    clip: float
    multiplier: float
    step: float

    def promise(self, task: Task) -> Promise:  # noqa: ARG002
        return gaussian_releases(self.multiplier)

    def init(self, task: Task) -> State:
        return start(task)

    def run_round(self, task: Task, state: State) -> tuple[State, Info]:
        t = state.t + 1
        slope = task.gradients(state.w, Clipped(Norm.L2, self.clip))
        slope += noise_std(task, self.multiplier, self.clip) * task.agents_gaussian(t)
        w = state.w - 1 / Cooling(1 / self.step, self.rounds)(t) * slope.sum(0)
        return State(t, w), Info((slope,), model_bytes(task))


def noise_std(task: Task, multiplier: float, clip: float) -> float:
    """Of the noise on one agent's gradient, which a record moves by at most clip / I."""
    return multiplier * task.problem.weight * clip * task.rounding


def build(task: Task, budget: Budget, choice: Choice) -> FedGD:
    """The step with which a score of w gathers noise of std choice["score_noise"] over the run."""
    rounds, clip = int(choice["rounds"]), choice["clip"]
    multiplier = budget.multiplier(rounds)
    std = math.sqrt(task.n_agents) * noise_std(task, multiplier, clip) * task.row_norm
    return FedGD(rounds, clip, multiplier, cooled_step(choice["score_noise"], std, rounds))


ENTRY = Entry(
    "fedgd",
    "gradient descent over agents, Gaussian noise at each",
    build,
    tuple({"rounds": 300, "clip": clip, "score_noise": noise} for clip in (0.35, 0.7) for noise in (1.5, 3.0)),
)
