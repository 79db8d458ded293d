"""The law of the privacy loss of a run, composed numerically by dp-accounting on a grid that errs upward.

dp-accounting is imported when a law is first asked for (that takes over a second); where it is not installed this one
bound is left out, and a note says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from tacit.privacy.release import Events, GaussianRelease, GeneralRelease, LaplaceRelease, Release, pure_epsilon

_FFT_SLACK = 1e-11  # taken off delta for the rounding of the convolutions, which is near 1e-13
_MOST_KINDS = 12  # different releases beyond which composing their laws is no longer quick


@lru_cache(maxsize=256)
def epsilon(events: tuple[tuple[Release, int], ...], dp_delta: float) -> tuple[float, str]:
    """(epsilon, note). The 1-D Laplace law is the worst case for |s|_1, whatever the number of coordinates."""
    rounds = sum(n for _, n in events)
    if not math.isfinite(sum(pure_epsilon(r) for r, _ in events if not isinstance(r, GaussianRelease))):
        return math.inf, ""
    if any(isinstance(r, GeneralRelease) and r.epsilon > 700 for r, _ in events):  # where the library's exp overflows
        return math.inf, "pld left out: a release has an epsilon above 700"
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
