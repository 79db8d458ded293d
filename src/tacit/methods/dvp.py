"""Dual perturbation: exact ADMM, noise in every local objective (Zhang & Zhu 2017, on a star).

    z_p = argmin_z f_p(z) + <b_p, z> - <lambda_p, z> + rho^t/2 |w - z|^2,    b_p ~ exp(-|b|_2 / scale)

then w, then lambda_p. With scale = (c / I) / (epsilon - jacobian), see tacit.methods.objective_perturbation, an exact
minimiser is epsilon-private. Nothing more is known of the minimiser, so rounds compose as the worst of epsilon-private
releases. Where the determinant would take more than half of epsilon, rho^t is raised: Zhang & Zhu add a regulariser,
which also moves the optimum.

Solves end at gradients of norm tau = tolerance c / I; Gaussian noise of std mask 2 tau / mu on z_p hides where, as a
second and far smaller release.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from tacit.admm.messages import Broadcast
from tacit.methods.exact_admm import ExactADMM
from tacit.methods.method import Budget, Choice, Entry
from tacit.methods.noisy_gradients import cooled_penalty
from tacit.methods.objective_perturbation import (
    MASK_SHARE,
    Normal,
    Radial,
    check_loss,
    least_convexity,
    record_gradient,
    tau,
)
from tacit.methods.promise import Promise, Trusted, Unit, no_privacy
from tacit.methods.solve import convexity
from tacit.methods.task import Facts, Task
from tacit.privacy.budget import calibrate
from tacit.privacy.release import GaussianRelease, GeneralRelease
from tacit.schedule import Schedule
from tacit.types import Array


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
        return max(self.rho(t), least_convexity(facts, self.epsilon / 2) - convexity(facts, 0.0))

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
        return self.minimisers(agents, dual, msg, b) + 2 * tau(agents, self.tolerance) / convexity(agents, rho) * c


def build(facts: Facts, budget: Budget, choice: Choice) -> DualPerturbation:
    """The method with a penalty that suits its noise."""
    rounds = int(choice["rounds"])
    if not budget.private:
        return DualPerturbation(rounds, math.inf, 0.0, cooled_penalty(facts, choice["score_noise"], 0.0, rounds))
    check_loss(facts)
    mask = Budget(MASK_SHARE * budget.epsilon, budget.dp_delta).multiplier(rounds)
    beside = ((GaussianRelease(mask), rounds),)
    one = calibrate(GeneralRelease(1.0), budget.epsilon, budget.dp_delta, rounds, beside=beside)
    assert isinstance(one, GeneralRelease)
    std = record_gradient(facts) * math.sqrt(math.prod(facts.shape)) / one.epsilon  # of an entry of b, nearly
    return DualPerturbation(rounds, one.epsilon, mask, cooled_penalty(facts, choice["score_noise"], std, rounds))


ENTRY = Entry(
    "dvp",
    "exact ADMM, radial noise in each agent's objective",
    build,
    tuple({"rounds": rounds, "score_noise": noise} for rounds, noise in ((1, 1.0), (1, 0.3), (3, 1.0), (20, 1.0))),
)
