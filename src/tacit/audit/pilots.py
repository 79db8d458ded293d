"""Likelihood-ratio attack on draws of an unknown law, whose shape is estimated from pilot draws.

The pilot draws with the unit and without it give the mean of either side, and one covariance R V R for both: the
diagonal R holds the standard deviations of the entries, and V their correlations. Further draws are expressed in units
of this noise, and scored by the likelihood ratio of two Gaussians. A poor fit gives a small bound, never a wrong one.

    entries    R^-1 v                     ignores correlation: the sharper attack if the entries are independent
    whitened   D^(-1/2) U^T R^-1 v        V = U D U^T: sees noise that cancels in a combination of entries, for example
                                          in the difference of two rounds that have the same noise

Small eigenvalues of V are raised to FLOOR and never dropped: a combination without noise is the one that tells most.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from tacit.audit.finding import Trials
from tacit.privacy.lower_bounds import gaussian_scores
from tacit.types import Array

Sides: TypeAlias = tuple[Array, Array]  # draws (n, d) with the unit, and draws without it
Basis: TypeAlias = Callable[[Sides], Array]  # pilot draws -> (d, d): draws times this matrix are in units of the noise

LEAST = 1e-9  # the standard deviation of an entry without noise: the smallest difference tells all
FLOOR = 1e-12  # of an eigenvalue, where the mean is one: well above what float64 loses in a covariance


def entries(pilots: Sides) -> Array:
    """Return R^-1: divide every entry by its standard deviation."""
    std = np.sqrt(sum(part.var(0) for part in pilots) / 2)
    return np.diag(1 / np.where(std > 0, std, LEAST))


def whitened(pilots: Sides) -> Array:
    """Return R^-1 U D^(-1/2): entries that are uncorrelated and have variance one, but for those below FLOOR."""
    scale = entries(pilots)
    noise = np.concatenate([(part - part.mean(0)) @ scale for part in pilots])
    variance, directions = np.linalg.eigh(noise.T @ noise / len(noise))
    return np.asarray(scale @ directions / np.sqrt(np.maximum(variance, FLOOR)))


BASES: dict[str, Basis] = {"": entries, "whitened": whitened}


def fitted(pilots: Sides, draws: Sides, basis: Basis) -> Callable[[float], Trials]:
    """Return factor -> scores of the draws, where the factor multiplies all that varies."""
    units = basis(pilots)
    fit, seen = [part @ units for part in pilots], [part @ units for part in draws]
    center, middle = [part.mean(0) for part in fit], [part.mean(0) for part in seen]
    spread = _spreads(fit)

    def trials(factor: float) -> Trials:
        near = [m + factor * (c - m) for c, m in zip(center, middle, strict=True)]
        scores = [
            gaussian_scores(m + factor * (part - m), (near[0], near[1]), (factor * spread[0], factor * spread[1]))
            for part, m in zip(seen, middle, strict=True)
        ]
        return Trials(scores[0], scores[1], paired=True)

    return trials


def _spreads(fit: list[Array]) -> list[float]:
    """Return the standard deviation of either side in units of both: they differ if the data decide the scale."""
    variances = [part.var(0) for part in fit]
    noisy = sum(variances) > 1  # of two sides: one on average, or less for what has no noise
    return [float(np.sqrt(one[noisy].mean())) if noisy.any() else 1.0 for one in variances]
