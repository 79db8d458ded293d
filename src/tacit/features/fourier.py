"""Random Fourier features for dense numbers: their inner products come near to a Gaussian kernel,
exp(-|u - u'|^2 / (2 scale^2))  (Rahimi & Recht 2007).

The directions are drawn from a public seed: they are nobody's data. Each gives a cosine and a sine, whose squares add
up to one: every record has norm one, whatever it holds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from tacit.errors import SpecError
from tacit.features.map import BELOW, FeatureSpec, PublicFacts
from tacit.types import Array, ColumnFeatures

MOST = 1 << 14  # features


@dataclass(frozen=True)
class FourierMap:
    """(cos(u W), sin(u W)) / sqrt(D / 2), W_jd ~ N(0, 1 / scale^2).

    u is the record, centred: its numbers in [-1, 1] by their public bounds, over sqrt(J); without bounds x / |x|.
    """

    n_inputs: int
    low: float | None = None
    high: float | None = None
    size: int = 512  # D
    scale: float = 0.5
    seed: int = 0
    bound: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        if not (self.size % 2 == 0 and 2 <= self.size <= MOST):
            raise SpecError(f"features.size of fourier is an even number from 2 to {MOST}: got {self.size}.")
        if not 1e-6 <= self.scale <= 1e6:
            raise SpecError(f"features.scale must be from 1e-6 to 1e6, got {self.scale}.")

    @classmethod
    def made_for(cls, facts: PublicFacts, asked: FeatureSpec) -> FourierMap:
        low, high = facts.bounds or (None, None)
        given = {name: value for name in ("size", "scale") if (value := getattr(asked, name)) is not None}
        return cls(facts.n_inputs, low, high, seed=asked.seed, **given)

    @property
    def n_outputs(self) -> int:
        return self.size

    def names(self, inputs: tuple[str, ...]) -> tuple[str, ...]:  # noqa: ARG002
        return ()

    def columns(self) -> tuple[ColumnFeatures, ...]:
        return ()

    @cached_property
    def directions(self) -> Array:
        """W (J, D / 2), by the formula of Box and Muller from uniform numbers, whose bits NumPy promises to keep."""
        u, v = np.random.Generator(np.random.PCG64(self.seed)).random((2, self.n_inputs, self.size // 2))
        return np.asarray(np.sqrt(-2 * np.log1p(-u)) * np.cos(2 * math.pi * v) / self.scale)

    def block(self, x: Array) -> Array:
        angle = self._centred(x.astype(np.float64)) @ self.directions
        found = np.concatenate([np.cos(angle), np.sin(angle)], axis=1) * (BELOW / math.sqrt(self.size / 2))
        return np.asarray(found, np.float32)

    def _centred(self, x: Array) -> Array:
        if self.low is None or self.high is None:
            size = np.linalg.norm(x, axis=1, keepdims=True)
            return np.asarray(np.divide(x, size, out=np.zeros_like(x), where=size > 0))
        middle, half = (self.low + self.high) / 2, max((self.high - self.low) / 2, 1e-300)
        return np.asarray((x - middle) / (half * math.sqrt(self.n_inputs)))
