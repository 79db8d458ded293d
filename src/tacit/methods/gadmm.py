"""GADMM, group ADMM on a chain (Elgabli et al. 2020): every second agent moves, then the others, who have heard them.

Iteration k takes two rounds. In the first the heads move, agents 0, 2, ..., and in the second the tails:

    c_p    = ( (g - d_p) z_p + sum_q z_q ) / g          over the d_p neighbours q; g = 2 is the largest d_p
    z_p    = Proj_W( c_p + (dual_p - f'_p(c_p) - xi_p) / rho^k ),   |x_i a_i^T| <= clip
    dual_p += rho^k (c_p - z_p)                          of everybody, when both groups have moved

GADMM minimises f_p(z) - <dual_p, z> + e/2 sum_q |z - z_q|^2, and raises the multiplier of each link by e (z_p - z_q);
dual_p gathers those of p's links. Here f_p is linearised at c_p, as in the paper at w, and a proximal term
s_p / 2 |z - z_p|^2, s_p = rho - e d_p, gives the ends of the chain the stiffness of all others: with e = rho / g the
minimiser is the z_p above. The duals sum to zero.

Where everybody has g neighbours, a disagreement that is left alone shrinks by sigma an iteration, for each singular
value sigma < 1 of the means that one group takes of the other: r^2 - 2 sigma^2 r + sigma^2 = 0. Agents that move at
once (tacit.methods.graph_admm) need about four rounds for that in a long circle, with a release each. Each group moves
to where the other has gone, so that in an iteration all z_p take the steps of both, about
2 / (P rho) sum_p (f'_p + xi_p): rho is twice that of fedgd.

Privacy. As in tacit.methods.graph_admm, c_p and dual_p are functions of what was released. An agent releases in every
second round, so a record is in one release for two rounds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tacit.admm.messages import Broadcast
from tacit.admm.updates import trust_center
from tacit.methods.graph_admm import start_of_all
from tacit.methods.local_models_first import caught_up
from tacit.methods.method import Answers, Budget, Choice, Entry, KeepsDual, Own, grid
from tacit.methods.network import Network, path
from tacit.methods.promise import Promise, Trusted, Unit, no_privacy
from tacit.methods.task import Facts, Task, cooled_penalty, noise_std, noisy_gradients
from tacit.privacy.release import GaussianRelease
from tacit.rounds import State
from tacit.schedule import Scaled, Schedule


@dataclass(frozen=True)
class GADMM(KeepsDual):
    """The agents of a chain send z_p to their neighbours, heads in odd rounds and tails in even ones."""

    rounds: int
    clip: float
    multiplier: float
    rho: Schedule
    chain: Network

    def promise(self, facts: Facts) -> Promise:  # noqa: ARG002
        if not self.multiplier:
            return no_privacy(Trusted.NOBODY)
        of_heads = (GaussianRelease(self.multiplier), iteration(self.rounds))  # tails have no more
        return Promise(Unit.RECORD, Trusted.NOBODY, once=(of_heads,))

    def answer(self, agents: Task, own: Own, msg: Broadcast) -> tuple[Own, Answers]:
        k, rows = iteration(msg.t), agents.asked(msg.to)
        near = replace(msg, t=k, w=self.chain.means(msg.w, agents.index, self.chain.most))
        dual = caught_up(own, near, self.rho) if msg.t % 2 else own["dual"]
        slope = noisy_gradients(agents, near.w, self.clip, noise_std(agents, self.multiplier, self.clip), msg.t)
        center, z = trust_center(near.w, dual, slope, self.rho(k)), own["z"].copy()
        for row in rows:
            z[row] = agents.problem.domain.project(center[row])
        return {"z": z, "dual": dual}, {"z": z[rows]}

    def start(self, facts: Facts) -> State:
        return start_of_all(facts)

    def ask(self, facts: Facts, state: State) -> Broadcast:
        return Broadcast(state.t + 1, state.own["z"], to=np.arange(state.t % 2, facts.n_agents, 2))

    def share(self, facts: Facts) -> float:  # noqa: ARG002
        return 0.5

    def conclude(self, facts: Facts, state: State, msg: Broadcast, answers: Answers) -> State:  # noqa: ARG002
        z = state.own["z"].copy()
        z[msg.to] = answers["z"]
        return state.next(z.mean(0), z=z)


def iteration(t: int) -> int:
    """k, of which round t is a half."""
    return (t + 1) // 2


def build(facts: Facts, budget: Budget, choice: Choice) -> GADMM:
    """The method with a step that suits its noise, of as many releases as there are iterations."""
    rounds, clip = int(choice["rounds"]), choice["clip"]
    multiplier = budget.multiplier(iteration(rounds))
    one = cooled_penalty(facts, choice["score_noise"], noise_std(facts, multiplier, clip), iteration(rounds))
    return GADMM(rounds, clip, multiplier, Scaled(2.0, one), path(facts.n_agents))


ENTRY = Entry(
    "gadmm", "GADMM: ADMM on a chain without a server, every second agent at a time, Gaussian noise at each", build,
    grid(rounds=200, clip=(0.7, 0.7, 0.35, 0.35), score_noise=(1.0, 0.5, 1.0, 2.0)), sets=True,
)  # fmt: skip
