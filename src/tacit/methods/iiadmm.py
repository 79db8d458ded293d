"""IIADMM of APPFL (Ryu et al. 2022), with its noise in the gradient:

    z_p    <- w + (dual_p - f'_p(u) - xi_p) / rho       local_steps times, u = w first (or z_p), then the last z_p
    dual_p += rho (w - z_p)                             at the agent, and from the same z_p at the server
    w       = 1/P sum_p (z_p - dual_p / rho)

|x_i a_i^T| <= clip and xi_p ~ N(0, (multiplier clip / I)^2), fresh in every local step, each of which is a release.
Both sides take the dual from the z_p that was sent, so they agree to the last bit and only z_p travels. (APPFL adds
noise to z_p after its dual has seen the clean one: the two duals drift apart, and the agent's holds its last gradient.)

With one local step at w, dual_p = f'_p(w) + xi_p =: g_p, and w does gradient descent with extrapolation,
w+ = w - sum_p (2 g_p^t - g_p^{t-1}) / (P rho). Unlike fedgd, the server sees models and not gradients; it can compute
one from the other, and the noise, the release and its price are the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit.admm.rule import Point
from tacit.admm.updates import ascent, consensus, trust_center
from tacit.methods.fedgd import noise_std
from tacit.methods.inexact import cooled_penalty, noisy_gradients
from tacit.methods.method import Budget, Choice, Entry, Info, State, model_bytes, start
from tacit.methods.promise import Promise, gaussian_releases
from tacit.methods.task import Task
from tacit.schedule import Schedule
from tacit.types import Array


@dataclass(frozen=True)
class IIADMM:
    """z_p travels; each side keeps its own copy of dual_p."""

    rounds: int
    clip: float
    multiplier: float
    rho: Schedule
    local_steps: int = 1
    at: Point = Point.GLOBAL

    def promise(self, task: Task) -> Promise:  # noqa: ARG002
        return gaussian_releases(self.multiplier, count=self.local_steps)

    def init(self, task: Task) -> State:
        return start(task, z=task.zeros, dual=task.zeros, server_dual=task.zeros)

    def run_round(self, task: Task, state: State) -> tuple[State, Info]:
        t, rho = state.t + 1, self.rho(state.t + 1)
        sent, dual = self._agents(task, state, t, rho)
        server_dual = ascent(state.own["server_dual"], state.w, sent, rho)
        w = consensus(sent.mean(0), server_dual.mean(0), rho)
        own = {"z": sent, "dual": dual, "server_dual": server_dual}
        return State(t, w, own), Info((sent,), model_bytes(task))

    def _agents(self, task: Task, state: State, t: int, rho: float) -> tuple[Array, Array]:
        """What every agent sends, and its dual."""
        dual, std = state.own["dual"], noise_std(task, self.multiplier, self.clip)
        z = state.w if self.at is Point.GLOBAL else state.own["z"]
        for step in range(self.local_steps):
            z = trust_center(state.w, dual, noisy_gradients(task, z, self.clip, std, t, step), rho)
        return z, ascent(dual, state.w, z, rho)


def build(task: Task, budget: Budget, choice: Choice) -> IIADMM:
    """Of several local steps only the last one's noise stays in z_p."""
    rounds, clip, local_steps = int(choice["rounds"]), choice["clip"], int(choice["local_steps"])
    multiplier = budget.multiplier(rounds * local_steps)
    std = math.sqrt(task.n_agents) * noise_std(task, multiplier, clip)
    rho = cooled_penalty(task, choice["score_noise"], std, rounds)
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
