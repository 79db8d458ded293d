"""ADMM without a server: agents are linked in a network, and each averages what its neighbours released.

    c_p     = sum_q M_pq z_q                  the mean of z_p and of what p's neighbours sent: tacit.methods.network
    dual_p += rho^{t-1} (c_p - z_p)           (4c), with c_p in the place of w
    z_p     = Proj_W( c_p + (dual_p - f'_p(c_p) - xi_p) / rho^t )    (6), which p sends to its neighbours
              |x_i a_i^T| <= clip,   xi_p ~ N(0, (multiplier clip / I)^2)

It is the decentralised ADMM of Zhang & Zhu (2017), Shi et al. (2014), Li et al. (2017), with alpha_p = -dual_p / 2:

    z_p      = argmin_z <f'_p + xi_p + 2 alpha_p, z> + e sum_q |z - (z_p + z_q) / 2|^2 + s_p / 2 |z - z_p|^2
    alpha_p += e / 2 sum_q (z_p - z_q),      sums over the d_p neighbours q of p

f_p is linearised, as in the paper, and s_p = rho - 2 e d_p gives all agents one stiffness, rho. With e = rho / g the
slope in z is f'_p + xi_p - dual_p + rho (z - c_p), which is zero at the z_p above. (s_p may be below zero; rho is not.)

The duals sum to zero, so where W does not bind the mean of the z_p does gradient descent on every network,

    mean z+ = mean z - 1 / (P rho^t) sum_p ( f'_p(c_p) + xi_p )

and where all agents are linked to all, c_p is this mean: then this is fedgd, and with f'_p(z_p) (`at`) it is inexact
ADMM in the order z, w, dual. With fewer links the c_p differ. Along an eigenvector of L of eigenvalue l, a = l / g, and
with f_p of one curvature kappa rho, a disagreement obeys r^2 - (b + 1 - a) r + b = 0, b = (1 - a) (1 - kappa): it is
stable for kappa < 2, where gradient descent is, and shrinks by sqrt(1 - a) a round where kappa = 0.

Privacy. Everything that agents hold is a function of what was released before: c_p of the last z, dual_p of all of
them, rho^t and M are public. Given these, z_p is a function of f'_p + xi_p, which one record moves by clip / I at most,
and no other agent looks at this record. So a run is `rounds` Gaussian releases, whoever sees every message; the price
counts all of them as seen by all. There is no server to trust: State holds the post, the z that agents released last.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tacit.admm.messages import Broadcast
from tacit.admm.rule import Point
from tacit.admm.updates import trust_center
from tacit.errors import IncompatibleError
from tacit.methods.local_models_first import caught_up
from tacit.methods.method import Answers, Budget, Choice, Entry, KeepsDual, Own, grid
from tacit.methods.network import Network, circulant
from tacit.methods.promise import Promise, gaussian_releases
from tacit.methods.task import Facts, Task, cooled_penalty, noise_std, noisy_gradients
from tacit.rounds import State
from tacit.schedule import Schedule


@dataclass(frozen=True)
class GraphADMM(KeepsDual):
    """Agents send z_p to their neighbours; the server's half passes these on, and reports their mean."""

    rounds: int
    clip: float
    multiplier: float
    rho: Schedule
    network: Network
    at: Point = Point.GLOBAL  # f_p is linearised at c_p, which stands for w, or at z_p

    def promise(self, facts: Facts) -> Promise:  # noqa: ARG002
        return gaussian_releases(self.multiplier)

    def answer(self, agents: Task, own: Own, msg: Broadcast) -> tuple[Own, Answers]:
        near = replace(msg, w=self.network.means(msg.w, agents.index, self.network.bound))
        dual, std = caught_up(own, near, self.rho), noise_std(agents, self.multiplier, self.clip)
        point = near.w if self.at is Point.GLOBAL else own["z"]
        slope = noisy_gradients(agents, point, self.clip, std, msg.t)
        center = trust_center(near.w, dual, slope, self.rho(msg.t))
        z = np.stack([agents.problem.domain.project(each) for each in center])
        return {"z": z, "dual": dual}, {"z": z}

    def start(self, facts: Facts) -> State:
        return start_of_all(facts)

    def ask(self, facts: Facts, state: State) -> Broadcast:  # noqa: ARG002
        return Broadcast(state.t + 1, state.own["z"])

    def share(self, facts: Facts) -> float:  # noqa: ARG002
        return 1.0

    def conclude(self, facts: Facts, state: State, msg: Broadcast, answers: Answers) -> State:  # noqa: ARG002
        return state.next(answers["z"].mean(0), z=answers["z"])


def start_of_all(facts: Facts) -> State:
    """The state before the first round: the post of every agent is the point of W nearest to zero."""
    first = facts.problem.start(facts.shape)
    return State(0, first, np.zeros(facts.shape), {"z": np.repeat(first[None], facts.n_agents, axis=0)})


def build(facts: Facts, budget: Budget, choice: Choice) -> GraphADMM:
    """The method on a circle of agents; the step of the mean suits the noise of all, as that of fedgd does."""
    return build_on(circulant(facts.n_agents, int(choice["degree"])), facts, budget, choice)


def build_on(network: Network, facts: Facts, budget: Budget, choice: Choice) -> GraphADMM:
    """The same on any network of these agents."""
    if network.n_agents != facts.n_agents:
        raise IncompatibleError(f"the network has {network.n_agents} agents, and the records {facts.n_agents}.")
    rounds, clip = int(choice["rounds"]), choice["clip"]
    multiplier = budget.multiplier(rounds)
    rho = cooled_penalty(facts, choice["score_noise"], noise_std(facts, multiplier, clip), rounds)
    return GraphADMM(rounds, clip, multiplier, rho, network)


ENTRY = Entry(
    "graph-admm", "inexact ADMM without a server: agents average their neighbours, Gaussian noise at each", build,
    grid(rounds=100, clip=(0.7, 0.7, 0.35, 0.35), score_noise=(1.0, 0.5, 1.0, 2.0), degree=4), sets=True,
    constants={"degree": "neighbours of each agent: 2 is a ring, P - 1 or more links every agent to every other"},
)  # fmt: skip
