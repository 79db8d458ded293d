"""The columns of a table, each bent by itself: a generalised additive model whose shapes can be drawn.

A number is moved to u in [0, 1] by its public bounds; where it has none, u = 1/2 + x / (2 (1 + |x|)). u becomes waves,
a_m sin(pi m (u - 1/2)) and a_m cos(pi m (u - 1/2)) for m = 1 .. M, less their means over [0, 1] and divided by their
norm. The weights a_m fall as the waves grow shorter: what few records can tell is learnt first, and what only many can
tell is left to many. A category becomes a corner of a simplex around zero. One intercept serves all columns.

Every column then has norm one, whatever its cell holds. So all of a record is divided by one public number,
sqrt(columns + 1), and never by a norm that depends on other columns: the score is a sum of one function a column.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from tacit.errors import SpecError
from tacit.features.map import BELOW, FeatureSpec, PublicFacts, bound_of
from tacit.types import Array, ColumnFeatures

LEAST, MOST = 4, 32  # waves of a number, unless they are chosen
DECAY = 0.75  # a_m ~ m^-DECAY
HIGHEST = 64
ROOM = 1e9  # numbers that the waves of all records may take


@dataclass(frozen=True)
class ColumnsMap:
    """(waves of each number, the simplex of each category, other features as they are, 1) / sqrt(columns + 1)."""

    n_inputs: int
    inputs: tuple[ColumnFeatures, ...]  # the columns, in the order of the features
    low: float | None = 0.0  # of every number; None where numbers have no public bounds
    high: float | None = 1.0
    waves: int = LEAST
    bound: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        made = (one if isinstance(one, ColumnFeatures) else ColumnFeatures(**one) for one in self.inputs)
        object.__setattr__(self, "inputs", tuple(made))
        places = [0, *(one.stop for one in self.inputs)]
        if [one.start for one in self.inputs] != places[:-1] or places[-1] != self.n_inputs or sorted(places) != places:
            raise SpecError("the columns of a feature map must hold all its inputs, one column after another.")
        if not all(0 < one.bound < 1e6 for one in self.inputs):
            raise SpecError("the bound of a column must be positive and finite.")
        if not 1 <= self.waves <= HIGHEST:
            raise SpecError(f"features.size of columns is the number of waves, from 1 to {HIGHEST}: got {self.waves}.")

    @classmethod
    def made_for(cls, facts: PublicFacts, asked: FeatureSpec) -> ColumnsMap:
        waves = waves_for(facts) if asked.size is None else asked.size
        if facts.columns:
            return cls(facts.n_inputs, facts.columns, waves=waves)
        numbers = tuple(ColumnFeatures(str(j), j, j + 1, number=True) for j in range(facts.n_inputs))
        low, high = facts.bounds or (None, None)
        return cls(facts.n_inputs, numbers, low, high, waves)

    @property
    def n_outputs(self) -> int:
        return self.columns()[-1].stop

    def columns(self) -> tuple[ColumnFeatures, ...]:
        """Return what became of each column; the last is the intercept, as a column of its own."""
        return self._made

    @cached_property
    def _made(self) -> tuple[ColumnFeatures, ...]:
        found, at = [], 0
        for one in self.inputs:
            size = one.stop - one.start + (2 * self.waves - 1 if one.number else 0)
            found.append(ColumnFeatures(one.column, at, at + size, one.bound / self._longest))
            at += size
        return (*found, ColumnFeatures("intercept", at, at + 1, 1 / self._longest))

    def names(self, inputs: tuple[str, ...]) -> tuple[str, ...]:
        if not inputs:
            return ()
        found = []
        for one in self.inputs:
            own = inputs[one.start : one.stop]
            waves = range(1, self.waves + 1) if one.number else ()
            found += [f"{own[0]} {wave} {m}" for wave in ("sin", "cos") for m in waves] + [*own[one.number :]]
        return (*found, "intercept")

    @cached_property
    def _longest(self) -> float:
        """A bound on |x|_2 before it is divided."""
        return math.sqrt(1 + bound_of(self.inputs) ** 2)

    @cached_property
    def _frequencies(self) -> tuple[Array, Array, Array]:
        """(pi m, a_m, the mean of cos(pi m (u - 1/2)) over u in [0, 1]) for m = 1 .. M; sines have the mean zero."""
        m = np.arange(1, self.waves + 1)
        return math.pi * m, m**-DECAY, 2 * np.sin(math.pi * m / 2) / (math.pi * m)

    def block(self, x: Array) -> Array:
        out = np.empty((len(x), self.n_outputs))
        for one, to in zip(self.inputs, self.columns(), strict=False):
            own = x[:, one.start : one.stop].astype(np.float64)
            out[:, to.start : to.stop] = self._number(own) if one.number else _simplex(own) if one.shares else own
        out[:, -1] = 1
        return np.asarray(out * (BELOW / self._longest), np.float32)

    def _number(self, own: Array) -> Array:
        """Return (sines, cosines, the missing level if there is one); waves are zero where a cell is missing."""
        frequency, weight, mean = self._frequencies
        u = self._unit(own[:, 0])
        angle, missing = (u - 0.5)[:, None] * frequency, own[:, 1:]
        waves = np.concatenate([weight * np.sin(angle), weight * (np.cos(angle) - mean)], axis=1)
        waves *= (1 - missing.sum(axis=1, keepdims=True)) / np.linalg.norm(waves, axis=1, keepdims=True)
        return np.concatenate([waves, missing], axis=1)

    def _unit(self, x: Array) -> Array:
        """u in [0, 1]."""
        if self.low is None or self.high is None:
            return np.asarray(0.5 + x / (2 * (1 + np.abs(x))))
        return np.asarray(((x - self.low) / max(self.high - self.low, 1e-300)).clip(0, 1))


def _simplex(own: Array) -> Array:
    """Return (x - sum(x) / k) / sqrt(1 - 1/k): the corners of a simplex around zero, at distance one; zeros stay."""
    k = own.shape[1]
    if k == 1:
        return own
    return np.asarray((own - own.sum(axis=1, keepdims=True) / k) / math.sqrt(1 - 1 / k))


def waves_for(facts: PublicFacts) -> int:
    """Return how many waves a number gets: the more, the more records there are to each column.

    About 4 sqrt(I) features in all and 512 at most, but for LEAST waves each; fewer where the records would not fit
    into memory otherwise.
    """
    columns = max(1, len(facts.columns) or facts.n_inputs)
    fitting = min(MOST, max(LEAST, round(min(2 * math.sqrt(facts.n_records), 256) / columns)))
    return max(1, min(fitting, int(ROOM / (2 * facts.n_records * columns))))
