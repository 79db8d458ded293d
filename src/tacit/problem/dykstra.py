"""Dykstra's method: the nearest point of sets that meet, from the projection onto each of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tacit.errors import IncompatibleError
from tacit.types import Array, kept, size

Projection = Callable[[Array], Array]


def dykstra(c: Array, *projections: Projection, tolerance: float = 1e-12, max_rounds: int = 100_000) -> Array:
    """argmin |u - c| over the points of all sets, for any closed convex sets that meet. A round is, for each set A_i,

        x_i = P_i(x_{i-1} + p_i),  p_i = x_{i-1} + p_i - x_i,     from x_0 = c, p_i = 0;  x_0 of the next round is x_n

    Without the p_i these are alternating projections, which stop at some point of all sets, not at the nearest.
    x_n + sum_i p_i = c after a round, and p_i is normal to A_i at x_i: when all x_i are one point this is optimality,
    and the rounds end. (x_n itself may pause on the way.) Their number grows with |c| over the size of what the sets
    share. The last set is the one that the answer lies in to the last digit.
    """
    x = c.astype(np.float64)
    p = [np.zeros_like(x) for _ in projections]
    for _ in range(max_rounds):
        seen = []
        for i, project in enumerate(projections):
            there = x + p[i]
            x = project(there)
            p[i] = there - x
            seen.append(x)
        if not max(size(each - x) for each in seen) > tolerance * (size(c) + size(x)):  # NaN ends the rounds too
            return x.astype(kept(c))
    raise IncompatibleError(
        f"no projection onto all sets after {max_rounds} rounds of Dykstra: they do not meet, or the point "
        "lies too far out for their size. Widen the smaller set, or raise max_rounds or tolerance."
    )
