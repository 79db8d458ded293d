"""Approximate minima perturbation, by a curator (Iyengar et al. 2019; here for K classes).

    w = argmin_w sum_p f_p(w) + Lambda/2 |w|^2 + <b, w>  +  N(0, (mask 2 tau / mu)^2),    b ~ N(0, (m c / I)^2)

solved to a gradient of norm tau, of which c / I is the unit (published is 1 / I^2). Unlike in `kifer`, Lambda is not
chosen: the determinant takes the share `jacobian` of epsilon, which gives Lambda, and b the rest; published is a tenth.
"""

from __future__ import annotations

from tacit.methods.central import NoisyMinimum, without_noise
from tacit.methods.kifer import shares
from tacit.methods.method import Budget, Choice, Entry
from tacit.methods.perturb import Normal, check, least_convexity
from tacit.methods.solve import convexity
from tacit.methods.task import Task


def build(task: Task, budget: Budget, choice: Choice) -> NoisyMinimum:
    if not budget.private:
        return without_noise(0.0)
    check(task)
    mask, epsilon, dp_delta = shares(budget)
    lam = max(0.0, least_convexity(task, choice["jacobian"] * epsilon) - convexity(task, 0.0, pooled=True))
    mu = convexity(task, lam, pooled=True)
    return NoisyMinimum(lam, Normal.of(task, mu, epsilon, dp_delta), mask)


ENTRY = Entry(
    "amp",
    "one approximate minimiser of an objective with Gaussian noise, by a curator",
    build,
    tuple({"jacobian": share} for share in (0.1, 0.03, 0.3, 0.01)),
)
