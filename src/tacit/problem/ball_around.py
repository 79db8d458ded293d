"""A ball around a point that is not zero, such as a model that is known already."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.errors import SpecError
from tacit.problem.domain import Ball, Domain, check_radius, check_shape
from tacit.types import Array


@dataclass(frozen=True, eq=False)
class BallAround:
    """W = {u : |u - center|_F <= radius}; center is an array, or one number for all entries."""

    center: float | Array
    radius: float

    def __post_init__(self) -> None:
        check_radius("ball", self.radius)
        center = np.asarray(self.center, np.float64)
        if not np.isfinite(center).all():
            raise SpecError("the centre of a ball holds NaN or inf: give finite numbers.")
        object.__setattr__(self, "center", float(center) if center.ndim == 0 else center)

    def project(self, c: Array) -> Array:
        check_shape("the centre", self.center, c.shape)
        away = c.astype(np.float64) - self.center
        size = float(np.linalg.norm(away))
        return c if size <= self.radius else np.asarray(self.center + away * (self.radius / size)).astype(c.dtype)

    def contains(self, u: Array, tolerance: float = 1e-9) -> bool:
        rounding = tolerance * (self.radius + float(np.abs(self.center).max()))
        return float(np.linalg.norm(u - self.center)) <= self.radius + rounding


def ball(radius: float, center: float | None = None) -> Domain:
    """The ball around zero, or around a model all of whose entries are `center`."""
    return Ball(radius) if center is None else BallAround(center, radius)
