"""ICEADMM of APPFL (after Zhou & Li 2021), with its noise in the gradient; its dual pi_p has the opposite sign:

    z_p  -= (rho (z_p - w) + f'_p(u) + xi_p + pi_p) / (rho + zeta)      local_steps times, u = w first (or z_p),
    pi_p += rho (z_p - w)                                               then the last z_p
    w     = 1/P sum_p (z_p + pi_p / rho)

|x_i a_i^T| <= clip and xi_p ~ N(0, (multiplier clip / I)^2), fresh in every local step, each of which is a release.
z_p and pi_p both travel, so both may hold the records only through noisy gradients: with zeta = 0,
pi_p = -(f'_p(u) + xi_p). (APPFL adds its noise to z_p alone; the pi_p it sends is then minus the exact clipped
gradient, and there is no privacy.) With zeta = 0 and one local step this is IIADMM with pi_p = -dual_p, at twice its
messages; beside fedgd the same holds as there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit.admm.rule import Point
from tacit.methods.fedgd import noise_std
from tacit.methods.inexact import cooled_penalty, noisy_gradients
from tacit.methods.method import Budget, Choice, Entry, Info, State, model_bytes, start
from tacit.methods.promise import Promise, gaussian_releases
from tacit.methods.task import Task
from tacit.schedule import Schedule


@dataclass(frozen=True)
class ICEADMM:
    """z_p and pi_p travel; the server keeps nothing."""

    rounds: int
    clip: float
    multiplier: float
    rho: Schedule
    zeta: float = 0.0
    local_steps: int = 1
    at: Point = Point.GLOBAL

    def promise(self, task: Task) -> Promise:  # noqa: ARG002
        return gaussian_releases(self.multiplier, count=self.local_steps)

    def init(self, task: Task) -> State:
        return start(task, z=task.zeros, pi=task.zeros)

    def run_round(self, task: Task, state: State) -> tuple[State, Info]:
        t, w, rho = state.t + 1, state.w, self.rho(state.t + 1)
        z, pi, std = state.own["z"], state.own["pi"], noise_std(task, self.multiplier, self.clip)
        point = w if self.at is Point.GLOBAL else z
        for step in range(self.local_steps):
            slope = noisy_gradients(task, point, self.clip, std, t, step)
            z = z - (rho * (z - w) + slope + pi) / (rho + self.zeta)
            pi = pi + rho * (z - w)
            point = z
        return State(t, (z + pi / rho).mean(0), {"z": z, "pi": pi}), Info((z, pi), model_bytes(task, models=2))


def build(task: Task, budget: Budget, choice: Choice) -> ICEADMM:
    """choice["damping"] is zeta in units of the first rho."""
    rounds, clip, local_steps = int(choice["rounds"]), choice["clip"], int(choice["local_steps"])
    multiplier = budget.multiplier(rounds * local_steps)
    std = math.sqrt(task.n_agents) * noise_std(task, multiplier, clip)
    rho = cooled_penalty(task, choice["score_noise"], std, rounds)
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
