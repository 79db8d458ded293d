"""Primal perturbation: exact ADMM, Gaussian noise on every local minimiser (Huang et al. 2019, Algorithm 2).

    z_p = argmin_z f_p(z) - <lambda_p, z> + rho^t/2 |w - z|^2  +  N(0, (multiplier s)^2),   then w, then lambda_p

A gradient that moves by q moves the minimiser by q / mu at most, mu = rho^t + (beta/P) r''. The gradient of a record is
at most c = row_norm sqrt 2 by itself, so nothing is clipped; solves end at gradients of norm tau = tolerance c / I:

    s = ( n c / I + 2 tau ) / mu,    n = 1 for a record present or absent, 2 for one replaced

1 / rho^t falls in a straight line to zero, where the published method keeps rho: the noise on z falls with it.
"""

from __future__ import annotations

from dataclasses import dataclass

from tacit.admm.messages import Broadcast
from tacit.methods.exact_admm import ExactADMM
from tacit.methods.method import Budget, Choice, Entry
from tacit.methods.noisy_gradients import cooled_penalty
from tacit.methods.objective_perturbation import record_gradient
from tacit.methods.promise import Promise, Unit, gaussian_releases
from tacit.methods.solve import convexity
from tacit.methods.task import Facts, Task
from tacit.problem.sensitivity import Adjacency
from tacit.schedule import Schedule
from tacit.types import Array

UNITS = {Adjacency.ZERO_OUT: Unit.RECORD, Adjacency.REPLACE_ONE: Unit.REPLACED}


@dataclass(frozen=True)
class PrimalPerturbation(ExactADMM):
    """Agents send noisy minimisers."""

    rounds: int
    multiplier: float
    rho: Schedule
    tolerance: float = 1e-2
    adjacency: Adjacency = Adjacency.ZERO_OUT

    @property
    def private(self) -> bool:
        return self.multiplier > 0

    def promise(self, facts: Facts) -> Promise:  # noqa: ARG002
        return gaussian_releases(self.multiplier, unit=UNITS[self.adjacency])

    def penalty(self, facts: Facts, t: int) -> float:  # noqa: ARG002
        return self.rho(t)

    def released(self, agents: Task, z: Array, dual: Array, msg: Broadcast) -> Array:  # noqa: ARG002
        found = self.minimisers(agents, dual, msg)
        if not self.private:
            return found
        return found + self.noise_std(agents, self.rho(msg.t)) * agents.agents_gaussian(msg.t)

    def noise_std(self, facts: Facts, rho: float) -> float:
        """multiplier s."""
        moved = self.adjacency.value + 2 * self.tolerance
        return self.multiplier * moved * record_gradient(facts) / convexity(facts, rho)


def build(facts: Facts, budget: Budget, choice: Choice) -> PrimalPerturbation:
    """The method with a penalty that suits its noise."""
    rounds = int(choice["rounds"])
    multiplier = budget.multiplier(rounds)
    std = multiplier * record_gradient(facts) if multiplier else 0.0
    return PrimalPerturbation(rounds, multiplier, cooled_penalty(facts, choice["score_noise"], std, rounds))


ENTRY = Entry(
    "pvp",
    "exact ADMM, Gaussian noise on each agent's minimiser",
    build,
    tuple({"rounds": rounds, "score_noise": noise} for rounds in (15, 30) for noise in (1.5, 0.75)),
)
