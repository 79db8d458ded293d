"""The nearest point of a plane and a box, which simplices and halfspaces are made of."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from tacit.types import Array


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
