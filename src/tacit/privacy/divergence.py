"""How far apart one record can push the law of a run, and the epsilon that follows: three ways to bound it.

    renyi_epsilon      Renyi divergences, which add up over releases
    gaussian_epsilon   one Gaussian release that reveals no less than the whole run
    composed           the law of the privacy loss, composed numerically by dp-accounting on a grid that errs upward

Everything is per unit of noise: a Laplace shift t = |s| / b, a Gaussian mean mu = |s| / sigma. The profile of a
pair of laws (P, Q) is delta(epsilon) = sup_A P(A) - e^epsilon Q(A); one pair dominates another when its profile
is nowhere below. R(t) is the Renyi divergence of order alpha between Laplace noise and itself shifted by t.

1. A shift s costs most in one coordinate, for a given |s|_1: Laplace(t1) x Laplace(t2) is dominated by
   Laplace(t1 + t2). For |epsilon| <= A = t1 + t2 the profile of the one is 1 - e^((epsilon - A)/2), and that of
   the two integrates to 1 - (1 + y/2) e^((epsilon - A)/2) with y >= 0; beyond A both are trivial. Induct.

2. For |s|_1 <= A and |s|_2 <= B, the Renyi divergence is at most k R(B^2/A) with k = (A/B)^2 coordinates.
   (alpha - 1) R(t) is the cumulant function of a centred two-point variable whose upper value has weight
   alpha/(2 alpha - 1) > 1/2; tilting by t >= 0 adds to that weight, so the third cumulant stays negative and R'
   is concave. Then R(t)/t is concave and nondecreasing, hence below its tangent m + n t at B^2/A with m, n >= 0:
   sum_j R(t_j) <= m A + n B^2 = k R(B^2/A). Without a bound on |s|_1, k -> infinity: alpha B^2 / 2, a Gaussian's.

3. Laplace shifts with sum_j t_j^2 <= V and t_j <= c, over coordinates and adaptive rounds, are dominated by one
   Gaussian mean mu with mu^2 = V + 2c/3. Let G(epsilon, v) be the profile of the mean sqrt(v), and replace by
   Laplace(t) a part t^2 of its v. With E over the privacy loss L_t of Laplace(t) and phi(y) = exp(-y^2/(2v)),

       d/dt E G(epsilon - L_t, v(t)), v' = -2t,  is a positive multiple of
       (1 - t/2) mean of phi over [epsilon - t, epsilon + t]  -  (phi(epsilon - t) + phi(epsilon + t)) / 2,

   which is largest, relative to its last term, at epsilon = 0 (their ratio is the mean over |u| <= t of
   e^((t^2 - u^2)/2v) cosh(epsilon u/v) / cosh(epsilon t/v), which falls in |epsilon|), and there has the sign of
   (1 - t/2) sum_n r^n/(2n+1)!! - 1,  r = t^2/v. For t >= 2 the first factor is <= 0; else, as (2n+1)!! >= 3^n, this
   is <= 0 when r <= 3t/2, that is v >= 2t/3. So a residue of 2c/3, never spent, lets every Laplace coordinate be
   traded for a Gaussian one. Backward in time, delta after any history is at most G(epsilon, V left + 2c/3): the
   shifts may depend on what was released before, and Gaussian rounds may stand between.
   Without the residue it is false: a single Laplace(t) has total variation near t/2, a Gaussian t/sqrt(2 pi).

dp-accounting is imported when a law is first composed (that takes over a second); where it is not installed this one
bound is left out, and a note says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tacit.privacy.release import (
    BinomialRelease,
    Events,
    GaussianRelease,
    GeneralRelease,
    LaplaceRelease,
    Release,
    pure_epsilon,
)
from tacit.types import Array

_SQRT2 = math.sqrt(2.0)
_FFT_SLACK = 1e-11  # taken off delta for the rounding of the convolutions, which is near 1e-13
_MOST_KINDS = 12  # different releases beyond which composing their laws is no longer quick


def laplace_renyi(t: float, alpha: Array) -> Array:
    """R(t) = ln( (alpha e^((alpha-1)t) + (alpha-1) e^(-alpha t) ) / (2 alpha - 1) ) / (alpha - 1)."""
    if t < 1e-4:
        return alpha * (t * t / 2)  # an upper bound, t/3 above R relatively, where the exact form cancels
    whole = np.log(2 * alpha - 1)
    rise = np.log(alpha) - whole + (alpha - 1) * t
    fall = np.log(alpha - 1) - whole - alpha * t
    # near t = 1e-4 the logarithms cancel to a relative 2e-7: rounded up beyond that
    return np.asarray(np.minimum((1 + 1e-6) * np.logaddexp(rise, fall) / (alpha - 1), alpha * (t * t / 2)))


def coin_renyi(epsilon: float, alpha: Array) -> Array:
    """ln( (e^(alpha epsilon) + e^((1-alpha) epsilon)) / (1 + e^epsilon) ) / (alpha - 1): of the coin that tells which
    of two data sets it saw with odds e^epsilon to one, the worst of all epsilon-private releases.
    """
    square = alpha * (epsilon * epsilon / 2)  # an upper bound (Bun & Steinke 2016)
    if epsilon < 1e-4 or math.isinf(epsilon):
        return np.asarray(square)
    whole = np.logaddexp(alpha * epsilon, (1 - alpha) * epsilon) - np.logaddexp(0.0, epsilon)
    # rounded up beyond what cancels: 2e-16, or as much of `whole` where that is large
    return np.asarray(np.minimum(((1 + 1e-6) * whole + 1e-15) / (alpha - 1), square))


def shift_renyi(l1: float, l2: float, alpha: Array) -> Array:
    """The largest sum_j R(|s_j|) over |s|_1 <= l1, |s|_2 <= l2: statement 2."""
    if l2 == 0 or math.isinf(l2):
        return np.full_like(alpha, l2)
    if math.isinf(l1):
        return np.asarray(alpha * (l2 * l2 / 2))
    return np.asarray((l1 / l2) ** 2 * laplace_renyi(l2 * l2 / l1, alpha))


def sampled_gaussian_renyi(rate: float, multiplier: float, alpha: Array) -> Array:
    """ln( sum_k C(alpha,k) (1-q)^(alpha-k) q^k e^(k(k-1)/(2 sigma^2)) ) / (alpha-1) for Poisson samples of rate q.

    The sum is exact at whole orders (Mironov, Talwar & Zhang 2019). Between them (alpha-1) R is convex in alpha,
    so the chord is a bound; above the last order there is none.
    """
    orders, moments = _sampled_moments(rate, multiplier)
    return np.asarray(np.interp(alpha, orders, moments, right=np.inf) / (alpha - 1))


@lru_cache(maxsize=64)
def _sampled_moments(rate: float, multiplier: float) -> tuple[Array, Array]:
    """(alpha - 1) R at whole orders, from alpha = 1 on, where it is 0."""
    orders = np.unique(np.concatenate([np.arange(1.0, 65.0), np.geomspace(65, 1024, 40).round()]))
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1.0, 1025.0)))])
    moments = []
    for order in orders.astype(int):
        k = np.arange(order + 1)
        choose = log_factorial[order] - log_factorial[k] - log_factorial[order - k]
        sampled = (order - k) * math.log1p(-rate) + k * math.log(rate)
        moments.append(float(np.logaddexp.reduce(choose + sampled + k * (k - 1) / (2 * multiplier**2))))
    return orders, np.array(moments)


def renyi_epsilon(curve: Callable[[Array], Array], dp_delta: float) -> float:
    """min over alpha of R + ln(1 - 1/alpha) - ln(alpha delta)/(alpha - 1)   (Canonne, Kamath & Steinke 2020).

    Every order gives a valid epsilon, so a grid is safe; it is refined twice around its best order.
    """
    low, high = math.log(1e-5), math.log(1e9)
    best = math.inf
    for n in (400, 60, 60):
        at = np.linspace(low, high, n)
        alpha = 1 + np.exp(at)
        epsilon = curve(alpha) + np.log1p(-1 / alpha) - (math.log(dp_delta) + np.log(alpha)) / (alpha - 1)
        i = int(epsilon.argmin())
        best = min(best, float(epsilon[i]))
        low, high = float(at[max(i - 1, 0)]), float(at[min(i + 1, n - 1)])
    return max(0.0, best)


def gaussian_delta(epsilon: float, mu: float) -> float:
    """delta = P[N > epsilon/mu - mu/2] - e^epsilon P[N > epsilon/mu + mu/2]   (Balle & Wang 2018)."""
    near, far = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    # e^epsilon e^(-far^2/2) = e^(-near^2/2): nothing overflows, however large epsilon is
    return math.erfc(near / _SQRT2) / 2 - math.exp(_log_scaled_tail(far) - near * near / 2)


def gaussian_epsilon(mu: float, dp_delta: float) -> float:
    """The epsilon at which a Gaussian mean mu has the given delta, rounded up."""
    if mu > 1e12 or (mu > 0 and dp_delta == 0):
        return math.inf
    dp_delta -= min(1e-15, dp_delta / 10)  # what the differences of tails below may round off
    if mu == 0 or gaussian_delta(0.0, mu) <= dp_delta:
        return 0.0
    low, high = 0.0, mu * mu / 2 + mu * math.sqrt(2 * math.log(1 / dp_delta))  # Chernoff on the privacy loss
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if gaussian_delta(middle, mu) <= dp_delta else (middle, high)
    return high


def gaussian_variation(mu: float) -> float:
    """delta at epsilon 0: P[|N| < mu/2] = 2 Phi(mu/2) - 1, rounded up."""
    return min(1.0, math.erf(mu / (2 * _SQRT2)) * (1 + 1e-15))


def _log_scaled_tail(x: float) -> float:
    """ln( P[N > x] e^(x^2/2) )."""
    if x < 30:
        return math.log(math.erfc(x / _SQRT2) / 2) + x * x / 2
    # asymptotic, cut after a negative term: a lower bound, which can only raise delta
    return math.log1p(-1 / x**2 + 3 / x**4 - 15 / x**6) - math.log(x * math.sqrt(2 * math.pi))


class Composed(NamedTuple):
    """Bounds from the composed law: epsilon at a delta, the delta at epsilon 0, and why the law was left out."""

    epsilon: float = math.inf
    variation: float = 1.0
    note: str = ""


@lru_cache(maxsize=256)
def composed(events: tuple[tuple[Release, int], ...], dp_delta: float) -> Composed:
    """Compose the releases. The 1-D Laplace law is the worst case for |s|_1, whatever the number of coordinates."""
    rounds = sum(n for _, n in events)
    if not math.isfinite(sum(pure_epsilon(r) for r, _ in events if not isinstance(r, GaussianRelease))):
        return Composed()
    if any(isinstance(r, GeneralRelease) and r.epsilon > 700 for r, _ in events):  # where the library's exp overflows
        return Composed(note="pld left out: a release has an epsilon above 700")
    if len(events) > _MOST_KINDS or rounds > 2e8 or dp_delta < 100 * _FFT_SLACK:
        return Composed(note=f"pld left out: {len(events)} kinds of release, {rounds} in all, delta {dp_delta:g}")
    try:
        from dp_accounting.pld import common
        from dp_accounting.pld import privacy_loss_distribution as law
    except ImportError:
        return Composed(note="pld left out: dp-accounting is not installed; with it epsilon may come out smaller")
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
        elif isinstance(r, GaussianRelease) and r.sampled:
            one = law.from_gaussian_mechanism(r.multiplier, value_discretization_interval=cell, sampling_prob=r.rate)
        else:
            continue
        whole = whole.compose(_repeat(one, n))
    epsilon = _smallest_epsilon(whole.get_delta_for_epsilon, dp_delta - _FFT_SLACK)
    return Composed(epsilon, min(1.0, float(whole.get_delta_for_epsilon(0.0)) + _FFT_SLACK))


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
    if isinstance(release, BinomialRelease):
        return 4 * release.moved**2 / release.coins
    full = release.multiplier**-2
    return min(1.0, full, release.rate**2 * math.expm1(min(full, 50.0)))
