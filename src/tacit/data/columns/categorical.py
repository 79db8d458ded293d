"""One of a list: one feature a value, 1 where it is the record's; at most one of them is not zero."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit.data.cells import Cells, Coded, plain
from tacit.data.columns.encoding import LEVEL, FeatureBlock, FeatureColumn, Tally, Values, check_list
from tacit.data.table import some
from tacit.errors import SpecError
from tacit.types import Array


@dataclass(frozen=True)
class CategoricalColumn(FeatureColumn):
    """One of `values`, one-hot.

    drop      a value that has no feature of its own: its records have zeros
    other     the value that unknown ones are read as, by default zeros; "level" is a level of its own, called other
    missing   the value that missing cells are read as, by default zeros; "level" is a level of its own, called missing
    """

    kind: ClassVar[str] = "categorical"
    values: tuple[str, ...]
    drop: str | None = None
    other: str | None = None
    missing: str | None = None
    marks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_list("values", self.values, least=1 if self.drop is None else 2)
        for key in ("drop", "other", "missing"):
            named = getattr(self, key)
            if named is not None and named not in self.values and (named != LEVEL or key == "drop"):
                raise SpecError(f"{key} = {named!r} is not among the values: add it to them.")
        both = sorted({*self.values} & {*self.marks})
        if both:
            raise SpecError(f"{both[0]!r} is a value and a missing mark: it cannot be both.")

    def _read_as(self, key: str) -> str | None:
        """Return the level that unknown or missing cells get, by the key that says it; None for zeros."""
        named: str | None = getattr(self, key)
        return key if named == LEVEL and LEVEL not in self.values else named

    @property
    def declared(self) -> str:
        return f"one of {some(self.values)}"

    @property
    def kept(self) -> tuple[str, ...]:
        """The levels that have a feature: the values but the dropped one, then those of other and missing cells."""
        more = [key for key in ("other", "missing") if self._read_as(key) == key]
        return tuple(value for value in dict.fromkeys((*self.values, *more)) if value != self.drop)

    def blocks(self, column: str) -> tuple[FeatureBlock, ...]:
        """One block: smoker=former, ..."""
        return (FeatureBlock(column, tuple(f"{column}={value}" for value in self.kept)),)

    def domain(self) -> Values:
        """Return every declared value."""
        return Values(np.array(self.values, dtype=object), number=False)

    def levels(self) -> CategoricalColumn:
        """Return the column itself."""
        return self

    def encode(self, cells: Cells, marks: Collection[str]) -> tuple[Array, Tally]:
        """Return ((n, levels kept) float32, at most one 1 a row; what was changed)."""
        values, place = {*self.values}, {value: k for k, value in enumerate(self.kept)}
        text = Coded.of(cells, lambda cell: _spelled(cell, values))
        gone = {"", *marks, *self.marks, *({"missing"} - values if self._read_as("missing") == "missing" else ())}
        absent = [name in gone for name in text.names]
        unknown = [name not in gone and name not in values for name in text.names]
        at = np.array([place.get(name, -1) for name in text.names], dtype=np.int64)
        at[absent] = place.get(self._read_as("missing") or "", -1)
        at[unknown] = place.get(self._read_as("other") or "", -1)
        x = text.each((at[:, None] == np.arange(len(place))).astype(np.float32))
        return x, Tally(missing=text.count(absent), unknown=text.count(unknown))


def _spelled(cell: object, values: Collection[str]) -> str:
    """Return a cell as text; a truth value of a typed file as the list spells it: True, or true as in CSV files."""
    text = plain(cell)
    return text.lower() if isinstance(cell, bool) and text not in values else text
