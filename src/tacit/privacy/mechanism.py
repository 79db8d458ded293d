"""How noise is scaled to a sensitivity: Laplace, Gaussian, Silence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tacit.errors import SpecError
from tacit.privacy import noise
from tacit.privacy.divergence import gaussian_delta
from tacit.types import Array, Norm


class Mechanism(Protocol):
    """Noise of scale multiplier * sensitivity, the sensitivity measured in `norm`."""

    @property
    def norm(self) -> Norm: ...

    @property
    def multiplier(self) -> float: ...

    def sample(self, key: tuple[int, int], t: int, step: int, shape: tuple[int, ...]) -> Array:
        """Noise of scale one for (seed, agent), round and local step."""
        ...


@dataclass(frozen=True)
class Laplace:
    """b = multiplier * Delta. With Delta in l1 one release is (1 / multiplier)-DP; in l2 a run of them is accounted."""

    multiplier: float
    norm: Norm = Norm.L1

    def __post_init__(self) -> None:
        check_multiplier(self.multiplier)

    @classmethod
    def pure(cls, epsilon: float) -> Laplace:
        """b = Delta_1 / epsilon: epsilon-DP for the release of one gradient."""
        check_epsilon(epsilon)
        return cls(1 / epsilon)

    def sample(self, key: tuple[int, int], t: int, step: int, shape: tuple[int, ...]) -> Array:
        return noise.laplace(key, t, step, shape)


@dataclass(frozen=True)
class Gaussian:
    """sigma = multiplier * Delta_2."""

    multiplier: float
    norm: Norm = Norm.L2

    def __post_init__(self) -> None:
        check_multiplier(self.multiplier)

    @classmethod
    def classic(cls, epsilon: float, dp_delta: float) -> Gaussian:
        """sigma = Delta_2 sqrt(2 ln(1.25 / delta)) / epsilon: (epsilon, delta)-DP for one release."""
        check_epsilon(epsilon)
        if not 0 < dp_delta < 1:
            raise SpecError(f"dp_delta must lie between 0 and 1, got {dp_delta}: 1e-6 is the paper's.")
        multiplier = math.sqrt(2 * math.log(1.25 / dp_delta)) / epsilon
        if gaussian_delta(epsilon, 1 / multiplier) > dp_delta:
            raise SpecError(
                f"the classic Gaussian formula does not give ({epsilon:g}, {dp_delta:g}): it holds for small epsilon. "
                "Use a smaller one, or privacy.covers = run, which is calibrated exactly."
            )
        return cls(multiplier)

    def sample(self, key: tuple[int, int], t: int, step: int, shape: tuple[int, ...]) -> Array:
        return noise.gaussian(key, t, step, shape)


@dataclass(frozen=True)
class Silence:
    """No noise, and so no privacy."""

    norm: Norm = Norm.L2
    multiplier: float = 0.0

    def sample(self, key: tuple[int, int], t: int, step: int, shape: tuple[int, ...]) -> Array:  # noqa: ARG002
        return np.zeros(shape, dtype=np.float32)


def check_multiplier(multiplier: float) -> None:
    """Refuse noise of no or of infinite size."""
    if not 0 < multiplier < math.inf:
        raise SpecError(f"the noise multiplier must be positive and finite, got {multiplier}.")


def check_epsilon(epsilon: float) -> None:
    """Refuse an epsilon that no noise can give."""
    if not 0 < epsilon < math.inf:
        raise SpecError(f"epsilon must be positive and finite, got {epsilon}: for no privacy say epsilon = inf.")
