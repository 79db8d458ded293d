"""Primal perturbation: exact ADMM, Gaussian noise on every local minimiser (Huang et al. 2019, Algorithm 2).

    z_p = argmin_z f_p(z) - <lambda_p, z> + rho^t/2 |w - z|^2  +  N(0, (multiplier s)^2),   then w, then lambda_p

A gradient that moves by q moves the minimiser by q / mu at most, mu = rho^t + (beta/P) r''. The gradient of a record is
at most c = row_norm sqrt 2 by itself, so nothing is clipped; solves end at gradients of norm tau = tolerance c / I:

    s = ( n c / I + 2 tau ) / mu,    n = 1 for a record present or absent, 2 for one replaced

1 / rho^t falls in a straight line to zero, where the published method keeps rho: the noise on z falls with it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit.methods.exact import exact_round, exact_start
from tacit.methods.method import Budget, Choice, Entry, Info, State
from tacit.methods.perturb import record_gradient
from tacit.methods.promise import Promise, Unit, gaussian_releases
from tacit.methods.solve import convexity
from tacit.methods.task import Task
from tacit.problem.sensitivity import Adjacency
from tacit.schedule import Cooling, Schedule, cooled_step

UNITS = {Adjacency.ZERO_OUT: Unit.RECORD, Adjacency.REPLACE_ONE: Unit.REPLACED}


@dataclass(frozen=True)
class PrimalPerturbation:
    """Agents send noisy minimisers."""

    rounds: int
    multiplier: float
    rho: Schedule
    tolerance: float = 1e-2
    adjacency: Adjacency = Adjacency.ZERO_OUT

    def promise(self, task: Task) -> Promise:  # noqa: ARG002
        return gaussian_releases(self.multiplier, unit=UNITS[self.adjacency])

    def init(self, task: Task) -> State:
        return exact_start(task, private=bool(self.multiplier))

    def run_round(self, task: Task, state: State) -> tuple[State, Info]:
        t = state.t + 1
        rho = self.rho(t)
        noise = self.noise_std(task, rho) * task.agents_gaussian(t) if self.multiplier else 0.0
        return exact_round(task, state, rho, tau(task, self.tolerance), 0.0, noise)

    def noise_std(self, task: Task, rho: float) -> float:
        """multiplier s."""
        moved = self.adjacency.value + 2 * self.tolerance
        return self.multiplier * moved * record_gradient(task) / convexity(task, rho)


def tau(task: Task, tolerance: float) -> float:
    """tolerance c / I; where the loss bounds no gradient, and so nothing is private, as if c were row_norm."""
    own = record_gradient(task)
    return tolerance * (own if math.isfinite(own) else task.problem.weight * task.row_norm)


def penalty(task: Task, score_noise: float, std: float, rounds: int) -> Cooling:
    """rho^t with which the mean of z_p, noisy by std / rho^t at each agent, takes the steps of `cooled_step`."""
    step = cooled_step(score_noise, math.sqrt(task.n_agents) * std * task.row_norm, rounds)
    return Cooling(1 / (task.n_agents * step), rounds)


def build(task: Task, budget: Budget, choice: Choice) -> PrimalPerturbation:
    rounds = int(choice["rounds"])
    multiplier = budget.multiplier(rounds)
    std = multiplier * record_gradient(task) if multiplier else 0.0
    return PrimalPerturbation(rounds, multiplier, penalty(task, choice["score_noise"], std, rounds))


ENTRY = Entry(
    "pvp",
    "exact ADMM, Gaussian noise on each agent's minimiser",
    build,
    tuple({"rounds": rounds, "score_noise": noise} for rounds in (15, 30) for noise in (1.5, 0.75)),
)
