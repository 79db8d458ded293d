"""Federated gradient descent: every agent's gradient at the shared model, with Gaussian noise of its own.

    w+ = w - step^t sum_p ( f'_p(w) + xi_p ),   |x_i a_i^T| <= clip,   xi_p ~ N(0, (multiplier clip / I)^2)

step^t falls in a straight line to zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit.admm.messages import Broadcast
from tacit.methods.method import Answers, Budget, Choice, Entry, Own, Stateless, grid
from tacit.methods.promise import Promise, gaussian_releases
from tacit.methods.task import Facts, Task, noise_std, noisy_gradients
from tacit.rounds import State
from tacit.schedule import Cooling, cooled_step


@dataclass(frozen=True)
class FedGD(Stateless):
    """Agents send noisy gradients; the server sums them."""

    rounds: int
    clip: float
    multiplier: float
    step: float

    def promise(self, facts: Facts) -> Promise:  # noqa: ARG002
        return gaussian_releases(self.multiplier)

    def answer(self, agents: Task, own: Own, msg: Broadcast) -> tuple[Own, Answers]:
        std = noise_std(agents, self.multiplier, self.clip)
        return own, {"gradient": noisy_gradients(agents, msg.w, self.clip, std, msg.t)}

    def conclude(self, facts: Facts, state: State, msg: Broadcast, answers: Answers) -> State:  # noqa: ARG002
        return state.next(state.w - 1 / Cooling(1 / self.step, self.rounds)(msg.t) * answers["gradient"].sum(0))


def build(facts: Facts, budget: Budget, choice: Choice) -> FedGD:
    """The method with the step with which a score of w gathers noise of std choice["score_noise"] over the run."""
    rounds, clip = int(choice["rounds"]), choice["clip"]
    multiplier = budget.multiplier(rounds)
    std = math.sqrt(facts.n_agents) * noise_std(facts, multiplier, clip) * facts.row_norm
    return FedGD(rounds, clip, multiplier, cooled_step(choice["score_noise"], std, rounds))


ENTRY = Entry(
    "fedgd", "gradient descent over agents, Gaussian noise at each", build,
    grid(rounds=300, clip=(0.35, 0.35, 0.7, 0.7), score_noise=(1.5, 3.0, 1.5, 3.0)),
)  # fmt: skip
