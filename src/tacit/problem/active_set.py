"""The nearest point of halfspaces and a box, by the dual active-set method of Goldfarb and Idnani (1983)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.errors import IncompatibleError
from tacit.types import Array

STEPS = 50  # for each halfspace and each entry, before a projection is given up: a few for each that binds are common
PASSES = 3  # the second starts where the first ends, so that what rounding leaves is a share of u and no longer of c
TOLERANCE = 1e-12  # by which a point may miss a halfspace, of the numbers that it is made of
LARGE, ASKEW = 10_000, 1e-13  # numbers in normals that bind, and by how much their basis may miss orthonormality
FLAT = 1e-10  # a direction that is left with this share of its length has none: what binds already spans it


def nearest(c: Array, a: Array, b: Array, low: Array, high: Array) -> Array:
    """argmin |u - c| over A u <= b, low <= u <= high; c, low, high (n,), a (M, n) with rows of length 1, b (M,).

    The answer misses a halfspace by at most TOLERANCE (max |u| + max |b|), or by less than 1e-30 max |c| where zero is
    the answer. It is the nearest point to some c' that rounding leaves near c, |c' - c| a small multiple of 1e-16 |c|.
    So near is it to the true answer, because projections bring no two points apart.
    """
    u = c
    for _ in range(PASSES):
        u = _Search(u, a, b, low, high).end()
        if not (a @ u - b).max() > _slack(u, b):
            break
    return u


def _slack(u: Array, b: Array) -> float:
    return TOLERANCE * float(np.abs(u).max() + np.abs(b).max())


@dataclass(frozen=True)
class _Constraint:
    """<normal, u> <= most: a halfspace, or one bound of one entry (side +1: the upper, -1: the lower)."""

    index: int
    side: int  # 0: a halfspace
    normal: Array
    most: float


class _Search:
    """From the nearest point of the box to the nearest point of all; one constraint that u misses is added at a time.

        u = c - A^T tau - side * y,   tau >= 0 and zero off `binds`,   y >= 0 and zero where side = 0

    holds all the way (side is +1 or -1 for entries on their upper or lower bound, 0 for free ones), so that u is the
    nearest point of what binds. |u - c| rises with every constraint added: no set of constraints comes twice. u moves
    by itself and is not made of c - A^T tau, so that it keeps its own precision where c is far out.
    """

    def __init__(self, c: Array, a: Array, b: Array, low: Array, high: Array) -> None:
        self.a, self.b, self.low, self.high = a, b, low, high
        self.u = np.clip(c, low, high)
        self.side, self.y = np.sign(c - self.u), np.abs(c - self.u)
        self.pinned = low == high  # such an entry is never free: its y may have any sign
        self.side[self.pinned], self.y[self.pinned] = 1, (c - self.u)[self.pinned]
        self.binds: list[int] = []
        self.tau = np.zeros(0)
        self.rounding = 4 * np.finfo(np.float64).eps * float(np.abs(self.u).max())
        self._factor()

    def end(self) -> Array:
        self.steps = STEPS * (len(self.a) + len(self.u))
        while (missed := self._most_missed()) is not None:
            self._add(missed)
            self._refine()
        return np.asarray(np.clip(self.u, self.low, self.high))

    def _factor(self) -> None:
        """QR of the normals that bind, over the free entries that one of them touches."""
        self.free = self.side == 0
        self.normals = self.a[self.binds]
        self.touched = np.flatnonzero(self.free & self.normals.any(axis=0))
        self.q, self.r = _orthonormal(self.normals[:, self.touched])

    def _most_missed(self) -> _Constraint | None:
        slack = max(_slack(self.u, self.b), self.rounding)
        beyond = self.a @ self.u - self.b
        beyond[self.binds] = 0.0
        m = int(beyond.argmax())
        over, under = np.where(self.free, [self.u - self.high, self.low - self.u], 0.0)
        out = np.maximum(over, under)
        j = int(out.argmax())
        if out[j] > max(beyond[m], self.rounding):  # what is less is clipped in the end
            side = 1 if over[j] > under[j] else -1
            unit = np.zeros(len(self.u))
            unit[j] = side
            return _Constraint(j, side, unit, float(side * (self.high if side > 0 else self.low)[j]))
        return _Constraint(m, 0, self.a[m], float(self.b[m])) if beyond[m] > slack else None

    def _add(self, new: _Constraint) -> None:
        """Raise the multiplier of one more constraint until it holds; let go of those whose multipliers end on the way.

        As it rises by t, u moves by -t z on the free entries, z the part of the normal that nothing which binds spans,
        and the multipliers of what binds fall by t of their `falls`.
        """
        reached = 0.0
        while True:
            self.steps -= 1
            z = np.where(self.free, new.normal, 0.0)
            length, share = np.linalg.norm(z), self.q.T @ z[self.touched]
            left = z[self.touched] - self.q @ share
            z[self.touched] = left - self.q @ (self.q.T @ left)  # once more: the first leaves rounding of z's size
            falls = np.linalg.solve(self.r, share)
            y_falls = self.side * (new.normal - falls @ self.normals)
            y_falls[self.free] = 0.0
            ends = np.concatenate([_ends(self.tau, falls), np.where(self.pinned, np.inf, _ends(self.y, y_falls))])
            first = int(ends.argmin())
            moves = np.linalg.norm(z) > FLAT * length
            full = max(float(new.normal @ self.u) - new.most, 0.0) / float(z @ z) if moves else np.inf
            t = min(full, float(ends[first]))
            if not t < np.inf or not self.steps:
                raise IncompatibleError(
                    "no point of all halfspaces was found: they contradict one another, or nearly do so. Check the "
                    "signs (each says <normal, w> <= offset), or widen the set."
                )
            self.tau, self.y, reached = self.tau - t * falls, self.y - t * y_falls, reached + t
            if moves:
                self.u -= t * z
            if t == full:
                break
            self._let_go(first)
        if new.side:
            self.side[new.index], self.y[new.index] = new.side, reached
            self.u[new.index] = new.side * new.most
        else:
            self.binds.append(new.index)
            self.tau = np.append(self.tau, reached)
        self._factor()

    def _let_go(self, first: int) -> None:
        """Of the halfspace that binds, or (counted on from there) of the entry on its bound."""
        if first < len(self.binds):
            del self.binds[first]
            self.tau = np.delete(self.tau, first)
        else:
            j = first - len(self.tau)
            self.side[j] = self.y[j] = 0.0
        self._factor()

    def _refine(self) -> None:
        """Bring u back onto the halfspaces that bind, from which rounding takes it."""
        gap = self.b[self.binds] - self.normals @ self.u
        self.u[self.touched] += self.q @ np.linalg.solve(self.r.T, gap)


def _orthonormal(rows: Array) -> tuple[Array, Array]:
    """Return (Q, R) with rows^T = Q R, Q of orthonormal columns and R triangular.

    Large ones by Cholesky, twice, which is many times faster than QR where threads wait for one another. Where the rows
    are too nearly dependent for squares, the columns come out askew, and QR it is.
    """
    if rows.size > LARGE:
        try:
            q, r = rows, np.eye(len(rows))
            for _ in range(2):
                lower = np.linalg.cholesky(q @ q.T)
                q, r = np.linalg.inv(lower) @ q, lower.T @ r
            if np.abs(q @ q.T - np.eye(len(q))).max() < ASKEW:
                return q.T, r
        except np.linalg.LinAlgError:
            pass
    return np.linalg.qr(rows.T)


def _ends(multipliers: Array, falls: Array) -> Array:
    """How far each multiplier may fall until it is zero; inf where it does not fall, up to rounding."""
    falling = falls > 1e-14 * np.abs(falls).max(initial=0.0)
    ends = np.full(len(falls), np.inf)
    ends[falling] = np.maximum(multipliers[falling], 0.0) / falls[falling]
    return ends
