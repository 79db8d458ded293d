"""Crossed columns: a feature for each pair of levels, so that a model can tell that two facts matter together.

The product of rows of l1 norm at most one has l1 norm, and so l2 norm, of at most one. Products are rounded down, for
rounding to the nearest could pass it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from tacit.data.cells import Cells
from tacit.data.columns.encoding import MOST_LEVELS, FeatureBlock, FeatureColumn
from tacit.errors import SpecError, unknown
from tacit.types import Array


@dataclass(frozen=True)
class Cross:
    """The product of the levels of the columns `of`, by their names."""

    of: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.of) < 2 or len({*self.of}) < len(self.of):
            raise SpecError(f"a cross takes two or more different columns, got {list(self.of)}.")

    def factors(self, columns: Mapping[str, FeatureColumn]) -> dict[str, FeatureColumn]:
        """Return the columns as they are crossed."""
        found = {}
        for name in self.of:
            if name not in columns:
                raise unknown("column of a cross", name, columns)
            levels = columns[name].levels()
            if levels is None:
                raise SpecError(f"{name!r} is a {columns[name].kind} column, which has no levels: leave it out.")
            found[name] = levels
        return found

    def block(self, name: str, columns: Mapping[str, FeatureColumn]) -> FeatureBlock:
        """Name the features: NAME=age in [20, 30), sex=male; ..."""
        levels = [column.features(own) for own, column in self.factors(columns).items()]
        size = prod(map(len, levels))
        if size > MOST_LEVELS:
            counts = " x ".join(str(len(own)) for own in levels)
            raise SpecError(f"{counts} are {size} features, and at most {MOST_LEVELS} are allowed: take fewer bins.")
        return FeatureBlock(name, tuple(f"{name}: {', '.join(pair)}" for pair in product(*levels)))


    def encode(
        self, columns: Mapping[str, FeatureColumn], done: Mapping[str, Array], cells: Mapping[str, Cells],
        marks: Collection[str],
    ) -> Array:  # fmt: skip
        """Return ((n, features) float32 in [0, 1]); `done` holds what each column became."""
        factors = self.factors(columns)
        return crossed([
            done[name] if levels == columns[name] else levels.encode(cells[name], marks)[0]
            for name, levels in factors.items()
        ])  # fmt: skip


def crossed(factors: Sequence[Array]) -> Array:
    """Return the products (n, a b ...) of rows (n, a), (n, b), ..., the last factor running fastest."""
    found, *others = factors
    for other in others:
        exact = found[:, :, None].astype(np.float64) * other[:, None, :]  # 24 bits times 24 bits fit
        rounded = exact.astype(np.float32)
        low = np.nextafter(rounded, np.float32(0))
        found = np.where(rounded > exact, low, rounded).reshape(len(found), -1)
    return found
