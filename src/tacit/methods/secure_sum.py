"""Inexact ADMM behind a secure sum: noise spread over the agents, for the server sees totals alone.

    z_p  = w + (dual_p - f'_p(w) - xi_p) / rho,    xi_p ~ N(0, (multiplier clip / I)^2 / (P - colluding))
    seen = sum_p (z_p - dual_p / rho),             w+ = seen / P,             dual_p += rho (w+ - z_p)

What is seen. z_p - dual_p / rho = w - (f'_p(w) + xi_p) / rho: the dual, which stays at the agent, cancels. So

    seen^t = P w^t - Q^t / rho^t,    Q^t = sum_p (f'_p(w^t) + xi_p^t),    w^t = seen^{t-1} / P,    w^1 = 0

is a function of Q^t and of earlier sums. Given those, w^t is fixed, one record moves Q^t by at most clip / I, and the
noise of Q^t has variance P / (P - colluding) (multiplier clip / I)^2; the share of P - colluding agents alone has
(multiplier clip / I)^2. So a round is one Gaussian release with `multiplier`, also to a server that knows the noise of
`colluding` agents, the record's own not among them. Any agent receives w and knows its own noise: colluding = 1 covers
what each of them, alone, learns of the others.

Linearised at z_p this fails: the hidden z_p depends on the record through noise of 1/P of the variance, f'_p(z_p) then
moves through z_p as well as through the record's own gradient, and clip / I no longer bounds it.

fedgd does the same steps with noise at each agent: every f'_p + xi_p is seen there, each needs the whole variance, and
their sum has P times the one here. Sums of floating-point numbers are for simulation: a deployed secure sum adds
integers modulo a number, of noise drawn on a grid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit.admm.rule import Point
from tacit.admm.updates import ascent, trust_center
from tacit.errors import IncompatibleError, SpecError
from tacit.methods.fedgd import noise_std
from tacit.methods.inexact import cooled_penalty, noisy_gradients
from tacit.methods.method import Budget, Choice, Entry, Info, State, model_bytes, start
from tacit.methods.promise import Promise, Trusted, gaussian_releases
from tacit.methods.task import Task
from tacit.schedule import Schedule


@dataclass(frozen=True)
class SecureSum:
    """`colluding` agents may tell the server their noise."""

    rounds: int
    clip: float
    multiplier: float
    rho: Schedule
    colluding: int
    at: Point = Point.GLOBAL

    def __post_init__(self) -> None:
        if self.at is not Point.GLOBAL:
            raise IncompatibleError(
                "a secure sum hides z_p, and a gradient taken at a hidden z_p depends on a record through z_p as well, "
                "so that one release of sensitivity clip a round fails: linearise at w."
            )

    def promise(self, task: Task) -> Promise:  # noqa: ARG002
        return gaussian_releases(self.multiplier, trusted=Trusted.SUM)

    def init(self, task: Task) -> State:
        return start(task, dual=task.zeros)

    def run_round(self, task: Task, state: State) -> tuple[State, Info]:
        t, rho, dual = state.t + 1, self.rho(state.t + 1), state.own["dual"]
        std = share_std(task, self.multiplier, self.clip, self.colluding)
        z = trust_center(state.w, dual, noisy_gradients(task, state.w, self.clip, std, t), rho)
        seen = (z - dual / rho).sum(0)
        w = seen / task.n_agents
        return State(t, w, {"dual": ascent(dual, w, z, rho)}), Info((seen,), model_bytes(task))


def share_std(task: Task, multiplier: float, clip: float, colluding: int) -> float:
    """Of the noise of one agent: those that do not collude have the whole variance together."""
    if not 0 <= colluding < task.n_agents:
        raise SpecError(
            f"{colluding} of {task.n_agents} agents cannot collude: at least one, the record's own, must not. "
            "Choose a number from 0 to P - 1."
        )
    return noise_std(task, multiplier, clip) / math.sqrt(task.n_agents - colluding)


def build(task: Task, budget: Budget, choice: Choice) -> SecureSum:
    rounds, clip = int(choice["rounds"]), choice["clip"]
    colluding = min(int(choice["colluding"]), task.n_agents - 1)
    multiplier = budget.multiplier(rounds)
    std = math.sqrt(task.n_agents) * share_std(task, multiplier, clip, colluding)
    return SecureSum(rounds, clip, multiplier, cooled_penalty(task, choice["score_noise"], std, rounds), colluding)


ENTRY = Entry(
    "secure-sum",
    "inexact ADMM at w behind a secure sum, Gaussian noise spread over the agents",
    build,
    tuple(
        {"rounds": 300, "clip": clip, "score_noise": noise, "colluding": 1}
        for clip in (0.35, 0.7)
        for noise in (1.0, 2.0)
    ),
)
