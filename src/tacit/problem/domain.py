"""The set W the model lives in, and the sets by name. Norms are over all J x K entries.

Another set is one file and one line in DOMAINS. Its projection is all that training needs: where a step has a trust
region too, admm.project finds the nearest point of both sets, unless it knows a faster way. What a set is made of it
names as its parameters: a parameter called `radius` is problem.domain_radius of the spec, and so for `low`, `high`,
`center` and `file` (`from_values`). A set is public: no record has a part in it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tacit.errors import SpecError
from tacit.registry import Registry
from tacit.types import Array


class Domain(Protocol):
    """A closed convex set that is not empty. A run starts at its point nearest to zero (`nearest_to_zero`)."""

    def project(self, c: Array) -> Array:
        """argmin_{u in W} |u - c|."""

    def contains(self, u: Array, tolerance: float = 1e-9) -> bool:
        """Whether u lies in W, up to rounding."""


@dataclass(frozen=True)
class Everywhere:
    """W = R^{J x K}."""

    def project(self, c: Array) -> Array:
        return c

    def contains(self, u: Array, tolerance: float = 1e-9) -> bool:  # noqa: ARG002
        return bool(np.isfinite(u).all())


@dataclass(frozen=True)
class Box:
    """W = {u : |u_jk| <= radius}."""

    radius: float

    def __post_init__(self) -> None:
        check_radius("box", self.radius)

    def project(self, c: Array) -> Array:
        return np.clip(c, -self.radius, self.radius)

    def contains(self, u: Array, tolerance: float = 1e-9) -> bool:
        return bool(np.abs(u).max() <= self.radius * (1 + tolerance))


@dataclass(frozen=True)
class Ball:
    """W = {u : |u|_F <= radius}."""

    radius: float

    def __post_init__(self) -> None:
        check_radius("ball", self.radius)

    def project(self, c: Array) -> Array:
        size = float(np.linalg.norm(c))
        return c if size <= self.radius else c * (self.radius / size)

    def contains(self, u: Array, tolerance: float = 1e-9) -> bool:
        return float(np.linalg.norm(u)) <= self.radius * (1 + tolerance)


def kept(c: Array) -> np.dtype[Any]:
    """The dtype of an answer that keeps the precision of c: that of c, or float64 for integers."""
    return np.result_type(c.dtype, np.float32)


def check_radius(kind: str, radius: float) -> None:
    """Refuse a radius that bounds nothing."""
    if not 0 < radius < np.inf:
        raise SpecError(f"a {kind} needs a positive, finite radius, got {radius}: use Everywhere for no bound.")


def check_shape(what: str, value: float | Array, shape: tuple[int, ...]) -> None:
    """Refuse an array of another shape than the model: NumPy would repeat some, and not say which set others are of."""
    if np.ndim(value) and np.shape(value) != shape:
        raise SpecError(
            f"{what} of a set has shape {np.shape(value)}, and the model has {shape}: give one number for all entries, "
            "or an array with one for each. Features that a map or an intercept adds count too."
        )


DOMAINS: Registry[Callable[..., Domain]] = Registry("domain", {
    "everywhere": Everywhere,
    "box": "tacit.problem.bounds:box",
    "ball": "tacit.problem.ball_around:ball",
    "simplex": "tacit.problem.simplex:Simplex",
    "halfspaces": "tacit.problem.halfspaces:from_file",
})  # fmt: skip

PREFIX = "domain_"  # of the keys of [problem] that sets are made of
LARGEST = 1e30  # of a number that a spec makes a set of: engines compute in float32


def from_values(values: Mapping[str, Any]) -> Domain:
    """The set that values of [problem] name, made of those that it takes; a value that it does not take is refused.

    problem.domain_radius is never unset, so that a set which takes none does not mind it.
    """
    name = values["domain"]
    given = {key[len(PREFIX) :]: value for key, value in values.items() if key.startswith(PREFIX)}
    takes = inspect.signature(DOMAINS[name]).parameters
    for key, value in given.items():
        if value is not None and key not in takes and key != "radius":
            raise SpecError(f"the set {name} has no {key}: drop problem.{PREFIX}{key}, or name another set.")
        if isinstance(value, float) and LARGEST < abs(value) < np.inf:
            raise SpecError(f"problem.{PREFIX}{key} must be at most {LARGEST:g} in size, got {value:g}.")
    for key, parameter in takes.items():
        if parameter.default is parameter.empty and given.get(key) is None:
            known = f"set problem.{PREFIX}{key}" if key in given else f"a spec tells of a set {', '.join(given)} alone"
            raise SpecError(f"the set {name} needs {key}: {known}.")
    return DOMAINS[name](**{key: given[key] for key in takes if given.get(key) is not None})


def nearest_to_zero(domain: Domain, shape: tuple[int, ...]) -> Array:
    """argmin_{u in W} |u|: where the models of server and agents start. Zero, where W holds it."""
    first = domain.project(np.zeros(shape))
    if first.shape != shape or not np.isfinite(first).all():
        raise SpecError(
            f"the set {type(domain).__name__} has no finite point of shape {shape} nearest to zero: check its numbers."
        )
    return first
