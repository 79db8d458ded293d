"""IIADMM of APPFL (Ryu et al. 2022), with its noise in the gradient:

    z_p    <- w + (dual_p - f'_p(u) - xi_p) / rho       local_steps times, u = w first (or z_p), then the last z_p
    dual_p += rho (w - z_p)                             at the agent, and from the same z_p at the server
    w       = 1/P sum_p (z_p - dual_p / rho)

|x_i a_i^T| <= clip and xi_p ~ N(0, (multiplier clip / I)^2), fresh in every local step, each of which is a release.
Both sides take the dual from the z_p that was sent, so they agree to the last bit and only z_p travels. (APPFL adds
noise to z_p after its dual has seen the clean one: the two duals drift apart, and the agent's holds its last gradient.)

With one local step at w, dual_p = f'_p(w) + xi_p =: g_p, and w does gradient descent with extrapolation,
w+ = w - sum_p (2 g_p^t - g_p^{t-1}) / (P rho). The server sees models where fedgd's server sees gradients, but it can
compute one from the other: noise, release and price are those of fedgd.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.admm.messages import Broadcast
from tacit.admm.rule import Point
from tacit.admm.updates import ascent, consensus, trust_center
from tacit.methods.method import Answers, AsksEveryone, Budget, Choice, Entry, KeepsModelAndDual, Own
from tacit.methods.noisy_gradients import cooled_penalty, noise_std, noisy_gradients
from tacit.methods.promise import Promise, gaussian_releases
from tacit.methods.task import Facts, Task
from tacit.rounds import State
from tacit.schedule import Schedule


@dataclass(frozen=True)
class IIADMM(KeepsModelAndDual, AsksEveryone):
    """z_p travels; agent p and the server each keep a copy of dual_p."""

    rounds: int
    clip: float
    multiplier: float
    rho: Schedule
    local_steps: int = 1
    at: Point = Point.GLOBAL

    def promise(self, facts: Facts) -> Promise:  # noqa: ARG002
        return gaussian_releases(self.multiplier, count=self.local_steps)

    def answer(self, agents: Task, own: Own, msg: Broadcast) -> tuple[Own, Answers]:
        rho, dual, std = self.rho(msg.t), own["dual"], noise_std(agents, self.multiplier, self.clip)
        z = msg.w if self.at is Point.GLOBAL else own["z"]
        for step in range(self.local_steps):
            z = trust_center(msg.w, dual, noisy_gradients(agents, z, self.clip, std, msg.t, step), rho)
        return {"z": z, "dual": ascent(dual, msg.w, z, rho)}, {"z": z}

    def start(self, facts: Facts) -> State:
        return State.zero(facts.shape, dual=np.zeros((facts.n_agents, *facts.shape)))

    def conclude(self, facts: Facts, state: State, msg: Broadcast, answers: Answers) -> State:  # noqa: ARG002
        rho, z = self.rho(msg.t), answers["z"]
        dual = ascent(state.own["dual"], msg.w, z, rho)
        return state.next(consensus(z.mean(0), dual.mean(0), rho), dual=dual)


def build(facts: Facts, budget: Budget, choice: Choice) -> IIADMM:
    """The method with a penalty that suits its noise; of several local steps, z_p holds the noise of the last alone."""
    rounds, clip, local_steps = int(choice["rounds"]), choice["clip"], int(choice["local_steps"])
    multiplier = budget.multiplier(rounds * local_steps)
    rho = cooled_penalty(facts, choice["score_noise"], noise_std(facts, multiplier, clip), rounds)
    return IIADMM(rounds, clip, multiplier, rho, local_steps)


ENTRY = Entry(
    "iiadmm",
    "APPFL's IIADMM: inexact ADMM at w, both sides keep the dual, noise in the gradient",
    build,
    tuple(
        {"rounds": 300, "clip": clip, "score_noise": noise, "local_steps": 1}
        for clip in (0.35, 0.7)
        for noise in (1.5, 3.0)
    ),
)
