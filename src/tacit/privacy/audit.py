"""Lower bounds on epsilon from samples: what an attacker who guesses this well proves about a mechanism.

A score is any number computed from a release, larger where a record seems to be in the data. Every test
"score >= c" of an (epsilon, delta)-private mechanism obeys

    TPR <= e^epsilon FPR + delta    and    1 - FPR <= e^epsilon (1 - TPR) + delta,

so rates that are certified from samples certify an epsilon from below. A weak score gives a small bound, never a
wrong one; the likelihood ratio (`laplace_scores`, `gaussian_scores`) is the strongest.

    epsilon_lower_bound    no assumption; sees epsilon up to about ln(samples) only
    mu_lower_bound         for a claim of Gaussian shape, which one test settles: sees further
    one_run_lower_bound    many records at once, each in or out by a coin (Steinke, Nasr & Jagielski 2023)

Each holds with the stated confidence, over the draws of the noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np

from tacit.errors import SpecError
from tacit.types import Array

_NORMAL = NormalDist()
_CHOOSING = 4  # one score in four chooses the threshold, the others certify
_GUESSING = (1.0, 0.5, 0.2, 0.05)  # shares of the records that the one-run attack dares to guess


def clopper_pearson(successes: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """(low, high): each is beyond the true rate with probability at most (1 - confidence) / 2."""
    if not 0 <= successes <= trials or not 0 < confidence < 1:
        raise SpecError(f"{successes} of {trials} at confidence {confidence} is not a count with a confidence.")
    miss = (1 - confidence) / 2
    return _rate_at_least(successes, trials, miss), 1 - _rate_at_least(trials - successes, trials, miss)


def epsilon_lower_bound(scores_in: Array, scores_out: Array, dp_delta: float = 0.0, confidence: float = 0.95) -> float:
    """Epsilon at dp_delta, at least. The threshold is chosen on some of the scores, and certified on the others."""
    scores_in, scores_out = _checked(scores_in, confidence), _checked(scores_out, confidence)
    threshold, above = _best_test(scores_in[::_CHOOSING], scores_out[::_CHOOSING], dp_delta)
    held = np.arange(max(len(scores_in), len(scores_out))) % _CHOOSING > 0
    hit, miss = (s[held[: len(s)]] >= threshold for s in (scores_in, scores_out))
    if not above:  # the same test for absence: the roles of the two data sets are exchanged
        hit, miss = ~miss, ~hit
    low, _ = clopper_pearson(int(hit.sum()), len(hit), confidence)
    _, high = clopper_pearson(int(miss.sum()), len(miss), confidence)
    return math.log((low - dp_delta) / high) if low - dp_delta > high else 0.0


def mu_lower_bound(scores_in: Array, scores_out: Array, threshold: float = 0.0, confidence: float = 0.95) -> float:
    """mu, at least, of a mechanism claimed to reveal no more than a Gaussian mean mu: Phi^-1(TPR) - Phi^-1(FPR).

    The threshold must be fixed in advance: 0 suits log-likelihood ratios. It refutes a claim of that shape whatever
    the truth is; read as an epsilon it assumes the shape.
    """
    scores_in, scores_out = _checked(scores_in, confidence), _checked(scores_out, confidence)
    low, _ = clopper_pearson(int((scores_in >= threshold).sum()), len(scores_in), confidence)
    _, high = clopper_pearson(int((scores_out >= threshold).sum()), len(scores_out), confidence)
    return _NORMAL.inv_cdf(low) - _NORMAL.inv_cdf(high) if 0 < high < low < 1 else 0.0


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
    law = np.exp(_log_binomial(guesses, 1 / (1 + math.exp(-epsilon))))
    below = np.cumsum(law[:right][::-1]) / np.arange(1, right + 1)
    return float(law[right:].sum() + 2 * records * dp_delta * below.max(initial=0.0))


def _rate_at_least(successes: int, trials: int, risk: float) -> float:
    """The p at which P[Bin(n, p) >= successes] = risk, rounded down."""
    if successes == 0:
        return 0.0
    low, high = 0.0, 1.0
    while high - low > 1e-12:
        p = (low + high) / 2
        tail = np.exp(np.logaddexp.reduce(_log_binomial(trials, p)[successes:]))
        low, high = (p, high) if tail <= risk else (low, p)
    return low


def _log_binomial(n: int, p: float) -> Array:
    """ln P[Bin(n, p) = k] for k = 0 .. n."""
    k = np.arange(n + 1)
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    return np.asarray(
        log_factorial[n] - log_factorial - log_factorial[::-1] + k * math.log(p) + (n - k) * math.log1p(-p)
    )


def _best_test(scores_in: Array, scores_out: Array, dp_delta: float) -> tuple[float, bool]:
    """(threshold, whether the test is for presence) with the largest epsilon that these scores suggest."""
    pooled = np.unique(np.concatenate([scores_in, scores_out]))
    thresholds = pooled[np.linspace(0, len(pooled) - 1, min(len(pooled), 2000)).astype(int)]
    tpr, fpr = (1 - np.searchsorted(np.sort(s), thresholds) / len(s) for s in (scores_in, scores_out))
    n_in, n_out = len(scores_in), len(scores_out)
    present = _suggested(tpr, n_in, fpr, n_out, dp_delta)
    absent = _suggested(1 - fpr, n_out, 1 - tpr, n_in, dp_delta)
    above = bool(present.max() >= absent.max())
    return float(thresholds[int((present if above else absent).argmax())]), above


def _suggested(hit: Array, n_hit: int, miss: Array, n_miss: int, dp_delta: float) -> Array:
    """ln((hit - delta) / miss), the rates moved two deviations to the cautious side (Wilson's interval)."""
    low, high = _wilson(hit, n_hit, -2.0), _wilson(miss, n_miss, 2.0)
    return np.asarray(np.log(np.maximum(low - dp_delta, 1e-300) / high))


def _wilson(rate: Array, n: int, z: float) -> Array:
    middle = rate + z * z / (2 * n)
    return np.asarray((middle + z * np.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))) / (1 + z * z / n))


def _checked(scores: Array, confidence: float) -> Array:
    """Scores rounded to nine digits: the last bits of a simulated score may tell of the side it was drawn on."""
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim != 1 or len(scores) < 2 * _CHOOSING or not np.isfinite(scores).all() or not 0 < confidence < 1:
        raise SpecError(
            f"an audit needs {2 * _CHOOSING} finite scores a side and a confidence in (0, 1): got {scores.shape} "
            f"and {confidence}. Draw more."
        )
    return scores.round(9)
