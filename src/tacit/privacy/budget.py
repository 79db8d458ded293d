"""Total (epsilon, delta) of a run <-> noise of one release.

Rounds compose; agents do not, because a record lives at one of them: the total of a run is the largest among its
agents. Every bound that holds is computed and named, and the smallest is the guarantee; the proofs stand in
`tacit.privacy.divergence`. dp-accounting is imported when a privacy loss distribution is first asked for (that
takes over a second); where it is not installed that one bound is left out, and a note says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from tacit.errors import SpecError
from tacit.privacy import divergence
from tacit.privacy.release import Events, GaussianRelease, GeneralRelease, LaplaceRelease, Release, merge
from tacit.types import Array

MEANING = {
    "basic": "the epsilons of the releases added up; holds at the sum of their deltas, 0 for Laplace noise",
    "rdp": "Renyi divergences of the releases added up, then converted at the best order",
    "gdp": "the run reveals no more than one Gaussian release, whose epsilon is exact",
    "pld": "the law of the privacy loss, composed numerically on a grid that errs upward (dp-accounting)",
}
_FFT_SLACK = 1e-11  # taken off delta for the rounding of the convolutions, which is near 1e-13
_MOST_KINDS = 12  # different releases beyond which composing their laws is no longer quick


@dataclass(frozen=True)
class Bound:
    """One valid epsilon, by the name of its argument."""

    name: str
    epsilon: float

    @property
    def meaning(self) -> str:
        """The argument, in one line."""
        return MEANING[self.name]


@dataclass(frozen=True)
class Guarantee:
    """A run is (epsilon, dp_delta)-differentially private by each bound listed, smallest epsilon first."""

    dp_delta: float
    bounds: tuple[Bound, ...]
    notes: tuple[str, ...] = ()

    @property
    def epsilon(self) -> float:
        """The smallest valid epsilon; infinite when no bound holds."""
        return self.bounds[0].epsilon if self.bounds else math.inf

    @property
    def name(self) -> str:
        """The argument that gives it."""
        return self.bounds[0].name if self.bounds else "none"

    def __str__(self) -> str:
        return f"({self.epsilon:.4g}, {self.dp_delta:g})-DP by {self.name}"


def total(events: Events, dp_delta: float, pld: bool = True) -> Guarantee:
    """What adaptive releases about the same record cost together. `pld=False` leaves out the slow bound."""
    if not 0 <= dp_delta < 1:
        raise SpecError(f"dp_delta is a probability below 1: got {dp_delta}; 1e-6 is usual, 0 asks for pure epsilon.")
    made = merge(events)
    epsilons = {"basic": _basic(made, dp_delta), "rdp": _rdp(made, dp_delta), "gdp": _gdp(made, dp_delta)}
    note = ""
    if pld and any(not isinstance(r, GaussianRelease) or r.sampled for r, _ in made):  # for the others gdp is exact
        epsilons["pld"], note = _pld(made, dp_delta)
    held = [Bound(name, epsilon) for name, epsilon in epsilons.items() if epsilon < math.inf]
    return Guarantee(dp_delta, tuple(sorted(held, key=lambda b: b.epsilon)), (note,) if note else ())


def total_over_agents(agents: Iterable[Events], dp_delta: float, pld: bool = True) -> Guarantee:
    """The guarantee of the agent that spent most: each record lives at one agent, so agents do not add up."""
    different = sorted({merge(events) for events in agents}, key=repr) or [()]
    return max((total(events, dp_delta, pld) for events in different), key=lambda guarantee: guarantee.epsilon)


def calibrate(
    release: Release,
    target_epsilon: float,
    dp_delta: float,
    rounds: int,
    local_steps: int = 1,
    pld: bool = True,
    beside: Events = (),
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
    return release.quieter(_sharpen(low, lambda factor: spent(factor, pld=True), target_epsilon) if pld else low)


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
    """sum of the epsilons, where the deltas add up to no more than dp_delta; a Gaussian release has no epsilon."""
    return float(sum(n * _epsilon(r) for r, n in events)) if _revealed(events) <= dp_delta else math.inf


def _epsilon(release: Release) -> float:
    if isinstance(release, GaussianRelease):
        return math.inf
    return release.l1 if isinstance(release, LaplaceRelease) else release.epsilon


def _revealed(events: Events) -> float:
    """The probability that some release reveals the record, at most: the sum of their deltas."""
    return float(sum(n * r.dp_delta for r, n in events if isinstance(r, GeneralRelease)))


def _rdp(events: Events, dp_delta: float) -> float:
    if not events:
        return 0.0
    dp_delta -= _revealed(events)  # what is left for the releases, given that none of them reveals the record
    if dp_delta <= 0:
        return math.inf
    return divergence.renyi_epsilon(lambda alpha: np.asarray(sum(n * _renyi(r, alpha) for r, n in events)), dp_delta)


def _renyi(release: Release, alpha: Array) -> Array:
    if isinstance(release, LaplaceRelease):
        return divergence.shift_renyi(*release.norms[:2], alpha)
    if isinstance(release, GeneralRelease):
        return divergence.coin_renyi(release.epsilon, alpha)
    if release.sampled:
        return divergence.sampled_gaussian_renyi(release.rate, release.multiplier, alpha)
    return np.asarray(alpha / (2 * release.multiplier**2))


def _gdp(events: Events, dp_delta: float) -> float:
    """mu^2 = sum (|s|_2 / noise)^2 + (2/3) max|s_j| / b, the last term only where there is Laplace noise."""
    if not events:
        return 0.0
    residue = square = 0.0
    for r, n in events:
        if isinstance(r, LaplaceRelease):
            square += n * r.norms[1] ** 2
            residue = max(residue, 2 / 3 * r.norms[2])
        elif isinstance(r, GaussianRelease) and not r.sampled:
            square += n * r.multiplier**-2
        else:
            return math.inf
    if dp_delta == 0:
        return math.inf
    return divergence.gaussian_epsilon(math.sqrt(square + residue), dp_delta)


@lru_cache(maxsize=256)
def _pld(events: tuple[tuple[Release, int], ...], dp_delta: float) -> tuple[float, str]:
    """(epsilon, note). The 1-D Laplace law is the worst case for |s|_1, whatever the number of coordinates."""
    rounds = sum(n for _, n in events)
    if not math.isfinite(sum(_epsilon(r) for r, _ in events if not isinstance(r, GaussianRelease))):
        return math.inf, ""
    if len(events) > _MOST_KINDS or rounds > 2e8 or dp_delta < 100 * _FFT_SLACK:
        return math.inf, f"pld left out: {len(events)} kinds of release, {rounds} in all, delta {dp_delta:g}"
    try:
        from dp_accounting.pld import common
        from dp_accounting.pld import privacy_loss_distribution as law
    except ImportError:
        return math.inf, "pld left out: dp-accounting is not installed; with it epsilon may come out smaller"
    cell = _cell(events, rounds)
    whole = law.identity(value_discretization_interval=cell)
    gaussian = sum(n / r.multiplier**2 for r, n in events if isinstance(r, GaussianRelease) and not r.sampled)
    if gaussian:  # n Gaussian releases are exactly one with sqrt(n) times less noise
        whole = whole.compose(law.from_gaussian_mechanism(gaussian**-0.5, value_discretization_interval=cell))
    for r, n in events:
        if isinstance(r, LaplaceRelease):
            one = law.from_laplace_mechanism(1 / r.l1, value_discretization_interval=cell)
        elif isinstance(r, GeneralRelease):
            known = common.DifferentialPrivacyParameters(r.epsilon, r.dp_delta)
            one = law.from_privacy_parameters(known, value_discretization_interval=cell)
        elif r.sampled:
            one = law.from_gaussian_mechanism(r.multiplier, value_discretization_interval=cell, sampling_prob=r.rate)
        else:
            continue
        whole = whole.compose(_repeat(one, n))
    return _smallest_epsilon(whole.get_delta_for_epsilon, dp_delta - _FFT_SLACK), ""


def _smallest_epsilon(delta_at: Callable[[float], float], dp_delta: float) -> float:
    """min{epsilon >= 0 : delta_at(epsilon) <= delta}, rounded up. (The library's own inverse overflows past 700.)"""
    low, high = 0.0, 1.0
    if delta_at(0.0) <= dp_delta or delta_at(1e300) > dp_delta:
        return 0.0 if delta_at(0.0) <= dp_delta else math.inf
    while delta_at(high) > dp_delta:
        low, high = high, 2 * high
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if delta_at(middle) <= dp_delta else (middle, high)
    return high


def _repeat(one: Any, n: int) -> Any:
    """n-fold composition, as a square and a rest: in two steps the library bounds the tails far better."""
    m = math.isqrt(n)
    whole = one.self_compose(m).self_compose(n // m)
    return whole.compose(one.self_compose(n % m)) if n % m else whole


def _cell(events: Events, rounds: int) -> float:
    """The width of the grid of losses: rounding to it adds at most cell^2/4 a release to their variance."""
    first = events[0][0]
    if len(events) == 1 and isinstance(first, LaplaceRelease):
        # the two atoms fall on the grid, so only the mass between them, about l1/2, is rounded: 1e-5 of epsilon
        cells = min(math.sqrt(6.7e4 * first.l1), 128, 6.4e4 / math.sqrt(rounds))
        return first.l1 / max(4, math.ceil(cells))
    if len(events) == 1 and isinstance(first, GeneralRelease) and first.epsilon:
        return first.epsilon  # the two losses, +-epsilon, are the grid: nothing is rounded
    cell = math.sqrt(sum(n * _loss_variance(r) for r, n in events) / rounds) / 64 or 1.0
    coins = {r.epsilon: n * r.epsilon for r, n in events if isinstance(r, GeneralRelease) and r.epsilon}
    if not coins:
        return cell
    # the library rounds both losses of a coin up, a bias of a cell a release: the costliest coin falls on the grid
    whole = max(coins, key=lambda epsilon: coins[epsilon])
    return whole / 2.0 ** max(0, math.ceil(math.log2(whole / cell)))


def _loss_variance(release: Release) -> float:
    """About the variance of the privacy loss of one release: it only sets the width of the grid."""
    if isinstance(release, LaplaceRelease):
        return min(release.l1, release.l1**2)
    if isinstance(release, GeneralRelease):
        return min(release.epsilon, release.epsilon**2)
    full = release.multiplier**-2
    return min(1.0, full, release.rate**2 * math.expm1(min(full, 50.0)))
