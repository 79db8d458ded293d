"""Total (epsilon, delta) of a run <-> noise of one release.

Rounds compose; agents do not, because a record lives at one of them: the total of a run is the largest among its
agents. Every bound that holds is computed and named, and the smallest is the guarantee; the proofs stand in
`tacit.privacy.divergence`.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tacit.errors import SpecError
from tacit.privacy import binomial, divergence
from tacit.privacy.release import (
    BinomialRelease,
    Events,
    GaussianRelease,
    GeneralRelease,
    LaplaceRelease,
    Release,
    merge,
    pure_epsilon,
)
from tacit.types import Array

MEANING = {
    "basic": "the epsilons of the releases added up; holds at the sum of their deltas, 0 for Laplace noise",
    "rdp": "Renyi divergences of the releases added up, then converted at the best order",
    "gdp": "the run reveals no more than one Gaussian release, whose epsilon is exact",
    "pld": "the law of the privacy loss, composed numerically on a grid that errs upward (dp-accounting)",
}
_FOUR_DIGITS_UP = decimal.Context(prec=4, rounding=decimal.ROUND_CEILING)


def upward(epsilon: float) -> str:
    """Spell an epsilon in four digits, rounded up: never less than what is proved (to twelve digits, a float's own)."""
    return f"{float(_FOUR_DIGITS_UP.create_decimal(f'{epsilon:.12g}')):.4g}"


@dataclass(frozen=True)
class ValidEpsilon:
    """One valid epsilon, by the name of its argument in MEANING."""

    name: str
    epsilon: float


@dataclass(frozen=True)
class Total:
    """A run is (epsilon, dp_delta)-differentially private by each bound listed, smallest epsilon first.

    `variation` is the least valid delta at epsilon 0: how far apart one record pushes the law of the run, in total
    variation.
    """

    dp_delta: float
    bounds: tuple[ValidEpsilon, ...]
    notes: tuple[str, ...] = ()
    variation: float = 1.0

    @property
    def epsilon(self) -> float:
        """The smallest valid epsilon; infinite when no bound holds."""
        return self.bounds[0].epsilon if self.bounds else math.inf

    @property
    def name(self) -> str:
        """The name of the argument that gives the smallest epsilon."""
        return self.bounds[0].name if self.bounds else "none"

    def __str__(self) -> str:
        return f"({upward(self.epsilon)}, {self.dp_delta:g})-DP by {self.name}"


def total(events: Events, dp_delta: float, pld: bool = True) -> Total:
    """The cost of adaptive releases about the same record, together. `pld=False` leaves out the slow bound."""
    if not 0 <= dp_delta < 1:
        raise SpecError(f"dp_delta is a probability below 1: got {dp_delta}; 1e-6 is usual, 0 asks for pure epsilon.")
    made = merge(events)
    mu = _gaussian_mean(made)
    gdp = divergence.gaussian_epsilon(mu, dp_delta)
    epsilons = {"basic": _basic(made, dp_delta), "rdp": _rdp(made, dp_delta), "gdp": gdp}
    law = divergence.Composed()
    if pld and any(not isinstance(r, GaussianRelease) or r.sampled for r, _ in made):  # for the others gdp is exact
        law = divergence.composed(made, dp_delta)
    epsilons["pld"] = law.epsilon
    held = [ValidEpsilon(name, epsilon) for name, epsilon in epsilons.items() if epsilon < math.inf]
    variation = min(divergence.gaussian_variation(mu), law.variation)
    return Total(
        dp_delta, tuple(sorted(held, key=lambda b: b.epsilon)), (law.note,) if law.note else (), variation
    )


def best_guess(spent: Total, dp_delta: float, held_back: float = 0.0) -> float:
    """Return the largest probability with which a guess at even odds between two neighbours is right.

    For laws P and Q of the run it is (1 + delta(0)) / 2, where delta(0) = sup_A P(A) - Q(A) is their total variation.
    The least of three bounds is taken: 2 Phi(mu/2) - 1 of the Gaussian release that reveals no less than the run (gdp),
    delta(0) of the composed law (pld), and what (epsilon, dp_delta) allows any mechanism.

    The first two are for continuous noise. Noise of whole steps, and masks that can fail, add at most `held_back`, the
    part of dp_delta that the accountant did not get: at epsilon 0 a gap costs 2 T gap, and (1 + e^epsilon) T gap is
    covered (tacit.privacy.lattice). The neighbours are those of the run's own adjacency, because the releases are.
    """
    return min((1 + spent.variation + held_back) / 2, any_guess(spent.epsilon, dp_delta))


def any_guess(epsilon: float, dp_delta: float) -> float:
    """Return the same for all mechanisms with this epsilon and delta: (e^epsilon + delta) / (e^epsilon + 1).

    The sum of both kinds of error of a test of (epsilon, delta)-DP is at least 2 (1 - delta) / (e^epsilon + 1).
    """
    other = math.exp(-epsilon)  # which stays finite
    return (1 + dp_delta * other) / (1 + other)


def calibrate(
    release: Release, target_epsilon: float, dp_delta: float, rounds: int, local_steps: int = 1, beside: Events = ()
) -> Release:
    """The release of the same shape with the least noise whose total over the run is at most the target.

    Only the noise is scaled: LaplaceRelease(1) is calibrated through |s|_1, LaplaceRelease(inf, 1) through |s|_2,
    LaplaceRelease(40, 1) through both, and GaussianRelease(1) comes back with its multiplier. `total` of the
    result, with the releases made `beside` it, lies within 0.1 % of the target, from below.
    """
    count = rounds * local_steps
    if not 0 < target_epsilon < math.inf or count < 1:
        raise SpecError(f"a budget needs a positive epsilon and a round: got {target_epsilon} over {count} releases.")

    def spent(factor: float, pld: bool = False) -> float:
        return total([(release.quieter(factor), count), *beside], dp_delta, pld).epsilon

    low = high = 1.0  # noise divided by `low` is enough, by `high` is not
    while spent(low) > target_epsilon:
        low /= 4
        if low < 1e-12:
            raise SpecError(f"no noise gives {release} a total of {target_epsilon}: bound s, or raise dp_delta.")
    while spent(high) <= target_epsilon:
        high *= 4
        if high > 1e24:
            raise SpecError(f"{release} reveals nothing of a record: there is no noise to calibrate.")
    while high / low > 1 + 1e-6:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if spent(middle) <= target_epsilon else (low, middle)
    return release.quieter(_sharpen(low, lambda factor: spent(factor, pld=True), target_epsilon))


@lru_cache(maxsize=1024)
def multiplier_of(epsilon: float, dp_delta: float, releases: int = 1, rate: float = 1.0) -> float:
    """Return the noise multiplier with which Gaussian releases together cost (epsilon, dp_delta); 1 / mu for one."""
    found = calibrate(GaussianRelease(1.0, rate), epsilon, dp_delta, releases)
    assert isinstance(found, GaussianRelease)
    return found.multiplier


def _sharpen(low: float, spent: Callable[[float], float], target: float) -> float:
    """The largest factor >= low found to keep spent(factor) <= target; spent is costly, and near a power."""
    best, high = math.log(low), math.inf
    points = [(best, spent(low))]
    while 0 < points[0][1] < target * (1 - 8e-4) and len(points) < 40:
        near = sorted(points, key=lambda point: abs(math.log(point[1] / target)))[:2]
        slope = math.log(near[0][1] / near[1][1]) / (near[0][0] - near[1][0]) if len(near) > 1 else 1.5
        x = near[0][0] + math.log(target * (1 - 3e-4) / near[0][1]) / max(slope, 0.5)
        if not best < x < high:
            x = (best + high) / 2 if high < math.inf else best + 0.5
        epsilon = spent(math.exp(x))
        if epsilon <= target:
            best = x
            points.insert(0, (x, epsilon))  # the first point is always the best
        else:
            high = x
            points.append((x, epsilon))
    return math.exp(best)


def _basic(events: Events, dp_delta: float) -> float:
    """sum of the epsilons, where the deltas add up to dp_delta at most; neither Gaussian nor binomial noise has one."""
    return float(sum(n * pure_epsilon(r) for r, n in events)) if revealed(events) <= dp_delta else math.inf


def revealed(events: Events) -> float:
    """The probability that some release reveals the record, at most: the sum of their deltas."""
    return float(sum(n * r.dp_delta for r, n in events if isinstance(r, GeneralRelease | BinomialRelease)))


def _rdp(events: Events, dp_delta: float) -> float:
    if not events:
        return 0.0
    dp_delta -= revealed(events)  # what is left for the releases, given that none of them reveals the record
    if dp_delta <= 0:
        return math.inf
    return divergence.renyi_epsilon(lambda alpha: np.asarray(sum(n * _renyi(r, alpha) for r, n in events)), dp_delta)


def _renyi(release: Release, alpha: Array) -> Array:
    if isinstance(release, LaplaceRelease):
        return divergence.shift_renyi(*release.norms[:2], alpha)
    if isinstance(release, GeneralRelease):
        return divergence.coin_renyi(release.epsilon, alpha)
    if isinstance(release, BinomialRelease):
        return binomial.renyi(release, alpha)
    if release.sampled:
        return divergence.sampled_gaussian_renyi(release.rate, release.multiplier, alpha)
    return np.asarray(alpha / (2 * release.multiplier**2))


def _gaussian_mean(events: Events) -> float:
    """mu of one Gaussian release that reveals no less than all of these; infinite if none is known.

    mu^2 = sum (|s|_2 / noise)^2 + (2/3) max|s_j| / b, the last term only if there is Laplace noise.
    """
    residue = square = 0.0
    for r, n in events:
        if isinstance(r, LaplaceRelease):
            square += n * r.norms[1] ** 2
            residue = max(residue, 2 / 3 * r.norms[2])
        elif isinstance(r, GaussianRelease) and not r.sampled:
            square += n * r.multiplier**-2
        else:
            return math.inf
    return math.sqrt(square + residue)
