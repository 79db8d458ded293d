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
integers modulo a number, of noise drawn on a grid (tacit.privacy.summed).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit.admm.messages import Broadcast
from tacit.admm.rule import Point
from tacit.admm.updates import trust_center
from tacit.errors import IncompatibleError, SpecError
from tacit.methods.local_models_first import caught_up
from tacit.methods.method import Answers, AsksEveryone, Budget, Choice, Entry, KeepsDual, Own, StartsAtZero, grid
from tacit.methods.promise import Promise, Trusted, gaussian_releases
from tacit.methods.task import Facts, Task, cooled_penalty, noise_std, noisy_gradients
from tacit.privacy.summed import Peers
from tacit.rounds import State
from tacit.schedule import Schedule


@dataclass(frozen=True)
class SecureSum(KeepsDual, StartsAtZero, AsksEveryone):
    """Agents send z_p - dual_p / rho into a secure sum; `colluding` of them may tell the server their noise."""

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

    def promise(self, facts: Facts) -> Promise:  # noqa: ARG002
        return gaussian_releases(self.multiplier, trusted=Trusted.SUM)

    def answer(self, agents: Task, own: Own, msg: Broadcast) -> tuple[Own, Answers]:
        rho, dual = self.rho(msg.t), caught_up(own, msg, self.rho)
        std = share_std(agents, self.multiplier, self.clip, self.colluding)
        z = trust_center(msg.w, dual, noisy_gradients(agents, msg.w, self.clip, std, msg.t), rho)
        return {"z": z, "dual": dual}, {"z_less_dual": z - dual / rho}

    def conclude(self, facts: Facts, state: State, msg: Broadcast, answers: Answers) -> State:  # noqa: ARG002
        return state.next(answers["z_less_dual"] / facts.n_agents)


def share_std(facts: Facts, multiplier: float, clip: float, colluding: int) -> float:
    """The std of one agent's noise."""
    return noise_std(facts, multiplier, clip) * noise_share(facts, colluding)


def noise_share(facts: Facts, colluding: int) -> float:
    """One agent's share of a std: the agents that do not collude have the whole variance together."""
    return 1 / math.sqrt(Peers(facts.n_agents, colluding).honest)


def colluding_of(facts: Facts, choice: Choice) -> int:
    """How many agents may collude with the server, by a choice that can be kept."""
    colluding = int(choice["colluding"])
    if facts.n_agents == 1:  # nobody is there to collude with the server
        colluding = 0
    elif colluding < 1:
        raise SpecError("method.colluding must be 1 or more: every agent knows its own noise, and sees w.")
    noise_share(facts, colluding)  # which refuses too many, and does so before a round begins
    return colluding


def build(facts: Facts, budget: Budget, choice: Choice) -> SecureSum:
    """The method with a penalty that suits the noise of the sum."""
    rounds, clip, colluding = int(choice["rounds"]), choice["clip"], colluding_of(facts, choice)
    multiplier = budget.multiplier(rounds)
    std = share_std(facts, multiplier, clip, colluding)
    return SecureSum(rounds, clip, multiplier, cooled_penalty(facts, choice["score_noise"], std, rounds), colluding)


ENTRY = Entry("secure-sum", "inexact ADMM at w behind a secure sum, Gaussian noise spread over the agents", build, grid(
    rounds=100, clip=(0.7, 0.7, 0.35, 0.35), score_noise=(1.0, 0.5, 1.0, 2.0), colluding=1,
))  # fmt: skip
