"""An intersection of halfspaces: linear constraints on the model, such as that a score must not fall with a feature."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tacit.errors import IncompatibleError, SpecError
from tacit.problem.plane import multiplier
from tacit.types import Array, kept

MOST = 10_000  # halfspaces: a projection passes over all of them many times
ROUNDS, FIRST_ROUNDS = 5_000, 500  # of a projection, and of the first, in which a point of W must be found
TOLERANCE = 1e-12  # by which a point may miss a halfspace, of the numbers that it is made of


@dataclass(frozen=True, eq=False)
class Halfspaces:
    """W = {u : <a_m, u> <= b_m for every m}, normals a (M, J, K) and offsets b (M,)."""

    normals: Array
    offsets: Array

    def __post_init__(self) -> None:
        a, b = self.normals, self.offsets
        if a.ndim != 3 or b.shape != a.shape[:1] or not 0 < len(a) <= MOST:
            raise SpecError(
                f"halfspaces have normals (M, J, K) and offsets (M,), M from 1 to {MOST}: got {a.shape} and {b.shape}."
            )
        if any(each.dtype.kind not in "iuf" or not np.isfinite(each).all() for each in (a, b)):
            raise SpecError("the normals and offsets of halfspaces must be finite numbers, and some are not.")
        if not np.abs(a).max(axis=(1, 2)).all():
            raise SpecError("a halfspace has a normal of zeros, which bounds nothing: drop it.")
        lengths = np.linalg.norm(a.astype(np.float64), axis=(1, 2))
        object.__setattr__(self, "normals", a / lengths[:, None, None])
        object.__setattr__(self, "offsets", b / lengths)
        try:
            self.between(np.zeros(a.shape[1:]), max_rounds=FIRST_ROUNDS)
        except IncompatibleError:
            raise SpecError(
                f"no point of all {len(a)} halfspaces was found in {FIRST_ROUNDS} rounds: they contradict one another, "
                "or share next to nothing. Check the signs: each says <normal, w> <= offset."
            ) from None

    def project(self, c: Array) -> Array:
        return self.between(c)

    def between(
        self, c: Array, low: Array | float = -np.inf, high: Array | float = np.inf, max_rounds: int = ROUNDS
    ) -> Array:
        """The nearest point of W with low <= u <= high, by Dykstra's method in its dual form (Hildreth 1957).

            u = clip(c - sum_m tau_m a_m, low, high),   tau_m >= 0,   tau_m (<a_m, u> - b_m) = 0,   <a_m, u> <= b_m

        Each tau_m in turn is made right for the others, until all are. Without a box, tau_m a_m is what Dykstra's
        method keeps for halfspace m. (The box is not one more set: a small one would take rounds without end.)
        """
        self._check(c)
        point = c.astype(np.float64).ravel()
        box = np.broadcast_to(low, c.shape).ravel(), np.broadcast_to(high, c.shape).ravel()
        a, b = self.normals.reshape(len(self.normals), -1), self.offsets
        tau, gram, reach = np.zeros(len(a)), a @ a.T, a @ point - b
        for _ in range(max_rounds):
            u = np.clip(point - tau @ a, *box)
            beyond = a @ u - b
            wrong = np.abs(np.where(tau > 0, beyond, np.maximum(beyond, 0))).max()
            if not wrong > TOLERANCE * (1 + np.abs(u).max() + np.abs(b).max()):  # NaN ends the rounds too
                return c if np.array_equal(u, point) else u.reshape(c.shape).astype(kept(c))
            before = tau.copy()
            if np.isinf(box).all():  # then <a_m, u> falls by one as tau_m, |a_m| = 1, rises by one
                for m, row in enumerate(gram):
                    tau[m] = max(0.0, tau[m] + reach[m] - row @ tau)
            else:
                for m, (normal, offset) in enumerate(zip(a, b, strict=True)):
                    others = point - (tau @ a - tau[m] * normal)
                    tau[m] = _beyond(others, normal, box, offset)
            # the way of a round, gone on as far as it is right: rounds that zigzag take such ways again and again
            way = tau - before
            if way.any():
                share = -tau[way < 0] / way[way < 0]
                tau += min(_beyond(point - tau @ a, way @ a, box, float(way @ b)), *share, np.inf) * way
        raise IncompatibleError(
            f"no projection onto all halfspaces after {max_rounds} rounds: they nearly contradict one another, or the "
            "point lies too far out. Widen the set, or take shorter steps."
        )

    def contains(self, u: Array, tolerance: float = 1e-9) -> bool:
        self._check(u)
        beyond = np.tensordot(self.normals, u, 2) - self.offsets
        return bool((beyond <= tolerance * (1 + np.abs(self.offsets))).all())

    def _check(self, u: Array) -> None:
        if u.shape != self.normals.shape[1:]:
            raise SpecError(
                f"the halfspaces are of models of shape {self.normals.shape[1:]}, and this one has {u.shape}: features "
                "that a map or an intercept adds count too."
            )


def _beyond(c: Array, a: Array, box: tuple[Array, Array], most: float) -> float:
    """tau >= 0 for which clip(c - tau a, *box) is the nearest point with <a, u> <= most; 0 where c itself is."""
    if a @ np.clip(c, *box) <= most:
        return 0.0
    return max(0.0, multiplier(c, a, *box, most))


def from_file(file: str) -> Halfspaces:
    """The halfspaces that a .npz file holds as arrays `normals` (M, J, K) and `offsets` (M,); nothing is unpickled."""
    path = Path(file)
    try:
        with np.load(path, allow_pickle=False) as arrays:
            found = {name: arrays[name] for name in ("normals", "offsets")}
    except FileNotFoundError:
        raise SpecError(f"problem.domain_file: there is no file {path}.") from None
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, TypeError, AttributeError):
        raise SpecError(
            f"problem.domain_file: {path} is no .npz file with the arrays normals and offsets: write it with "
            "numpy.savez(path, normals=..., offsets=...)."
        ) from None
    return Halfspaces(**found)
