"""An intersection of halfspaces: linear constraints on the model, such as that a score must not fall with a feature."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tacit.errors import IncompatibleError, SpecError
from tacit.npz import opened
from tacit.problem.active_set import nearest
from tacit.problem.domain import kept
from tacit.types import Array

LARGEST_SET = 1_000_000  # entries of all normals, M J K: the largest take some ten seconds a projection


@dataclass(frozen=True, eq=False)
class Halfspaces:
    """W = {u : <a_m, u> <= b_m for every m}, normals a (M, J, K) and offsets b (M,)."""

    normals: Array
    offsets: Array

    def __post_init__(self) -> None:
        a, b = self.normals, self.offsets
        if a.ndim != 3 or b.shape != a.shape[:1] or not a.size:
            raise SpecError(
                f"halfspaces have normals (M, J, K) and offsets (M,), M from 1: got {a.shape} and {b.shape}."
            )
        if a.size > LARGEST_SET:
            raise SpecError(
                f"{len(a)} halfspaces of models of shape {a.shape[1:]} have {a.size} numbers, and {LARGEST_SET} is the "
                "most: give fewer halfspaces, or fewer features."
            )
        a, b = _scaled(a, b)
        object.__setattr__(self, "normals", a)
        object.__setattr__(self, "offsets", b)
        try:
            self.project(np.zeros(a.shape[1:]))
        except IncompatibleError as error:
            raise SpecError(f"of {len(a)} halfspaces, {error}") from None

    def project(self, c: Array) -> Array:
        """argmin |u - c| over W."""
        return self._nearest(c, self.offsets, np.full(c.shape, -np.inf), np.full(c.shape, np.inf))

    def project_near(self, c: Array, center: Array, radius: float) -> Array:
        """argmin |u - c| over the points of W with |u_jk - center_jk| <= radius, center a point of W up to rounding."""
        center = self.project(center)
        # by what rounding leaves center outside, W is taken to be wider: else a box smaller than that could miss W
        offsets = np.maximum(self.offsets, np.tensordot(self.normals, center, 2))
        return self._nearest(c, offsets, center - radius, center + radius)

    def _nearest(self, c: Array, offsets: Array, low: Array, high: Array) -> Array:
        self._check(c)
        point = c.astype(np.float64).ravel()
        if not np.isfinite(point).all():
            return np.full(c.shape, np.nan, kept(c))
        u = nearest(point, self.normals.reshape(len(self.normals), -1), offsets, low.ravel(), high.ravel())
        return c if np.array_equal(u, point) else u.reshape(c.shape).astype(kept(c))

    def contains(self, u: Array, tolerance: float = 1e-9) -> bool:
        self._check(u)
        beyond = np.tensordot(self.normals, u, 2) - self.offsets
        return bool((beyond <= tolerance * (1 + np.abs(u).max() + np.abs(self.offsets))).all())

    def _check(self, u: Array) -> None:
        if u.shape != self.normals.shape[1:]:
            raise SpecError(
                f"the halfspaces are of models of shape {self.normals.shape[1:]}, and this one has {u.shape}: features "
                "that a map or an intercept adds count too."
            )


def _scaled(a: Array, b: Array) -> tuple[Array, Array]:
    """Return the normals as float64 of length 1, and the offsets that go with them."""
    if any(each.dtype.kind not in "iuf" or not np.isfinite(each).all() for each in (a, b)):
        raise SpecError("the normals and offsets of halfspaces must be finite numbers, and some are not.")
    with np.errstate(over="ignore", under="ignore"):  # what is not finite is refused below
        a, b = a.astype(np.float64), b.astype(np.float64)
        largest = np.abs(a).max(axis=(1, 2))
        if not largest.all():
            raise SpecError("a halfspace has a normal of zeros, which bounds nothing: drop it.")
        a = a / largest[:, None, None]  # first: the square of 1e200 is not finite, and that of 1e-200 is zero
        lengths = np.linalg.norm(a, axis=(1, 2))
        a, b = a / lengths[:, None, None], b / largest / lengths
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise SpecError(
            "a halfspace has an offset too large for its normal: over the length of the normal it is no finite number. "
            "Scale both, or drop the halfspace."
        )
    return a, b


def from_file(file: str) -> Halfspaces:
    """The halfspaces that a .npz file holds as arrays `normals` (M, J, K) and `offsets` (M,); nothing is unpickled."""
    path = Path(file)
    try:
        with opened(path) as archive:
            normals, offsets = archive["normals"], archive["offsets"]
    except FileNotFoundError:
        raise SpecError(f"problem.domain_file: there is no file {path}.") from None
    except (OSError, ValueError) as error:
        raise SpecError(
            f"problem.domain_file: {path} is no .npz file with the arrays normals and offsets ({error}): write it with "
            "numpy.savez(path, normals=..., offsets=...)."
        ) from None
    return Halfspaces(normals, offsets)
