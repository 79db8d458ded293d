"""One minimiser of a noisy objective, by a curator who holds all records: what chaudhuri, kifer and amp share.

    w = argmin_w sum_p f_p(w) + Lambda/2 |w|^2 + <b, w>  +  c

b hides the records (tacit.methods.objective_perturbation). The solve ends at a gradient of norm tau = tolerance c / I,
and the noise c hides where it ended.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.admm.messages import Broadcast
from tacit.methods.method import Budget
from tacit.methods.objective_perturbation import (
    MASK_SHARE,
    Noise,
    Normal,
    check_records,
    least_convexity,
    record_gradient,
    tau,
)
from tacit.methods.promise import Promise, Trusted, Unit, no_privacy
from tacit.methods.solve import convexity, minimise
from tacit.methods.task import Facts, Task
from tacit.privacy.budget import calibrate
from tacit.privacy.release import GeneralRelease
from tacit.types import Array

TOLERANCE = 3e-4  # with it the noise c adds less than a hundredth to the variance


@dataclass(frozen=True)
class NoisyMinimum:
    """The curator trains once and makes one release in all."""

    convexity: float  # Lambda
    inside: Noise
    outside: Noise
    tolerance: float = TOLERANCE
    rounds: int = 1

    @property
    def private(self) -> bool:
        return self.inside.multiplier > 0

    def promise(self, facts: Facts) -> Promise:
        if not self.private:
            return no_privacy(Trusted.CURATOR)
        once = (self.inside.inside(facts, convexity(facts, self.convexity, pooled=True)), self.outside.outside())
        return Promise(Unit.RECORD, Trusted.CURATOR, once=tuple((release, 1) for release in once))

    def train(self, records: Task, msg: Broadcast) -> Array:
        if self.private:
            check_records(records)
        t, curator, limit = msg.t, records.n_agents, tau(records, self.tolerance)
        b = record_gradient(records) * self.inside.draw(records, curator, t, 0) if self.private else 0.0

        def rest(u: Array) -> Array:
            return self.convexity * u + b

        (w,) = minimise(records, rest, self.convexity, msg.w[None], limit, pooled=True)
        mu = convexity(records, self.convexity, pooled=True)
        return np.asarray(w + 2 * limit / mu * self.outside.draw(records, curator, t, 1))


def without_noise() -> NoisyMinimum:
    """The minimiser itself, to a gradient that one record could have."""
    return NoisyMinimum(0.0, Normal(0.0), Normal(0.0), 1.0)


def enough_convexity(facts: Facts, score_noise: float, std: float, epsilon: float) -> float:
    """The Lambda with which b, of std `std` in an entry, adds noise of std score_noise to a score.

    It is never less than what leaves the determinant half of epsilon.
    """
    least = least_convexity(facts, epsilon / 2) - convexity(facts, 0.0, pooled=True)
    return max(facts.row_norm * std / score_noise, least)


def shares(budget: Budget) -> tuple[Normal, float, float]:
    """The noise that hides where the solve ended, and the (epsilon, delta) that is left for the minimiser."""
    little = Budget(MASK_SHARE * budget.epsilon, MASK_SHARE * budget.dp_delta)
    mask, dp_delta = Normal(little.multiplier(1)), (1 - MASK_SHARE) * budget.dp_delta
    left = calibrate(GeneralRelease(1.0, dp_delta), budget.epsilon, budget.dp_delta, 1, beside=((mask.outside(), 1),))
    assert isinstance(left, GeneralRelease)
    return mask, left.epsilon, dp_delta
