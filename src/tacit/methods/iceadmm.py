"""ICEADMM of APPFL (after Zhou & Li 2021), with its noise in the gradient; its dual pi_p has the opposite sign:

    z_p  -= (rho (z_p - w) + f'_p(u) + xi_p + pi_p) / (rho + zeta)      local_steps times, u = w first (or z_p),
    pi_p += rho (z_p - w)                                               then the last z_p
    w     = 1/P sum_p (z_p + pi_p / rho)

|x_i a_i^T| <= clip and xi_p ~ N(0, (multiplier clip / I)^2), fresh in every local step, each of which is a release.
z_p and pi_p both travel, so both may hold the records only through noisy gradients: with zeta = 0,
pi_p = -(f'_p(u) + xi_p). (APPFL adds its noise to z_p alone; the pi_p it sends is then minus the exact clipped
gradient, and there is no privacy.) With zeta = 0 and one local step this is iiadmm with pi_p = -dual_p, at twice the
messages of iiadmm: what tacit.methods.iiadmm says of gradient descent holds here too.
"""

from __future__ import annotations

from dataclasses import dataclass

from tacit.admm.messages import Broadcast
from tacit.admm.rule import Point
from tacit.methods.method import Answers, AsksEveryone, Budget, Choice, Entry, Own, StartsAtZero
from tacit.methods.noisy_gradients import cooled_penalty, noise_std, noisy_gradients
from tacit.methods.promise import Promise, gaussian_releases
from tacit.methods.task import Facts, Task
from tacit.rounds import State
from tacit.schedule import Schedule


@dataclass(frozen=True)
class ICEADMM(StartsAtZero, AsksEveryone):
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
            z = z - (rho * (z - w) + slope + pi) / (rho + self.zeta)
            pi = pi + rho * (z - w)
            point = z
        after = {"z": z, "pi": pi}
        return after, after

    def conclude(self, facts: Facts, state: State, msg: Broadcast, answers: Answers) -> State:  # noqa: ARG002
        return state.next((answers["z"] + answers["pi"] / self.rho(msg.t)).mean(0))


def build(facts: Facts, budget: Budget, choice: Choice) -> ICEADMM:
    """The method with a penalty that suits its noise; choice["damping"] is zeta in units of the first rho."""
    rounds, clip, local_steps = int(choice["rounds"]), choice["clip"], int(choice["local_steps"])
    multiplier = budget.multiplier(rounds * local_steps)
    rho = cooled_penalty(facts, choice["score_noise"], noise_std(facts, multiplier, clip), rounds)
    return ICEADMM(rounds, clip, multiplier, rho, choice["damping"] * rho(1), local_steps)


ENTRY = Entry(
    "iceadmm",
    "APPFL's ICEADMM: inexact ADMM at w, agents send model and dual, noise in the gradient",
    build,
    tuple(
        {"rounds": 300, "clip": 0.35, "score_noise": noise, "damping": damping, "local_steps": 1}
        for damping in (0.0, 1.0)
        for noise in (1.5, 3.0)
    ),
)
