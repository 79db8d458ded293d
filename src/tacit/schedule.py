"""rho^t, eta^t and delta^t as plain functions of the round t = 1, 2, ..."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from tacit.errors import SpecError


class Schedule(Protocol):
    """A positive number for every round."""

    def __call__(self, t: int) -> float: ...

    @property
    def summable(self) -> bool:
        """Whether sum_t of it is finite."""


@dataclass(frozen=True)
class Constant:
    """a."""

    a: float
    summable: bool = False

    def __post_init__(self) -> None:
        _check(self.a)

    def __call__(self, t: int) -> float:  # noqa: ARG002
        return self.a


@dataclass(frozen=True)
class Power:
    """a t^exponent: eta = a / sqrt(t), delta = a / t^2."""

    a: float
    exponent: float

    def __post_init__(self) -> None:
        _check(self.a)

    def __call__(self, t: int) -> float:
        return float(self.a * t**self.exponent)

    @property
    def summable(self) -> bool:
        return self.exponent < -1


RADII = {"power": -2.0, "constant": 0.0, "root": -0.5, "inverse": -1.0}  # delta^t = a t^exponent, by name


@dataclass(frozen=True)
class Staircase:
    """min(1e9, c1 1.2^floor(t / period) + c2 / epsilon), the paper's rho-hat; c2 / inf = 0 is non-private."""

    c1: float
    c2: float
    period: float
    epsilon: float
    summable: bool = False

    def __post_init__(self) -> None:
        _check(self.c1, self.period, self.epsilon, finite=False)
        if not 0 <= self.c2 < math.inf:
            raise SpecError(f"c2 of the dynamic rho must be zero or more and finite, got {self.c2}: rho is positive.")

    def __call__(self, t: int) -> float:
        # c1 1.2^2000 is beyond 1e9 for any c1 above 1e-149: stay clear of float overflow, t // period first
        steps = int(min(t // self.period, 2000))
        return min(1e9, self.c1 * 1.2**steps + self.c2 / self.epsilon)


@dataclass(frozen=True)
class Cooling:
    """first / (1 - (t - 1) / rounds): the step, which is its inverse, falls in a straight line to zero."""

    first: float
    rounds: int
    summable: bool = False

    def __post_init__(self) -> None:
        _check(self.first)

    def __call__(self, t: int) -> float:
        return self.first / max(1 - (t - 1) / self.rounds, 1e-9)


@dataclass(frozen=True)
class Scaled:
    """factor * schedule."""

    factor: float
    schedule: Schedule

    def __post_init__(self) -> None:
        _check(self.factor)

    def __call__(self, t: int) -> float:
        return self.factor * self.schedule(t)

    @property
    def summable(self) -> bool:
        return self.schedule.summable


@dataclass(frozen=True)
class Inverse:
    """1 / schedule: a proximity from the stiffness it gives."""

    schedule: Schedule
    summable: bool = False

    def __call__(self, t: int) -> float:
        return 1 / self.schedule(t)


@dataclass(frozen=True)
class HuangStep:
    """1 / eta^t = smoothness + sqrt(2 d t) s / c_w  (Huang et al. 2019, Theorem 4).

    d is the number of parameters, s the standard deviation of the noise in gradient units, and c_w a
    bound on the norm of the optimum.
    """

    smoothness: float
    dimension: int
    noise: float
    c_w: float
    summable: bool = False

    def __post_init__(self) -> None:
        _check(self.smoothness, self.c_w)

    def __call__(self, t: int) -> float:
        return 1 / (self.smoothness + math.sqrt(2 * self.dimension * t) * self.noise / self.c_w)


LARGEST_STEP = 1000.0  # clipped gradients allow steps far beyond 2 / curvature; this bounds what no noise does


def cooled_step(score_noise: float, std: float, rounds: int, largest: float = LARGEST_STEP) -> float:
    """The first of steps falling in a line to zero with which scores gather noise of std score_noise over the run.

    One round adds noise of std `std` times its step: over the run std^2 sum_t step_t^2 = std^2 step^2 rounds / 3.
    Everything in it is public. Without noise, or with very little, the step stops at `largest`.
    """
    return min(largest, score_noise * math.sqrt(3 / rounds) / std) if std else largest


def _check(*constants: float, finite: bool = True) -> None:
    for value in constants:
        if not value > 0 or (finite and math.isinf(value)):
            raise SpecError(f"a schedule needs positive, finite constants, got {value}.")
