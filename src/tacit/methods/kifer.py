"""Objective perturbation with Gaussian noise, by a curator (Kifer, Smith & Thakurta 2012; here for K classes).

    w = argmin_w sum_p f_p(w) + Lambda/2 |w|^2 + <b, w>,    b ~ N(0, (m c / I)^2),   m ~ s / epsilon'

with m and s as in tacit.methods.objective_perturbation. A hundredth of the budget pays for Gaussian noise that hides
where the solve ended; (epsilon', delta') is the rest. Lambda = |x| std(b) / score_noise makes the noise of a score as
small as score_noise, and is no less than what leaves the determinant half of epsilon'.
"""

from __future__ import annotations

from tacit.methods.method import Budget, Choice, Entry
from tacit.methods.noisy_minimum import NoisyMinimum, enough_convexity, shares, without_noise
from tacit.methods.objective_perturbation import Normal, check_loss, record_gradient, size
from tacit.methods.solve import convexity
from tacit.methods.task import Facts


def build(facts: Facts, budget: Budget, choice: Choice) -> NoisyMinimum:
    """The minimiser whose noise spends the budget."""
    if not budget.private:
        return without_noise()
    check_loss(facts)
    mask, epsilon, dp_delta = shares(budget)
    std = record_gradient(facts) * size(facts, dp_delta) / epsilon  # of an entry of b, nearly
    lam = enough_convexity(facts, choice["score_noise"], std, epsilon)
    mu = convexity(facts, lam, pooled=True)
    return NoisyMinimum(lam, Normal.of(facts, mu, epsilon, dp_delta), mask)


ENTRY = Entry(
    "kifer",
    "one minimiser of an objective with Gaussian noise, by a curator",
    build,
    tuple({"score_noise": noise} for noise in (1.0, 0.5, 0.25, 2.0)),
)
