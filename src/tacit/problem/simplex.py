"""Simplices: every column of the model is a mixture of the features; and the nearest point of a plane and a box."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from tacit.problem.domain import check_radius
from tacit.types import Array


@dataclass(frozen=True)
class Simplex:
    """W = {u >= 0 : sum_j u_jk = radius for every k}, columns as they are: the weights of one class, or of the number.

    With radius = 1 a score is an average of the record's features, with weights that are probabilities.
    """

    radius: float

    def __post_init__(self) -> None:
        check_radius("simplex", self.radius)

    def project(self, c: Array) -> Array:
        """u = max(c - tau_k, 0), tau_k such that column k adds up to the radius."""
        if c.min() >= 0 and (c.sum(axis=0, dtype=np.float64) == self.radius).all():
            return c
        # what lies `radius` below the largest entry becomes zero whatever the rest: to move it up changes nothing
        near = np.maximum(c.astype(np.float64) - c.max(axis=0), -self.radius)
        falling = -np.sort(-near, axis=0)
        # tau where the n largest entries stay: the right n is the last for which the n-th of them does
        tau = (falling.cumsum(axis=0) - self.radius) / np.arange(1, len(near) + 1)[:, None]
        n = (falling > tau).sum(axis=0)
        return np.asarray(np.maximum(near - tau[n - 1, range(near.shape[1])], 0), c.dtype)

    def between(self, c: Array, low: Array, high: Array) -> Array:
        """The nearest point with low <= u <= high, 0 <= low, whose columns add up to the radius; shapes (J, K)."""
        return np.stack([_with_sum(*column, self.radius) for column in zip(c.T, low.T, high.T, strict=True)], axis=1)

    def contains(self, u: Array, tolerance: float = 1e-9) -> bool:
        room = tolerance * self.radius
        return bool(u.min() >= -room and np.abs(u.sum(axis=0, dtype=np.float64) - self.radius).max() <= len(u) * room)


def _with_sum(c: Array, low: Array, high: Array, total: float) -> Array:
    """argmin |u - c| over low <= u <= high with sum u = total; bounds that do not allow the total give their end.

    An answer that does not add up is projected once more, from nearby: a c from far away has lost it to rounding.
    """
    ones = np.ones_like(c)
    u = np.clip(c - multiplier(c, ones, low, high, total), low, high)
    if abs(u.sum() - total) <= 1e-14 * total:
        return u
    return np.clip(u - multiplier(u, ones, low, high, total), low, high)


def multiplier(c: Array, a: Array, low: Array, high: Array, total: float) -> float:
    """tau for which u = clip(c - tau a, low, high) has <a, u> = total: u is then the nearest point to c that has.

    <a, u> falls with tau, in straight lines between the places where an entry meets a bound. Arrays have one axis. A
    total that the bounds do not allow gives the tau beyond which nothing moves.
    """

    def product(tau: float) -> float:
        return float(a @ np.clip(c - tau * a, low, high))

    moves = a != 0
    breaks = np.concatenate([(c - bound)[moves] / a[moves] for bound in (low, high)])
    taus = np.unique(breaks[np.isfinite(breaks)])
    # the first break at which the product is no more than the total: it is reached on the segment before
    k = bisect_left(taus, -total, key=lambda tau: -product(float(tau)))
    start, stop = float(taus[k - 1]) if k else -np.inf, float(taus[k]) if k < len(taus) else np.inf
    if np.isinf(start) or np.isinf(stop):
        end = stop if np.isinf(start) else start
        middle = 0.0 if np.isinf(end) else end + (max(1.0, abs(end)) if np.isinf(stop) else -max(1.0, abs(end)))
    else:
        middle = start / 2 + stop / 2
    there = c - middle * a
    free = moves & (low < there) & (there < high)
    if not free.any():
        return stop if np.isfinite(stop) else start
    fixed = float(a[~free] @ np.clip(there, low, high)[~free])
    tau = (fixed + float(a[free] @ c[free]) - total) / float(a[free] @ a[free])
    return min(max(tau, start), stop)
