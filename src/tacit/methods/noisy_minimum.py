"""One minimiser with noise, in its objective or on itself, by a curator who holds all records, for K classes.

    w = argmin_w sum_p f_p(w) + Lambda/2 |w|^2 + <b, w>  +  c

b hides the records (tacit.methods.objective_perturbation). The solve ends at a gradient of norm tau = tolerance c / I,
and the noise c, for which a hundredth of the budget pays, hides where it ended. (epsilon', delta') is the rest.

    chaudhuri   b ~ exp(-|b|_2 / scale), pure epsilon       Chaudhuri, Monteleoni & Sarwate (2011)
    kifer       b ~ N(0, (m c / I)^2)                       Kifer, Smith & Thakurta (2012)
    amp         b ~ N(0, (m c / I)^2)                       Iyengar et al. (2019), approximate minima perturbation

In the first two, Lambda = |x| std(b) / score_noise makes the noise of a score as small as score_noise, and is no less
than what leaves the determinant half of epsilon'. In amp, Lambda follows from the share `jacobian` of epsilon' that the
determinant takes (published is a tenth, with solves to tau = 1 / I^2).

    chaudhuri-output    b = 0, c ~ exp(-|c|_2 epsilon / s), pure epsilon    Chaudhuri, Monteleoni & Sarwate (2011)

Output perturbation. A gradient that moves by q moves the minimiser of a mu-strongly convex objective by q / mu at most.
A record, present or absent, moves the gradient by c / I, and each of two solves ends within tau / mu of its minimiser:

    s = ( c / I + 2 tau ) / mu

(Published is 2 / (n Lambda) for a record replaced, |x| <= 1 and a scalar model.) One release pays for both, so that no
budget is set aside for the solve. Lambda makes the noise of a score as small as score_noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.admm.messages import Broadcast
from tacit.methods import objective_perturbation as perturbation
from tacit.methods.method import Budget, Choice, Curated, Entry, grid
from tacit.methods.objective_perturbation import MASK_SHARE, AnyNoise, Normal, Radial, record_gradient
from tacit.methods.promise import Promise, Trusted, Unit, no_privacy
from tacit.methods.solve import convexity, minimise
from tacit.methods.task import Facts, Task
from tacit.privacy.budget import calibrate
from tacit.privacy.release import GeneralRelease
from tacit.types import Array

TOLERANCE = 3e-4  # with it the noise c adds less than a hundredth to the variance


@dataclass(frozen=True)
class NoisyMinimum(Curated):
    """The curator trains once and makes one release in all."""

    convexity: float  # Lambda
    inside: AnyNoise
    outside: AnyNoise
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
            perturbation.check_records(records)
        t, curator, limit = msg.t, records.n_agents, perturbation.tau(records, self.tolerance)
        b = record_gradient(records) * self.inside.draw(records, curator, t, 0) if self.private else 0.0
        lam = self.convexity
        (w,) = minimise(records, lambda u: lam * u + b, lam, msg.w[None], limit, pooled=True)
        mu = convexity(records, lam, pooled=True)
        return np.asarray(w + 2 * limit / mu * self.outside.draw(records, curator, t, 1))


@dataclass(frozen=True)
class OutputPerturbation(Curated):
    """The curator minimises the objective as it is, and shows the minimiser with noise on it, once."""

    convexity: float  # Lambda
    noise: Radial
    tolerance: float = TOLERANCE
    rounds: int = 1

    @property
    def private(self) -> bool:
        return self.noise.multiplier > 0

    def promise(self, facts: Facts) -> Promise:  # noqa: ARG002
        if not self.private:
            return no_privacy(Trusted.CURATOR)
        return Promise(Unit.RECORD, Trusted.CURATOR, once=((self.noise.outside(), 1),))

    def sensitivity(self, facts: Facts) -> float:
        """s."""
        return (1 + 2 * self.tolerance) * record_gradient(facts) / convexity(facts, self.convexity, pooled=True)

    def train(self, records: Task, msg: Broadcast) -> Array:
        lam, limit = self.convexity, perturbation.tau(records, self.tolerance)
        if self.private:
            perturbation.check_records(records)
        (w,) = minimise(records, lambda u: lam * u, lam, msg.w[None], limit, pooled=True)
        if not self.private:
            return np.asarray(w)
        return np.asarray(w + self.sensitivity(records) * self.noise.draw(records, records.n_agents, msg.t, 0))


WITHOUT_NOISE = NoisyMinimum(0.0, Normal(0.0), Normal(0.0), 1.0)  # to a gradient that one record could have


def build_chaudhuri(facts: Facts, budget: Budget, choice: Choice) -> NoisyMinimum:
    """The minimiser whose radial noise spends the budget."""
    if not budget.private:
        return WITHOUT_NOISE
    perturbation.check_loss(facts)
    epsilon = (1 - MASK_SHARE) * budget.epsilon
    lam = _quiet_scores(facts, choice["score_noise"], _radial_std(facts, epsilon), epsilon)
    mu = convexity(facts, lam, pooled=True)
    return NoisyMinimum(lam, Radial.of(facts, mu, epsilon), Radial(1 / (MASK_SHARE * budget.epsilon)))


def build_output(facts: Facts, budget: Budget, choice: Choice) -> OutputPerturbation:
    """The minimiser that radial noise on it hides; the budget is one release."""
    if not budget.private:
        return OutputPerturbation(0.0, Radial(0.0), 1.0)
    perturbation.check_loss(facts)
    mu = facts.row_norm * _radial_std(facts, budget.epsilon) / choice["score_noise"]
    return OutputPerturbation(max(0.0, mu - convexity(facts, 0.0, pooled=True)), Radial(1 / budget.epsilon))


def build_gaussian(facts: Facts, budget: Budget, choice: Choice) -> NoisyMinimum:
    """The minimiser whose Gaussian noise spends the budget: amp where choice has a "jacobian", else kifer."""
    if not budget.private:
        return WITHOUT_NOISE
    perturbation.check_loss(facts)
    dp_delta = (1 - MASK_SHARE) * budget.dp_delta
    mask = Normal(Budget(MASK_SHARE * budget.epsilon, MASK_SHARE * budget.dp_delta).multiplier(1))
    left = calibrate(GeneralRelease(1.0, dp_delta), budget.epsilon, budget.dp_delta, 1, beside=((mask.outside(), 1),))
    assert isinstance(left, GeneralRelease)
    if "jacobian" in choice:
        lam = max(0.0, _least(facts, choice["jacobian"] * left.epsilon))
    else:
        std = record_gradient(facts) * perturbation.size(facts, dp_delta) / left.epsilon  # of an entry of b, nearly
        lam = _quiet_scores(facts, choice["score_noise"], std, left.epsilon)
    mu = convexity(facts, lam, pooled=True)
    return NoisyMinimum(lam, Normal.of(facts, mu, left.epsilon, dp_delta), mask)


def _radial_std(facts: Facts, epsilon: float) -> float:
    """The std of an entry of radial noise that hides one record's gradient, nearly."""
    return record_gradient(facts) * math.sqrt(math.prod(facts.shape)) / epsilon


