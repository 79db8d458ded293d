"""A long vector without public bounds: its direction and an intercept, (x / |x|, 1) / sqrt 2.

Nothing is known of such numbers, so that nothing but the record itself can give them a scale.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit.features.map import BELOW, FeatureSpec, PublicFacts
from tacit.types import Array, ColumnFeatures


@dataclass(frozen=True)
class UnitMap:
    """(x / |x|, 1) / sqrt 2; a record of zeros keeps the intercept alone."""

    n_inputs: int
    bound: ClassVar[float] = 1.0

    @classmethod
    def made_for(cls, facts: PublicFacts, asked: FeatureSpec) -> UnitMap:  # noqa: ARG003
        return cls(facts.n_inputs)

    @property
    def n_outputs(self) -> int:
        return self.n_inputs + 1

    def names(self, inputs: tuple[str, ...]) -> tuple[str, ...]:
        return (*inputs, "intercept") if inputs else ()

    def columns(self) -> tuple[ColumnFeatures, ...]:
        return ()  # a direction is made of all numbers together

    def block(self, x: Array) -> Array:
        size = np.sqrt(np.square(x, dtype=np.float64).sum(axis=1, keepdims=True))
        direction = np.divide(x, size, out=np.zeros(x.shape), where=size > 0)
        return np.column_stack([direction, np.ones(len(x))]).astype(np.float32) * np.float32(math.sqrt(0.5) * BELOW)
