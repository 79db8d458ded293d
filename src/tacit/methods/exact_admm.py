"""ADMM with exact local minimisers, and noise on the minimiser or in its objective.

    z_p  = argmin_z f_p(z) + <b_p, z> - <lambda_p, z> + rho^t/2 |w - z|^2    (4b), to a gradient of norm tau
    z_p += c_p                                                              what agent p sends

then w and lambda_p, as in tacit.methods.local_models_first. The local solve starts at w, which everybody knows, and
ends at a gradient of norm tau = tolerance c / I: c = row_norm sqrt 2 bounds the gradient of a record by itself, so
nothing is clipped. 1 / rho^t falls in a straight line to zero, and the noise on z falls with it.

pvp, primal perturbation (Huang et al. 2019, Algorithm 2, which keeps rho): c_p ~ N(0, (multiplier s)^2), b_p = 0.
A gradient that moves by q moves the minimiser by q / mu at most, mu = rho^t + (beta/P) r'', so that

    s = ( n c / I + 2 tau ) / mu,    n = 1 for a record present or absent, 2 for one replaced

dvp, dual perturbation (Zhang & Zhu 2017, on a star): b_p ~ exp(-|b|_2 / scale). With
scale = (c / I) / (epsilon - jacobian), see tacit.methods.objective_perturbation, an exact minimiser is
epsilon-private. Nothing more is known of the minimiser, so rounds compose as the worst of epsilon-private releases.
Where the determinant would take more than half of epsilon, rho^t is raised: Zhang & Zhu add a regulariser, which also
moves the optimum. Gaussian noise c_p of std mask 2 tau / mu hides where a solve ended, as a second and far smaller
release.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from tacit.admm.messages import Broadcast
from tacit.admm.updates import exact_slope
from tacit.methods import objective_perturbation as perturbation
from tacit.methods.local_models_first import LocalModelsFirst
from tacit.methods.method import Budget, Choice, Entry, Own, grid
from tacit.methods.objective_perturbation import MASK_SHARE, Normal, Radial, check_loss, record_gradient
from tacit.methods.promise import Promise, Trusted, Unit, gaussian_releases, no_privacy
from tacit.methods.solve import convexity, minimise
from tacit.methods.task import Facts, Task, cooled_penalty
from tacit.privacy.budget import calibrate
from tacit.privacy.release import GaussianRelease, GeneralRelease
from tacit.problem.sensitivity import Adjacency
from tacit.schedule import Schedule
from tacit.types import Array

UNITS = {Adjacency.ZERO_OUT: Unit.RECORD, Adjacency.REPLACE_ONE: Unit.REPLACED}


class ExactADMM(LocalModelsFirst):
    """Both halves of such a method, but for the noise and the penalty. Agents keep z_p and lambda_p."""

    tolerance: float

    @property
    @abstractmethod
    def private(self) -> bool:
        """Whether the method adds noise."""

    def carried(self, agents: Task) -> Own:
        """Both zero before the first round; where noise rests on the norm of the records, this checks the records."""
        if self.private:
            perturbation.check_records(agents)
        return {"z": agents.zeros, "dual": agents.zeros}

    def minimisers(self, agents: Task, dual: Array, msg: Broadcast, b: Array | float = 0.0) -> Array:
        """Where the solve of (4b) ends at every agent, with noise b_p in its objective: (P, J, K)."""
        rho, limit = self.penalty(agents, msg.t), perturbation.tau(agents, self.tolerance)
        start = np.broadcast_to(msg.w, dual.shape)
        return minimise(agents, lambda u: exact_slope(u, msg.w, dual, b, rho), rho, start, limit)


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


def build_primal(facts: Facts, budget: Budget, choice: Choice) -> PrimalPerturbation:
    """The method with a penalty that suits its noise."""
    rounds = int(choice["rounds"])
    if budget.private:
        check_loss(facts)
    multiplier = budget.multiplier(rounds)
    std = multiplier * record_gradient(facts) if multiplier else 0.0
    return PrimalPerturbation(rounds, multiplier, cooled_penalty(facts, choice["score_noise"], std, rounds))


@dataclass(frozen=True)
class DualPerturbation(ExactADMM):
    """Agents send minimisers of noisy objectives; epsilon = inf is exact ADMM."""

    rounds: int
    epsilon: float  # of one round's minimiser
    mask: float
    rho: Schedule
    tolerance: float = 1e-2

    @property
    def private(self) -> bool:
        return not math.isinf(self.epsilon)

    def promise(self, facts: Facts) -> Promise:
        if not self.private:
            return no_privacy()
        rhos = [self.penalty(facts, t) for t in range(1, self.rounds + 1)]
        each = [self.noise(facts, rho).inside(facts, convexity(facts, rho)) for rho in rhos]
        worst = max(each, key=attrgetter("epsilon"))
        return Promise(Unit.RECORD, Trusted.NOBODY, ((worst, 1), (Normal(self.mask).outside(), 1)))

    def penalty(self, facts: Facts, t: int) -> float:
        """rho^t, raised until the determinant takes half of epsilon at most."""
        if not self.private:
            return self.rho(t)
        return max(self.rho(t), perturbation.least_convexity(facts, self.epsilon / 2) - convexity(facts, 0.0))

    def noise(self, facts: Facts, rho: float) -> Radial:
        """The noise in the objective of a round whose penalty is rho."""
        return Radial.of(facts, convexity(facts, rho), self.epsilon)

    def released(self, agents: Task, z: Array, dual: Array, msg: Broadcast) -> Array:  # noqa: ARG002
        if not self.private:
            return self.minimisers(agents, dual, msg)
        t, rho = msg.t, self.penalty(agents, msg.t)
        inside, outside = self.noise(agents, rho), Normal(self.mask)
        b = record_gradient(agents) * np.stack([inside.draw(agents, p, t, 0) for p in agents.index])
        c = np.stack([outside.draw(agents, p, t, 1) for p in agents.index])
        apart = 2 * perturbation.tau(agents, self.tolerance) / convexity(agents, rho)
        return self.minimisers(agents, dual, msg, b) + apart * c


def build_dual(facts: Facts, budget: Budget, choice: Choice) -> DualPerturbation:
    """The method with a penalty that suits its noise."""
    rounds, epsilon, mask, std = int(choice["rounds"]), math.inf, 0.0, 0.0
    if budget.private:
        perturbation.check_loss(facts)
        mask = Budget(MASK_SHARE * budget.epsilon, budget.dp_delta).multiplier(rounds)
        beside = ((GaussianRelease(mask), rounds),)
        one = calibrate(GeneralRelease(1.0), budget.epsilon, budget.dp_delta, rounds, beside=beside)
        assert isinstance(one, GeneralRelease)
        epsilon = one.epsilon
        std = record_gradient(facts) * math.sqrt(math.prod(facts.shape)) / epsilon  # of an entry of b, nearly
    return DualPerturbation(rounds, epsilon, mask, cooled_penalty(facts, choice["score_noise"], std, rounds))


PVP = Entry("pvp", "exact ADMM, Gaussian noise on each agent's minimiser", build_primal, grid(
    rounds=(15, 15, 30, 30), score_noise=(1.5, 0.75, 1.5, 0.75),
))  # fmt: skip
DVP = Entry("dvp", "exact ADMM, radial noise in each agent's objective", build_dual, grid(
    rounds=(1, 1, 3, 20), score_noise=(1.0, 0.3, 1.0, 1.0),
))  # fmt: skip
