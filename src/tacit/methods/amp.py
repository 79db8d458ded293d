"""Approximate minima perturbation, by a curator (Iyengar et al. 2019; here for K classes).

    w = argmin_w sum_p f_p(w) + Lambda/2 |w|^2 + <b, w>  +  N(0, (mask 2 tau / mu)^2),    b ~ N(0, (m c / I)^2)

solved to a gradient of norm tau, a multiple of c / I (published is 1 / I^2). Lambda follows from the share `jacobian`
of epsilon that the determinant takes (published is a tenth); b takes the rest. In `kifer` Lambda is chosen instead.
"""

from __future__ import annotations

from tacit.methods.method import Budget, Choice, Entry
from tacit.methods.noisy_minimum import NoisyMinimum, shares, without_noise
from tacit.methods.objective_perturbation import Normal, check_loss, least_convexity
from tacit.methods.solve import convexity
from tacit.methods.task import Facts


def build(facts: Facts, budget: Budget, choice: Choice) -> NoisyMinimum:
    """The minimiser whose noise spends the budget."""
    if not budget.private:
        return without_noise()
    check_loss(facts)
    mask, epsilon, dp_delta = shares(budget)
    lam = max(0.0, least_convexity(facts, choice["jacobian"] * epsilon) - convexity(facts, 0.0, pooled=True))
    mu = convexity(facts, lam, pooled=True)
    return NoisyMinimum(lam, Normal.of(facts, mu, epsilon, dp_delta), mask)


ENTRY = Entry(
    "amp",
    "one approximate minimiser of an objective with Gaussian noise, by a curator",
    build,
    tuple({"jacobian": share} for share in (0.1, 0.03, 0.3, 0.01)),
)
