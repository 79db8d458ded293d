"""Exact Euclidean projections onto W, and onto W ∩ T with T a trust region around z^t.

    T \\ W    Everywhere    a box                  a ball                 Simplex           Halfspaces     any other set
    inf      clip          clip                   a box and a ball       clip and shift    active set     Dykstra
    l2       shrink        a box and a ball       two balls              along a ray       along a ray    along a ray

Projecting onto W and then onto T is not the projection onto W ∩ T, unless both are boxes. Norms are over
all entries. Every method works in float64 and answers in the dtype of the point: float32 in, float32 out.
z^t is taken to lie in W up to rounding, so that the two sets meet. All but Dykstra's method and the
active set take a number of steps that has a small bound whatever the point is.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacit.errors import IncompatibleError, SpecError, unknown
from tacit.problem.ball_around import BallAround
from tacit.problem.bounds import Bounds
from tacit.problem.domain import Ball, Box, Domain, Everywhere, kept
from tacit.problem.halfspaces import Halfspaces
from tacit.problem.simplex import Simplex
from tacit.types import Array, Norm

RAY_STEPS, CLOSE = 200, 1e-14  # steps along a ray at most, and how close to the radius, as a share of it, they end
Projection = Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class TrustRegion:
    """T = {u : |u - center| <= radius}, in the largest-entry or the Frobenius norm."""

    center: Array
    radius: float
    norm: Norm

    def __post_init__(self) -> None:
        if not self.radius >= 0:
            raise SpecError(f"a trust radius must be at least 0, got {self.radius}: check its schedule.")
        if self.norm not in _ONTO_TRUST:
            raise unknown("trust-region norm", self.norm.value, [norm.value for norm in _ONTO_TRUST])

    def project(self, c: Array) -> Array:
        """argmin_{u in T} |u - c|."""
        return _ONTO_TRUST[self.norm](c, self.center, self.radius)


def project(c: Array, domain: Domain, region: TrustRegion | None = None) -> Array:
    """argmin_{u in W ∩ T} |u - c|; without a region, argmin_{u in W} |u - c|."""
    if region is None:
        return domain.project(c)
    if region.radius == 0:
        return region.center.astype(kept(c))
    onto_both = _ONTO_BOTH.get((type(domain), region.norm), _ANY_SET[region.norm])
    z = onto_both(c.astype(np.float64), domain, replace(region, center=region.center.astype(np.float64)))
    return z.astype(kept(c))


def _clip(c: Array, center: Array, radius: float) -> Array:
    """center + clip(c - center, -radius, radius), written so that a c inside comes back unchanged."""
    return np.clip(c, center - radius, center + radius)


def _shrink(c: Array, center: Array, radius: float) -> Array:
    """center + (c - center) min(1, radius / |c - center|)."""
    far = size(c - center)
    return c if far <= radius else center + (c - center) * (radius / far)


def _two_boxes(c: Array, low: Array | float, high: Array | float, T: TrustRegion) -> Array:
    """clip(c, max(low, z^t - radius), min(high, z^t + radius))."""
    return np.clip(c, np.maximum(low, T.center - T.radius), np.minimum(high, T.center + T.radius))


def _box_and_ball(c: Array, low: Array | float, high: Array | float, b: Array | float, radius: float) -> Array:
    """z(theta) = clip(b + theta (c - b), low, high), theta the largest in [0, 1] with |z - b| <= radius.

    Stationarity, z - c + nu (z - b) = 0 off the faces of the box with nu >= 0 the multiplier of the ball, is
    this with theta = 1 / (1 + nu). |z(theta) - b| grows with theta. Between the breakpoints, where an entry
    meets a face, its square is A + theta^2 B: A over the entries on a face, B = sum d_i^2 over the free ones.
    """
    d = c - b

    def z(theta: float) -> Array:
        return np.clip(b + theta * d, low, high)

    nearest = np.clip(c, low, high)
    if size(nearest - b) <= radius:
        return nearest
    with np.errstate(all="ignore"):  # an entry with d_i = 0 meets no face: its breakpoints are inf or nan
        breaks = np.concatenate([((low - b) / d).ravel(), ((high - b) / d).ravel()])
    thetas = np.concatenate([[0.0], np.sort(breaks[(breaks > 0) & (breaks < 1)]), [1.0]])
    k = bisect_left(thetas, radius, 1, len(thetas) - 1, key=lambda theta: size(z(theta) - b))
    start, stop = float(thetas[k - 1]), float(thetas[k])
    middle = z((start + stop) / 2)
    free = (low < middle) & (middle < high)
    A, B = size((middle - b)[~free]) ** 2, size(d[free]) ** 2
    # where the faces alone reach the sphere, rounding may leave no free entry or a root outside its segment
    theta = math.sqrt(max(radius**2 - A, 0.0) / B) if B > 0 else start
    return z(min(max(theta, start), stop))


def _two_balls(c: Array, W: Ball, T: TrustRegion) -> Array:
    """P_W(c) if it lies in T, else P_T(c) if it lies in W, else the nearest point of both spheres.

    With D = |z^t|, e = z^t / D and g = (R - radius) / D the spheres meet on the rim s e + h v, v any unit
    vector orthogonal to e: s = (D + g (R + radius)) / 2, 4 h^2 = ((R + radius)^2 - D^2) (1 - g^2).
    |u - z^t|^2 - radius^2 = |u|^2 - R^2 + 2 D (s - <u, e>), so that the plane <u, e> = s of the rim tells
    whether P_W(c) lies in T, beyond it, and P_T(c) in W, before it.
    """
    R, radius, b = W.radius, T.radius, T.center
    D, total = size(b), R + radius
    in_W, in_T = W.project(c), T.project(c)
    if abs(R - radius) >= D:  # one ball holds the other; concentric balls are such
        return in_T if radius < R else in_W
    e, g = b / D, (R - radius) / D
    s = (D + g * total) / 2
    # the sign of |u - z^t| - radius would hang on the last digit when the centres nearly agree
    if np.vdot(e, in_W) >= s:
        return in_W
    if np.vdot(e, in_T) <= s:
        return in_T
    # in factors: the differences of squares would lose the small h of a thin lens
    h = math.sqrt(max(total - D, 0.0) * (total + D) * (1 - g) * (1 + g)) / 2
    v = c - np.vdot(e, c) * e
    return s * e + v * (h / (size(v) or 1.0))  # v = 0 only where rounding hides an h of 0


def _two_balls_around(c: Array, W: BallAround, T: TrustRegion) -> Array:
    """The same, seen from the centre of W."""
    shifted = replace(T, center=T.center - W.center)
    both = _two_balls(c - W.center, Ball(W.radius), shifted)
    return c if np.array_equal(both, c - W.center) else both + W.center  # a c inside comes back unchanged


def _simplex_and_box(c: Array, W: Simplex, T: TrustRegion) -> Array:
    """clip(c - tau_k, max(0, z^t - radius), z^t + radius), column by column."""
    near = W.project(c)  # which does not depend on what all entries of a column share
    if np.abs(near - T.center).max() <= T.radius:
        return near
    low, high = np.maximum(T.center - T.radius, 0.0), np.maximum(T.center + T.radius, 0.0)
    return W.between(c - c.max(axis=0), low, high)


def _along_ray(c: Array, W: Domain, T: TrustRegion) -> Array:
    """z(theta) = P_W(b + theta (c - b)), theta the largest in [0, 1] with |z - b| <= radius, b = P_W(z^t).

    Stationarity, P_W((c + nu b) / (1 + nu)) with nu >= 0 the multiplier of the ball, is this with theta = 1 / (1 + nu).
    |z(theta) - b| grows with theta, and is at most theta |c - b| because projections bring no two points apart.
    """
    b, nearest = W.project(T.center), W.project(c)
    if not size(nearest - b) > T.radius:
        return nearest
    low, high = T.radius / size(c - b), 1.0
    z = W.project(b + low * (c - b))
    short, far = size(z - b) - T.radius, size(nearest - b) - T.radius
    for step in range(RAY_STEPS):
        if not short < -CLOSE * T.radius:
            break
        # false position, and every third time the middle of the logarithms, so that no end stays for ever
        theta = math.sqrt(low * high) if step % 3 == 2 else low - short * (high - low) / (far - short)
        if not low < theta < high:
            break
        ahead = W.project(b + theta * (c - b))
        beyond = size(ahead - b) - T.radius
        if beyond > 0:
            high, far = theta, beyond
        else:
            low, short, z = theta, beyond, ahead
    return z


def _any_set(c: Array, W: Domain, T: TrustRegion) -> Array:
    """Dykstra between T and W: W last, for the next round takes its centre in W."""
    return dykstra(c, replace(T, center=W.project(T.center)).project, W.project)


_ONTO_TRUST: dict[Norm, Callable[[Array, Array, float], Array]] = {Norm.INF: _clip, Norm.L2: _shrink}

_ANY_SET: dict[Norm, Callable[[Array, Any, TrustRegion], Array]] = {Norm.INF: _any_set, Norm.L2: _along_ray}

_ONTO_BOTH: dict[tuple[type, Norm], Callable[[Array, Any, TrustRegion], Array]] = {
    (Everywhere, Norm.INF): lambda c, _, T: T.project(c),
    (Everywhere, Norm.L2): lambda c, _, T: T.project(c),
    (Box, Norm.INF): lambda c, W, T: _two_boxes(c, -W.radius, W.radius, T),
    (Box, Norm.L2): lambda c, W, T: _box_and_ball(c, -W.radius, W.radius, T.center, T.radius),
    (Bounds, Norm.INF): lambda c, W, T: _two_boxes(c, W.low, W.high, T),
    (Bounds, Norm.L2): lambda c, W, T: _box_and_ball(c, W.low, W.high, T.center, T.radius),
    (Ball, Norm.INF): lambda c, W, T: _box_and_ball(c, T.center - T.radius, T.center + T.radius, 0.0, W.radius),
    (Ball, Norm.L2): _two_balls,
    (BallAround, Norm.INF): lambda c, W, T: _box_and_ball(
        c, T.center - T.radius, T.center + T.radius, W.center, W.radius
    ),
    (BallAround, Norm.L2): _two_balls_around,
    (Simplex, Norm.INF): _simplex_and_box,
    (Halfspaces, Norm.INF): lambda c, W, T: W.project_near(c, T.center, T.radius),
}


def size(u: Array) -> float:
    """|u|, over all entries."""
    return float(np.linalg.norm(u))


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
