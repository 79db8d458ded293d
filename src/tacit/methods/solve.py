"""Minimisers with a certificate: every agent's mu-strongly convex objective, down to a gradient of norm tau in float64.

The argument of privacy is about the exact minimiser z*, and a solve ends near it:

    |G(z)|_2 <= tau  =>  |z - z*|_2 <= tau / mu

Limited-memory BFGS runs on all agents at once, with one call for gradients a step. The first search uses `task.sums`,
which may be float32 and fast. The second begins where the first ended and uses sums in float64: its last pass is the
certificate. A line search is rarely needed, and asks for gradients only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tacit.admm.agent import ROUNDING
from tacit.errors import IncompatibleError, TacitError
from tacit.methods.task import Facts, Sums, Task
from tacit.problem.objective import BLOCK, Problem
from tacit.problem.sensitivity import Observed, RecordBound
from tacit.types import Array, Norm, Shard

TRIES = 30
MEMORY = 6  # pairs; more cost time and memory, and save few passes
STEPS = 5000
PATIENCE = 60  # steps without progress by a tenth: then rounding is in the way, not the curvature
NEAR = 0.9  # of tau: the rest is for the rounding of float64 sums, 1e-6 of a record's gradient for a million records
RESOLVED = 0.5  # of tau, or what float32 sums resolve: a tenth of the worst that ROUNDING allows for, and often less
Slopes = Callable[[Array], Array]  # points (P, J, K) -> gradients there


def minimise(task: Task, rest: Slopes, stiffness: float, start: Array, tau: float, pooled: bool = False) -> Array:
    """argmin_u f_p(u) + r_p(u) of every agent, each to a gradient of norm <= tau: (P, J, K).

    rest(u) is the gradient of r_p, an isotropic quadratic of curvature `stiffness`. Where `pooled`, the sum of all f_p
    is minimised instead, from start (1, J, K).
    """
    p = task.problem
    if not p.smooth:
        raise IncompatibleError(
            "a minimiser is found by gradients that change at a bounded rate, and this loss or regulariser has kinks: "
            "use softmax and l2, or a method that takes gradient steps (objt, fedgd, dpsgd)."
        )

    def gradient(sums: Sums, u: Array, points: Array) -> Array:
        data = p.weight * sums(task.shards, p, points[0] if pooled else points, Observed(Norm.L2))
        regular = (p.beta if pooled else p.regularization) * p.regularizer.gradient(u)
        return (data.sum(0, keepdims=True) if pooled else data) + regular + rest(u)

    records = task.n_records if pooled else max(task.sizes)
    bound = p.weight * p.loss.curvature * task.row_norm**2 * records + convexity(task, stiffness, pooled)
    search = Search(1 / bound)
    resolved = max(RESOLVED * tau, ROUNDING / 10 * records * p.weight * task.row_norm)
    dtype = task.shards[0].x.dtype  # a pass is as fast as the records allow
    start, _ = search.run(lambda u: gradient(task.sums, u, u.astype(dtype)), start, resolved)
    search = Search(search.scale)  # without the pairs: steps of other agents pushed out those of an agent that waited
    found, size = search.run(lambda u: gradient(double_sums, u, u), start, NEAR * tau)
    if not size <= NEAR * tau:
        raise TacitError(f"a solve ended at a gradient of {size:.3g}, above {tau:.3g}: raise rho or the tolerance.")
    return found


def convexity(facts: Facts, stiffness: float, pooled: bool = False) -> float:
    """mu of f_p (or of sum_p f_p) and a quadratic of this curvature."""
    weight = facts.problem.beta if pooled else facts.problem.regularization
    return stiffness + weight * facts.problem.regularizer.convexity


def double_sums(shards: Sequence[Shard], problem: Problem, points: Array, bound: RecordBound) -> Array:  # noqa: ARG001
    """sum_i x_i a_i^T of every agent in float64, a block of records at a time."""
    each = np.broadcast_to(points, (len(shards), *points.shape[-2:]))
    out = np.zeros(each.shape)
    for total, shard, u in zip(out, shards, each, strict=True):
        for at in range(0, len(shard), BLOCK):
            x = shard.x[at : at + BLOCK].astype(np.float64, copy=False)
            total += x.T @ problem.loss.residual(x @ u, shard.y[at : at + BLOCK])
    return out


@dataclass
class Search:
    """Limited-memory BFGS over stacked problems, each of which goes as it would alone."""

    scale: Array | float  # 1 / curvature: at first a bound, with which no step goes too far
    pairs: deque[tuple[Array, Array, Array]] = field(default_factory=lambda: deque(maxlen=MEMORY))

    def run(self, gradient: Slopes, u: Array, tau: float) -> tuple[Array, float]:
        """Where every gradient has norm <= tau, or the search ends; and the largest norm there."""
        g = gradient(u)
        size = np.sqrt(dot(g, g))
        best, left = np.full_like(size, np.inf), np.full_like(size, PATIENCE)
        for _ in range(STEPS):
            better = size < 0.9 * best
            best, left = np.where(better, size, best), np.where(better, PATIENCE, left - 1)
            going = (size > tau) & (left > 0)  # each by itself: where a solve ends is no other agent's business
            if not going.any():
                break
            way = np.where(going, -self.newton(g), 0.0)
            ahead, after = _along(gradient, u, way, dot(g, way))
            self.remember(ahead - u, after - g)
            u, g = ahead, after
            size = np.sqrt(dot(g, g))
        return u, float(size.max())

    def remember(self, s: Array, y: Array) -> None:
        """Keep a step and how the gradient changed over it; an agent that waited adds nothing."""
        bend = dot(s, y)
        moved = bend > 0
        self.pairs.append((s, y, np.where(moved, 1 / np.where(moved, bend, 1.0), 0.0)))
        self.scale = np.where(moved, bend / np.where(moved, dot(y, y), 1.0), self.scale)

    def newton(self, g: Array) -> Array:
        """About (second derivative)^-1 g, by the two-loop recursion."""
        q, shares = g, []
        for s, y, inverse in reversed(self.pairs):
            shares.append(inverse * dot(s, q))
            q = q - shares[-1] * y
        q = q * self.scale
        for (s, y, inverse), share in zip(self.pairs, reversed(shares), strict=True):
            q = q + (share - inverse * dot(y, q)) * s
        return q


def _along(gradient: Slopes, u: Array, way: Array, slope: Array) -> tuple[Array, Array]:
    """A point on the way, and the gradient there; a step that is too long is shortened."""
    length = np.ones_like(slope)
    for _ in range(TRIES):
        ahead = u + length * way
        after = gradient(ahead)
        rise = dot(after, way)
        far = rise > 0.9 * -slope  # the slope of a convex function rises: here it is nearly as steep, and upward
        if not far.any():
            break
        secant = -slope / np.where(far, rise - slope, 1.0)
        length = np.where(far, length * np.clip(secant, 0.1, 0.5), length)
    return ahead, after


def dot(a: Array, b: Array) -> Array:
    """<a_p, b_p> of every agent, (P, 1, 1)."""
    return np.asarray(np.einsum("pjk,pjk->p", a, b)[:, None, None])
