"""Objective perturbation with Gaussian noise, by a curator (Kifer, Smith & Thakurta 2012; here for K classes).

    w = argmin_w sum_p f_p(w) + Lambda/2 |w|^2 + <b, w>,    b ~ N(0, (m c / I)^2),   m ~ s / epsilon'

with m and s as in tacit.methods.perturb, and (epsilon', delta') the budget but for the hundredth that hides where the
solve ended, by Gaussian noise. Lambda = |x| std(b) / score_noise makes the noise of a score as small as that, and is no
less than what leaves the determinant half of epsilon'.
"""

from __future__ import annotations

from tacit.methods.central import MASK_SHARE, NoisyMinimum, without_noise
from tacit.methods.method import Budget, Choice, Entry
from tacit.methods.perturb import Normal, check, least_convexity, record_gradient, size
from tacit.methods.solve import convexity
from tacit.methods.task import Task
from tacit.privacy.budget import calibrate
from tacit.privacy.release import GeneralRelease


def build(task: Task, budget: Budget, choice: Choice) -> NoisyMinimum:
    if not budget.private:
        return without_noise(0.0)
    check(task)
    mask, epsilon, dp_delta = shares(budget)
    std = record_gradient(task) * size(task, dp_delta) / epsilon  # of an entry of b, nearly
    wanted = task.row_norm * std / choice["score_noise"]
    lam = max(wanted, least_convexity(task, epsilon / 2) - convexity(task, 0.0, pooled=True))
    mu = convexity(task, lam, pooled=True)
    return NoisyMinimum(lam, Normal.of(task, mu, epsilon, dp_delta), mask)


def shares(budget: Budget) -> tuple[Normal, float, float]:
    """The noise that hides where the solve ended, and the (epsilon, delta) that is left for the minimiser."""
    little = Budget(MASK_SHARE * budget.epsilon, MASK_SHARE * budget.dp_delta)
    mask, dp_delta = Normal(little.multiplier(1)), (1 - MASK_SHARE) * budget.dp_delta
    left = calibrate(GeneralRelease(1.0, dp_delta), budget.epsilon, budget.dp_delta, 1, beside=((mask.outside(), 1),))
    assert isinstance(left, GeneralRelease)
    return mask, left.epsilon, dp_delta


ENTRY = Entry(
    "kifer",
    "one minimiser of an objective with Gaussian noise, by a curator",
    build,
    tuple({"score_noise": noise} for noise in (1.0, 0.5, 0.25, 2.0)),
)
