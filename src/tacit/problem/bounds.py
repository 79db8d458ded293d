"""A box between given bounds, such as weights that are not negative."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.errors import SpecError
from tacit.problem.domain import Box, Domain, Everywhere, check_shape
from tacit.types import Array


@dataclass(frozen=True, eq=False)
class Bounds:
    """W = {u : low <= u_jk <= high}; a bound is a number, or an array with one for each entry; inf bounds nothing."""

    low: float | Array = -np.inf
    high: float | Array = np.inf

    def __post_init__(self) -> None:
        low, high = np.asarray(self.low, np.float64), np.asarray(self.high, np.float64)
        if low.ndim and high.ndim and low.shape != high.shape:
            raise SpecError(f"the bounds of a box have shapes {low.shape} and {high.shape}: both need the model's.")
        if not (low <= high).all() or (low == np.inf).any() or (high == -np.inf).any():  # NaN is within no bounds
            raise SpecError(f"the bounds of a box are numbers, the lower first, got {self.low} and {self.high}.")
        # numbers stay Python's, so that float32 stays float32
        object.__setattr__(self, "low", float(low) if low.ndim == 0 else low)
        object.__setattr__(self, "high", float(high) if high.ndim == 0 else high)

    def project(self, c: Array) -> Array:
        check_shape("the lower bound", self.low, c.shape)
        check_shape("the upper bound", self.high, c.shape)
        return np.clip(c, self.low, self.high).astype(c.dtype, copy=False)

    def contains(self, u: Array, tolerance: float = 1e-9) -> bool:
        room = tolerance * np.maximum(1, np.abs(u))
        return bool(((self.low <= u + room) & (u - room <= self.high)).all())


def box(radius: float, low: float | None = None, high: float | None = None) -> Domain:
    """The box of a radius around zero, or the box between bounds where one is given."""
    if low is None and high is None:
        return Box(radius)
    if radius != 1.0:  # what a spec has that says nothing
        raise SpecError("a box has a radius or bounds: drop problem.domain_radius, or domain_low and domain_high.")
    return Bounds(-np.inf if low is None else low, np.inf if high is None else high)


def interval(domain: Domain) -> tuple[float, float] | None:
    """The bounds of a set that holds every entry between the same two; None for another set, and for a subclass."""
    if type(domain) is Everywhere:
        return -np.inf, np.inf
    if type(domain) is Box:
        return -domain.radius, domain.radius
    if type(domain) is Bounds and isinstance(domain.low, float) and isinstance(domain.high, float):
        return domain.low, domain.high
    return None
