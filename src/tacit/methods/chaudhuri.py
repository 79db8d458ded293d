"""Objective perturbation with pure epsilon, by a curator (Chaudhuri, Monteleoni & Sarwate 2011; here for K classes).

    w = argmin_w sum_p f_p(w) + Lambda/2 |w|^2 + <b, w>,    b ~ exp(-|b|_2 / scale)

scale = (c / I) / (epsilon' - jacobian), see tacit.methods.perturb; epsilon' is the budget but for the hundredth that
hides where the solve ended, by noise of the same law. Lambda = |x| std(b) / score_noise makes the noise of a score as
small as that, and is no less than what leaves the determinant half of epsilon'.
"""

from __future__ import annotations

import math

from tacit.methods.central import MASK_SHARE, NoisyMinimum, without_noise
from tacit.methods.method import Budget, Choice, Entry
from tacit.methods.perturb import Radial, check, least_convexity, record_gradient
from tacit.methods.solve import convexity
from tacit.methods.task import Task


def build(task: Task, budget: Budget, choice: Choice) -> NoisyMinimum:
    if not budget.private:
        return without_noise(0.0)
    check(task)
    epsilon = (1 - MASK_SHARE) * budget.epsilon
    std = record_gradient(task) * math.sqrt(math.prod(task.shape)) / epsilon  # of an entry of b, nearly
    wanted = task.row_norm * std / choice["score_noise"]
    lam = max(wanted, least_convexity(task, epsilon / 2) - convexity(task, 0.0, pooled=True))
    mu = convexity(task, lam, pooled=True)
    return NoisyMinimum(lam, Radial.of(task, mu, epsilon), Radial(1 / (MASK_SHARE * budget.epsilon)))


ENTRY = Entry(
    "chaudhuri",
    "one minimiser of an objective with radial noise, pure epsilon, by a curator",
    build,
    tuple({"score_noise": noise} for noise in (0.5, 0.25, 1.0, 2.0)),
)
