"""Objective perturbation with pure epsilon, by a curator (Chaudhuri, Monteleoni & Sarwate 2011; here for K classes).

    w = argmin_w sum_p f_p(w) + Lambda/2 |w|^2 + <b, w>,    b ~ exp(-|b|_2 / scale)

scale = (c / I) / (epsilon' - jacobian), see tacit.methods.objective_perturbation. A hundredth of the budget pays for
noise of the same law that hides where the solve ended; epsilon' is the rest. Lambda = |x| std(b) / score_noise makes
the noise of a score as small as score_noise, and is no less than what leaves the determinant half of epsilon'.
"""

from __future__ import annotations

import math

from tacit.methods.method import Budget, Choice, Entry
from tacit.methods.noisy_minimum import NoisyMinimum, enough_convexity, without_noise
from tacit.methods.objective_perturbation import MASK_SHARE, Radial, check_loss, record_gradient
from tacit.methods.solve import convexity
from tacit.methods.task import Facts


def build(facts: Facts, budget: Budget, choice: Choice) -> NoisyMinimum:
    """The minimiser whose noise spends the budget."""
    if not budget.private:
        return without_noise()
    check_loss(facts)
    epsilon = (1 - MASK_SHARE) * budget.epsilon
    std = record_gradient(facts) * math.sqrt(math.prod(facts.shape)) / epsilon  # of an entry of b, nearly
    lam = enough_convexity(facts, choice["score_noise"], std, epsilon)
    mu = convexity(facts, lam, pooled=True)
    return NoisyMinimum(lam, Radial.of(facts, mu, epsilon), Radial(1 / (MASK_SHARE * budget.epsilon)))


ENTRY = Entry(
    "chaudhuri",
    "one minimiser of an objective with radial noise, pure epsilon, by a curator",
    build,
    tuple({"score_noise": noise} for noise in (0.5, 0.25, 1.0, 2.0)),
)