def _quiet_scores(facts: Facts, score_noise: float, std: float, epsilon: float) -> float:
    """The Lambda with which b, of std `std` in an entry, adds noise of std score_noise to a score, or less."""
    return max(facts.row_norm * std / score_noise, _least(facts, epsilon / 2))


def _least(facts: Facts, epsilon: float) -> float:
    """The Lambda with which the determinant takes epsilon."""
    return perturbation.least_convexity(facts, epsilon) - convexity(facts, 0.0, pooled=True)


AMP = Entry("amp", "one approximate minimiser of an objective with Gaussian noise, by a curator", build_gaussian, grid(
    jacobian=(0.1, 0.03, 0.01, 0.003),
), constants={
    "jacobian": "share of epsilon that the determinant may take; a smaller share adds more regularisation",
})  # fmt: skip
CHAUDHURI = Entry(
    "chaudhuri", "one minimiser of an objective with radial noise, pure epsilon, by a curator", build_chaudhuri,
    grid(score_noise=(0.5, 0.25, 0.1, 1.0)),
)  # fmt: skip
CHAUDHURI_OUTPUT = Entry(
    "chaudhuri-output", "one minimiser with radial noise on it, pure epsilon, by a curator", build_output,
    grid(score_noise=(0.5, 0.25, 0.1, 1.0)),
)  # fmt: skip
KIFER = Entry("kifer", "one minimiser of an objective with Gaussian noise, by a curator", build_gaussian, grid(
    score_noise=(1.0, 0.5, 0.25, 0.1),
))  # fmt: skip
