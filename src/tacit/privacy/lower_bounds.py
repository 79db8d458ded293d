"""Lower bounds on epsilon from samples: what an attacker who guesses this well proves about a mechanism.

A score is any number computed from a release, larger where a record seems to be in the data. Every test
"score >= c" of an (epsilon, delta)-private mechanism obeys

    TPR <= e^epsilon FPR + delta    and    1 - FPR <= e^epsilon (1 - TPR) + delta,

so rates that are certified from samples certify an epsilon from below. A weak score gives a small bound, never a
wrong one; the likelihood ratio (`laplace_scores`, `gaussian_scores`) is the strongest.

    epsilon_lower_bound    no assumption; sees epsilon up to about ln(samples) only
    mu_lower_bound         for a claim of Gaussian shape, which one test settles: sees further
    one_run_lower_bound    many records at once, each in or out by a coin (Steinke, Nasr & Jagielski 2023)

Each holds with the stated confidence, over the draws of the noise. The first two compare laws, not draws: a draw with
the record and a draw without it may share their noise, and a pair that does so tells far more than two draws apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy import special

from tacit.errors import SpecError
from tacit.types import Array

_CHOOSING = 4  # one pair in four chooses the threshold, the others certify
_MOST, _REST, _LITTLE = 0.7, 0.25, 0.05  # of the risk, for the rate that decides, its opposite and how often both speak
_THRESHOLDS = 100  # that a test is chosen from: with more, luck would choose
_DIGITS = 5  # of a score: engines answer in float32
_GUESSING = (1.0, 0.5, 0.2, 0.05)  # shares of the records that the one-run attack dares to guess


def epsilon_lower_bound(scores_in: Array, scores_out: Array, dp_delta: float = 0.0, confidence: float = 0.95) -> float:
    """Epsilon at dp_delta, at least. Entry i of the one and entry i of the other are a pair; pairs are independent.

    Let a test say yes to at least one of a pair with probability s, to the first alone in a share a of those cases and
    to the second alone in a share b. Its rates are p = (1 - b) s and q = (1 - a) s, so p <= e^epsilon q + delta says

        epsilon >= ln( (1 - b - delta / s) / (1 - a) ).

    Among the pairs with a yes, a and b are counted by binomials, whatever a pair shares. The threshold is chosen on
    some of the pairs, and certified on the others.
    """
    pairs = _pairs(scores_in, scores_out, confidence)
    choosing = np.arange(pairs.shape[1]) % _CHOOSING == 0
    threshold, above = _best_test(pairs[:, choosing], dp_delta)
    first, second = pairs[:, ~choosing] >= threshold
    if not above:  # the same test for absence: the roles of the two data sets are exchanged
        first, second = ~second, ~first
    yes, risk = int((first | second).sum()), 1 - confidence
    if not yes:
        return 0.0
    only_first = rate_at_least(int((first & ~second).sum()), yes, _MOST * risk)
    only_second = rate_at_most(int((second & ~first).sum()), yes, _REST * risk)
    speaks = rate_at_least(yes, len(first), _LITTLE * risk)
    hit = 1 - only_second - dp_delta / speaks
    return math.log(hit / (1 - only_first)) if hit > 1 - only_first else 0.0


def mu_lower_bound(
    scores_in: Array, scores_out: Array, threshold: float = 0.0, confidence: float = 0.95, paired: bool = False
) -> float:
    """mu, at least, of a mechanism claimed to reveal no more than a Gaussian mean mu.

    Under the claim every test has TPR <= Phi(Phi^-1(FPR) + mu), so TPR - FPR <= 2 Phi(mu/2) - 1, with equality at
    FPR = Phi(-mu/2) alone. Nothing else is used: a difference of rates that is certified larger refutes the claim,
    whatever the truth is; only to read it as an epsilon assumes the shape. How the difference is certified:

    draws apart   A guess is right with probability (TPR + 1 - FPR) / 2 on average over the sides, so at most Phi(mu/2).
                  With as many draws on either side (the longer side is cut), the number of right guesses has no
                  heavier upper tail than a binomial of that mean (Hoeffding 1956): Clopper-Pearson bounds it.
    paired        Entry i of both has the same noise. TPR - FPR = P[yes to the first alone] - P[yes to the second
                  alone], two rates of pairs, one bounded from below and one from above. Noise that is shared says
                  yes or no to both, and only a record that makes the difference is counted: where mu is small, a
                  pair is worth many draws apart.

    The threshold must be fixed in advance: 0 suits log-likelihood ratios.
    """
    first, second = _pairs(scores_in, scores_out, confidence) >= threshold
    n, risk = len(first), 1 - confidence
    if paired:
        more = rate_at_least(int((first & ~second).sum()), n, (_MOST + _LITTLE) * risk)
        gap = more - rate_at_most(int((second & ~first).sum()), n, _REST * risk)
    else:
        gap = 2 * rate_at_least(int(first.sum() + (~second).sum()), 2 * n, risk) - 1
    return 2 * float(special.ndtri((1 + gap) / 2)) if gap > 0 else 0.0


def one_run_lower_bound(scores: Array, included: Array, dp_delta: float, confidence: float = 0.95) -> float:
    """Epsilon at dp_delta, at least, from one run in which record i was included if a fair coin said so.

    The r most telling scores are guessed, half of them "in" and half "out". A few r are tried, and share the risk.
    """
    order = np.argsort(_checked(scores, confidence), kind="stable")
    best = 0.0
    for share in _GUESSING:
        half = int(len(scores) * share / 2)
        right = int(included[order[len(order) - half :]].sum() + (~included[order[:half]]).sum())
        shared = 1 - (1 - confidence) / len(_GUESSING)
        best = max(best, guesses_lower_bound(len(scores), 2 * half, right, dp_delta, shared))
    return best


def guesses_lower_bound(records: int, guesses: int, right: int, dp_delta: float, confidence: float = 0.95) -> float:
    """The largest epsilon at which `right` of the guesses would still be too lucky."""

    def too_lucky(epsilon: float) -> bool:
        return _luck(records, guesses, right, epsilon, dp_delta) <= 1 - confidence

    if not too_lucky(0.0):
        return 0.0
    low, high = 0.0, 30.0  # beyond what any number of guesses shows
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if too_lucky(middle) else (low, middle)
    return low


def laplace_scores(views: Array, center: tuple[Array, Array], scale: tuple[float, float]) -> Array:
    """ln p_in(v) - ln p_out(v) of each view v, Laplace noise of scale b around a centre; (in, out) pairs."""
    return _ratio(views, center, scale, np.abs)


def gaussian_scores(views: Array, center: tuple[Array, Array], scale: tuple[float, float]) -> Array:
    """ln p_in(v) - ln p_out(v) of each view v, Gaussian noise of std sigma around a centre; (in, out) pairs."""
    return _ratio(views, center, scale, lambda u: np.square(u) / 2)


def _ratio(
    views: Array, center: tuple[Array, Array], scale: tuple[float, float], energy: Callable[[Array], Array]
) -> Array:
    """sum_j energy((v - c_out) / b_out) - energy((v - c_in) / b_in) + ln(b_out / b_in), over all axes but the first."""
    present, absent = (energy((views - c) / b) for c, b in zip(center, scale, strict=True))
    flat = (absent - present).reshape(len(views), -1)
    return np.asarray(flat.sum(axis=1) + flat.shape[1] * math.log(scale[1] / scale[0]))


def _luck(records: int, guesses: int, right: int, epsilon: float, dp_delta: float) -> float:
    """The probability of so many right guesses, at most.

    With delta = 0 the number of right guesses is dominated by W ~ Bin(r, 1 / (1 + e^-epsilon)), because the posterior
    odds of each coin are at most e^epsilon given the release and all other coins. With delta it is dominated by W + F,
    F independent of W, 0 <= F and E F <= 2 m delta for m records (Steinke, Nasr & Jagielski 2023). The worst F sits
    on 0 and one i, so P[W + F >= v] <= P[W >= v] + 2 m delta max_i P[v - i <= W < v] / i.
    """
    law = _binomial(guesses, 1 / (1 + math.exp(-epsilon)))
    below = np.cumsum(law[:right][::-1]) / np.arange(1, right + 1)
    return float(law[right:].sum() + 2 * records * dp_delta * below.max(initial=0.0))


def rate_at_least(successes: int, trials: int, risk: float) -> float:
    """The p at which P[Bin(n, p) >= successes] = risk: this tail is an incomplete beta function of p."""
    return float(special.betaincinv(successes, trials - successes + 1, risk)) if successes else 0.0


def rate_at_most(successes: int, trials: int, risk: float) -> float:
    """The p at which P[Bin(n, p) <= successes] = risk."""
    return 1 - rate_at_least(trials - successes, trials, risk)


def _binomial(n: int, p: float) -> Array:
    """P[Bin(n, p) = k] for k = 0 .. n."""
    k = np.arange(n + 1)
    return np.asarray(np.exp(_log_choose(n) + k * math.log(p) + (n - k) * math.log1p(-p)))


@lru_cache(maxsize=64)
def _log_choose(n: int) -> Array:
    """ln C(n, k) for k = 0 .. n."""
    log_factorial = special.gammaln(np.arange(1, n + 2))
    return np.asarray(log_factorial[n] - log_factorial - log_factorial[::-1])


def _best_test(pairs: Array, dp_delta: float) -> tuple[float, bool]:
    """(threshold, whether the test is for presence) with the largest epsilon that these pairs suggest."""
    thresholds = np.unique(np.quantile(pairs, np.linspace(0, 1, _THRESHOLDS), method="higher"))
    n = pairs.shape[1]

    def rate(scores: Array) -> Array:
        return np.asarray(1 - np.searchsorted(np.sort(scores), thresholds) / n)

    both, either = rate(pairs.min(axis=0)), rate(pairs.max(axis=0))
    only_first, only_second = rate(pairs[0]) - both, rate(pairs[1]) - both
    present = _suggested(only_first, only_second, either, n, dp_delta)
    absent = _suggested(only_first, only_second, 1 - both, n, dp_delta)
    above = bool(present.max() >= absent.max())
    return float(thresholds[int((present if above else absent).argmax())]), above


def _suggested(only_first: Array, only_second: Array, speaks: Array, n: int, dp_delta: float) -> Array:
    """ln((1 - b - delta / s) / (1 - a)), each moved three deviations to the cautious side (Wilson's interval)."""
    yes = np.maximum(speaks * n, 1.0)
    a, b = _wilson(only_first * n / yes, yes, -3.0), _wilson(only_second * n / yes, yes, 3.0)
    hit = 1 - b - dp_delta / np.maximum(_wilson(speaks, n, -3.0), 1e-300)
    return np.asarray(np.log(np.maximum(hit, 1e-300) / (1 - a)))


def _wilson(rate: Array, n: Array | int, z: float) -> Array:
    rate = np.clip(rate, 0.0, 1.0)
    middle = rate + z * z / (2 * n)
    return np.asarray((middle + z * np.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))) / (1 + z * z / n))


def _pairs(scores_in: Array, scores_out: Array, confidence: float) -> Array:
    """(2, n): as many of the one as of the other."""
    with_it, without = _checked(scores_in, confidence), _checked(scores_out, confidence)
    n = min(len(with_it), len(without))
    return np.stack([with_it[:n], without[:n]])


def _checked(scores: Array, confidence: float) -> Array:
    """Scores rounded to _DIGITS: the last bits of a simulated score may tell of the side it was drawn on."""
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim != 1 or len(scores) < 2 * _CHOOSING or not np.isfinite(scores).all() or not 0 < confidence < 1:
        raise SpecError(
            f"an audit needs {2 * _CHOOSING} finite scores a side and a confidence in (0, 1): got {scores.shape} "
            f"and {confidence}. Draw more."
        )
    return scores.round(_DIGITS)
