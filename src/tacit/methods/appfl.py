"""IIADMM (Ryu et al. 2022) and ICEADMM (after Zhou & Li 2021) of APPFL, with their noise in the gradient.

In both |x_i a_i^T| <= clip and xi_p ~ N(0, (multiplier clip / I)^2), fresh in every local step, each of which is a
release. There are local_steps a round, the first with u = w (or z_p), the others with u the last z_p.

iiadmm:

    z_p    <- w + (dual_p - f'_p(u) - xi_p) / rho
    dual_p += rho (w - z_p)                             at the agent, and from the same z_p at the server
    w       = 1/P sum_p (z_p - dual_p / rho)

Both sides take the dual from the z_p that was sent, so they agree to the last bit and only z_p travels. (APPFL adds
noise to z_p after its dual has seen the clean one: the two duals drift apart, and the agent's holds its last gradient.)
With one local step at w, dual_p = f'_p(w) + xi_p =: g_p, and w does gradient descent with extrapolation,
w+ = w - sum_p (2 g_p^t - g_p^{t-1}) / (P rho). The server sees models where fedgd's server sees gradients, but it can
compute one from the other: noise, release and price are those of fedgd.

iceadmm, whose dual pi_p has the opposite sign:

    z_p  -= (rho (z_p - w) + f'_p(u) + xi_p + pi_p) / (rho + zeta)
    pi_p += rho (z_p - w)                               in every local step
    w     = 1/P sum_p (z_p + pi_p / rho)

z_p and pi_p both travel, so both may hold the records only through noisy gradients: with zeta = 0,
pi_p = -(f'_p(u) + xi_p). (APPFL adds its noise to z_p alone; the pi_p it sends is then minus the exact clipped
gradient, and there is no privacy.) With zeta = 0 and one local step this is iiadmm with pi_p = -dual_p, at twice the
messages of iiadmm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.admm.messages import Broadcast
from tacit.admm.rule import Point
from tacit.admm.updates import ascent, consensus, trust_center
from tacit.methods.method import Answers, AsksEveryone, Budget, Choice, Entry, KeepsDual, Own, StartsInW, grid
from tacit.methods.promise import Promise, gaussian_releases
from tacit.methods.task import Facts, Task, cooled_penalty, noise_std, noisy_gradients
from tacit.rounds import State
from tacit.schedule import Schedule


@dataclass(frozen=True)
class IIADMM(KeepsDual, AsksEveryone):
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


@dataclass(frozen=True)
class ICEADMM(StartsInW, AsksEveryone):
    """z_p and pi_p travel; the server keeps nothing."""

    rounds: int
    clip: float
    multiplier: float
    rho: Schedule
    zeta: float = 0.0
    local_steps: int = 1
    at: Point = Point.GLOBAL

    def promise(self, facts: Facts) -> Promise:  # noqa: ARG002
        return gaussian_releases(self.multiplier, count=self.local_steps)

    def carried(self, agents: Task) -> Own:
        return {"z": agents.zeros, "pi": agents.zeros}

    def answer(self, agents: Task, own: Own, msg: Broadcast) -> tuple[Own, Answers]:
        w, rho, std = msg.w, self.rho(msg.t), noise_std(agents, self.multiplier, self.clip)
        z, pi = own["z"], own["pi"]
        point = w if self.at is Point.GLOBAL else z
        for step in range(self.local_steps):
            slope = noisy_gradients(agents, point, self.clip, std, msg.t, step)
            point = z = z - (rho * (z - w) + slope + pi) / (rho + self.zeta)
            pi = pi + rho * (z - w)
        after = {"z": z, "pi": pi}
        return after, after

    def conclude(self, facts: Facts, state: State, msg: Broadcast, answers: Answers) -> State:  # noqa: ARG002
        return state.next((answers["z"] + answers["pi"] / self.rho(msg.t)).mean(0))


def build_iiadmm(facts: Facts, budget: Budget, choice: Choice) -> IIADMM:
    """The method with a penalty that suits its noise; of several local steps, z_p holds the noise of the last alone."""
    rounds, clip, local_steps = int(choice["rounds"]), choice["clip"], int(choice["local_steps"])
    multiplier = budget.multiplier(rounds * local_steps)
    rho = cooled_penalty(facts, choice["score_noise"], noise_std(facts, multiplier, clip), rounds)
    return IIADMM(rounds, clip, multiplier, rho, local_steps)


def build_iceadmm(facts: Facts, budget: Budget, choice: Choice) -> ICEADMM:
    """The method with the constants of iiadmm; choice["damping"] is zeta in units of the first rho."""
    of = build_iiadmm(facts, budget, choice)
    return ICEADMM(of.rounds, of.clip, of.multiplier, of.rho, choice["damping"] * of.rho(1), of.local_steps)


LOCAL_STEPS = {"local_steps": "noisy local steps per round, each of which is a release"}

IIADMM_ENTRY = Entry(
    "iiadmm", "APPFL's IIADMM: inexact ADMM at w, both sides keep the dual, noise in the gradient", build_iiadmm,
    grid(rounds=100, clip=(0.7, 0.7, 0.35, 0.35), score_noise=(1.0, 0.5, 1.0, 2.0), local_steps=1),
    constants=LOCAL_STEPS,
)  # fmt: skip
ICEADMM_ENTRY = Entry(
    "iceadmm", "APPFL's ICEADMM: inexact ADMM at w, agents send model and dual, noise in the gradient", build_iceadmm,
    grid(rounds=100, clip=(0.7, 0.35, 0.7, 0.35), score_noise=1.0, damping=(0.0, 0.0, 1.0, 1.0), local_steps=1),
    constants={"damping": "extra stiffness zeta of a local step, in units of the first rho", **LOCAL_STEPS},
)  # fmt: skip
