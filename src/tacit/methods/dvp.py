"""Dual perturbation: exact ADMM, noise in every local objective (Zhang & Zhu 2017, on a star).

    z_p = argmin_z f_p(z) + <b_p, z> - <lambda_p, z> + rho^t/2 |w - z|^2,    b_p ~ exp(-|b|_2 / scale)

then w, then lambda_p. With scale = (c / I) / (epsilon - jacobian), see tacit.methods.perturb, an exact minimiser is
epsilon-private. No more than that is known of it, so rounds compose as the worst of such releases. Where the
determinant would take more than half of epsilon, rho^t is raised: Zhang & Zhu add a regulariser, which also moves the
optimum.

Solves end at gradients of norm tau = tolerance c / I; Gaussian noise of std mask 2 tau / mu on z_p hides where, as a
second and far smaller release.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from tacit.methods.exact import exact_round, exact_start
from tacit.methods.method import Budget, Choice, Entry, Info, State
from tacit.methods.perturb import Normal, Radial, check, least_convexity, record_gradient
from tacit.methods.promise import Promise, Trusted, Unit, no_privacy
from tacit.methods.pvp import penalty, tau
from tacit.methods.solve import convexity
from tacit.methods.task import Task
from tacit.privacy.budget import calibrate
from tacit.privacy.release import GaussianRelease, GeneralRelease
from tacit.schedule import Schedule

MASK_SHARE = 0.01  # of epsilon, for hiding where a solve ended


@dataclass(frozen=True)
class DualPerturbation:
    """Agents send minimisers of noisy objectives; epsilon = inf is exact ADMM."""

    rounds: int
    epsilon: float  # of one round's minimiser
    mask: float
    rho: Schedule
    tolerance: float = 1e-2

    @property
    def private(self) -> bool:
        return not math.isinf(self.epsilon)

    def promise(self, task: Task) -> Promise:
        if not self.private:
            return no_privacy()
        rhos = [self.penalty(task, t) for t in range(1, self.rounds + 1)]
        each = [self.noise(task, rho).inside(task, convexity(task, rho)) for rho in rhos]
        worst = max(each, key=attrgetter("epsilon"))
        return Promise(Unit.RECORD, Trusted.NOBODY, ((worst, 1), (Normal(self.mask).outside(), 1)))

    def init(self, task: Task) -> State:
        return exact_start(task, self.private)

    def run_round(self, task: Task, state: State) -> tuple[State, Info]:
        t = state.t + 1
        rho, limit = self.penalty(task, t), tau(task, self.tolerance)
        if not self.private:
            return exact_round(task, state, rho, limit, 0.0, 0.0)
        agents, inside, outside = range(task.n_agents), self.noise(task, rho), Normal(self.mask)
        b = record_gradient(task) * np.stack([inside.draw(task, p, t, 0) for p in agents])
        c = 2 * limit / convexity(task, rho) * np.stack([outside.draw(task, p, t, 1) for p in agents])
        return exact_round(task, state, rho, limit, b, c)

    def penalty(self, task: Task, t: int) -> float:
        """rho^t, raised until the determinant takes half of epsilon at most."""
        if not self.private:
            return self.rho(t)
        return max(self.rho(t), least_convexity(task, self.epsilon / 2) - convexity(task, 0.0))

    def noise(self, task: Task, rho: float) -> Radial:
        return Radial.of(task, convexity(task, rho), self.epsilon)


def build(task: Task, budget: Budget, choice: Choice) -> DualPerturbation:
    rounds = int(choice["rounds"])
    if not budget.private:
        return DualPerturbation(rounds, math.inf, 0.0, penalty(task, choice["score_noise"], 0.0, rounds))
    check(task)
    mask = Budget(MASK_SHARE * budget.epsilon, budget.dp_delta).multiplier(rounds)
    beside = ((GaussianRelease(mask), rounds),)
    one = calibrate(GeneralRelease(1.0), budget.epsilon, budget.dp_delta, rounds, beside=beside)
    assert isinstance(one, GeneralRelease)
    std = record_gradient(task) * math.sqrt(math.prod(task.shape)) / one.epsilon  # of an entry of b, nearly
    return DualPerturbation(rounds, one.epsilon, mask, penalty(task, choice["score_noise"], std, rounds))


ENTRY = Entry(
    "dvp",
    "exact ADMM, radial noise in each agent's objective",
    build,
    tuple({"rounds": rounds, "score_noise": noise} for rounds, noise in ((1, 1.0), (1, 0.3), (3, 1.0), (20, 1.0))),
)
