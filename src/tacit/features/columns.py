"""The columns of a table, each bent by itself: a generalised additive model whose shapes can be drawn.

A number u in [0, 1] becomes waves, sum_m a_m cos(pi m u), m = 1 .. M, with weights that fall as the waves grow shorter:
what few records can tell is learnt first, and what only many can tell is left to many. A category keeps its feature a
value. One intercept serves all columns. Everything is divided by one public number, a bound on the norm of any record,
and never by the norm of the record itself: the score is then a sum of one function a column.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tacit.errors import IncompatibleError, SpecError
from tacit.features.map import BELOW, Facts, bound_of
from tacit.features.spec import FeatureSpec
from tacit.types import Array, ColumnFeatures

WAVES = 6
DECAY = 1.0
MOST = 64
ROOM = 5e8  # numbers that the waves of all records may take in all


@dataclass(frozen=True)
class Columns:
    """(waves of each number, other features as they are, 1) / bound."""

    n_inputs: int
    inputs: tuple[ColumnFeatures, ...]  # the columns, in the order of the features
    low: float = 0.0
    high: float = 1.0
    waves: int = WAVES
    bound: float = 1.0

    def __post_init__(self) -> None:
        made = (one if isinstance(one, ColumnFeatures) else ColumnFeatures(**one) for one in self.inputs)
        object.__setattr__(self, "inputs", tuple(made))
        if not 1 <= self.waves <= MOST:
            raise SpecError(f"features.size of columns is the number of waves, from 1 to {MOST}: got {self.waves}.")

    @classmethod
    def made_for(cls, facts: Facts, asked: FeatureSpec) -> Columns:
        if facts.bounds is None:
            raise IncompatibleError(
                "the feature map columns needs the public bounds of every column: give a schema, or data.low and "
                "data.high; without either use features.map = unit."
            )
        columns = facts.columns or tuple(
            ColumnFeatures(str(j), j, j + 1, number=True) for j in range(facts.n_inputs)
        )
        low, high = facts.bounds if not facts.columns else (0.0, 1.0)
        return cls(facts.n_inputs, columns, low, high, asked.size or waves_for(facts))

    @property
    def n_outputs(self) -> int:
        return self.columns()[-1].stop

    def columns(self) -> tuple[ColumnFeatures, ...]:
        """Return what became of each column; the last is the intercept, as a column of its own."""
        found, at = [], 0
        for one in self.inputs:
            size = one.stop - one.start + (self.waves - 1 if one.number else 0)
            found.append(ColumnFeatures(one.column, at, at + size, one.bound / self._size))
            at += size
        return (*found, ColumnFeatures("intercept", at, at + 1, 1 / self._size))

    def names(self, inputs: tuple[str, ...]) -> tuple[str, ...]:
        if not inputs:
            return ()
        found = []
        for one in self.inputs:
            own = inputs[one.start : one.stop]
            waves = [f"{own[0]} wave {m}" for m in range(1, self.waves + 1)] if one.number else []
            found += [*waves, *own[one.number :]]
        return (*found, "intercept")

    @cached_property
    def _size(self) -> float:
        """A bound on |x|_2 before it is divided."""
        return math.sqrt(1 + bound_of(self.inputs) ** 2) / BELOW

    def block(self, x: Array) -> Array:
        out = np.empty((len(x), self.n_outputs), np.float32)
        m = np.arange(1, self.waves + 1)
        weight = m**-DECAY
        weight = weight / np.linalg.norm(weight) / self._size
        for one, to in zip(self.inputs, self.columns(), strict=False):
            if not one.number:
                out[:, to.start : to.stop] = x[:, one.start : one.stop] * (1 / self._size)
                continue
            width = self.high - self.low
            u = ((x[:, one.start].astype(np.float64) - self.low) / width).clip(0, 1)
            rest = x[:, one.start + 1 : one.stop]
            there = 1 - rest.sum(axis=1, keepdims=True)
            out[:, to.start : to.start + self.waves] = np.cos(math.pi * u[:, None] * m) * weight * there
            out[:, to.start + self.waves : to.stop] = rest * (1 / self._size)
        out[:, -1] = 1 / self._size
        return out


def waves_for(facts: Facts) -> int:
    """Return how many waves a number gets: fewer where there is no room for all of them."""
    numbers = sum(one.number for one in facts.columns) or facts.n_inputs
    return max(1, min(WAVES, int(ROOM / (facts.n_records * numbers))))
