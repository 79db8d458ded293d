"""What a schema may declare a column to be, and how a numeric or categorical one becomes features in [0, 1].

    NumericColumn       (v - lo) / (hi - lo), clipped to [0, 1]: one feature
    CategoricalColumn   one feature a value, 1 where it is the record's: at most one of them is not zero
    LabelColumn         the class of a record
    TargetColumn        the number that is to be predicted of a record
    AgentColumn         the agent that holds a record
    IgnoredColumn       left out

Every cell has an encoding, and it depends on that cell and on declared constants alone: nothing is learnt from
other records, and no record can make the encoding fail. What had to be changed is counted in a `Tally`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection
from dataclasses import astuple, dataclass
from operator import add
from typing import ClassVar, TypeAlias

import numpy as np

from tacit.data.cells import Cells, Coded, number, plain
from tacit.errors import SpecError
from tacit.types import Array, Target

_BOOLEANS = {"true": "1", "false": "0"}


@dataclass(frozen=True)
class Tally:
    """How many cells of a column were changed. It describes private records: it stays with their owner."""

    clipped: int = 0  # numbers outside [lo, hi]
    missing: int = 0
    unreadable: int = 0  # text in a numeric column, encoded as missing
    unknown: int = 0  # values that are not in the list

    def __add__(self, other: Tally) -> Tally:
        return Tally(*map(add, astuple(self), astuple(other)))


@dataclass(frozen=True)
class NumericColumn:
    """A number in [lo, hi]; missing cells are read as `missing`, by default the middle."""

    kind: ClassVar[str] = "numeric"
    lo: float
    hi: float
    missing: float | None = None

    def __post_init__(self) -> None:
        if not (self.lo < self.hi and math.isfinite(self.hi - self.lo)):
            raise SpecError(f"lo must be less than hi and both finite, got lo = {self.lo:g} and hi = {self.hi:g}.")
        if self.missing is not None and not self.lo <= self.missing <= self.hi:
            raise SpecError(f"missing = {self.missing:g} lies outside [{self.lo:g}, {self.hi:g}]: choose within.")

    def features(self, column: str) -> tuple[str, ...]:
        """Name the feature: as the column."""
        return (column,)

    def encode(self, cells: Cells, marks: Collection[str]) -> tuple[Array, Tally]:
        """Return ((n, 1) float32 in [0, 1], what was changed)."""
        value, unreadable = as_numbers(cells, marks)
        absent = np.isnan(value)
        middle = self.lo + (self.hi - self.lo) / 2  # lo + hi may overflow
        value[absent] = middle if self.missing is None else self.missing
        outside = (value < self.lo) | (value > self.hi)
        x = (np.clip(value, self.lo, self.hi) - self.lo) / (self.hi - self.lo)
        tally = Tally(clipped=int(outside.sum()), missing=int(absent.sum()) - unreadable, unreadable=unreadable)
        return x.astype(np.float32)[:, None], tally


@dataclass(frozen=True)
class CategoricalColumn:
    """One of `values`, one-hot.

    drop      a value that has no feature of its own: its records have zeros
    other     the value that unknown ones are read as, by default zeros
    missing   the value that missing cells are read as, by default zeros
    """

    kind: ClassVar[str] = "categorical"
    values: tuple[str, ...]
    drop: str | None = None
    other: str | None = None
    missing: str | None = None

    def __post_init__(self) -> None:
        check_list("values", self.values, least=1 if self.drop is None else 2)
        for key in ("drop", "other", "missing"):
            named = getattr(self, key)
            if named is not None and named not in self.values:
                raise SpecError(f"{key} = {named!r} is not among the values: add it to them.")

    @property
    def kept(self) -> tuple[str, ...]:
        """The values that have a feature."""
        return tuple(value for value in self.values if value != self.drop)

    def features(self, column: str) -> tuple[str, ...]:
        """Name the features: smoker=former, ..."""
        return tuple(f"{column}={value}" for value in self.kept)

    def encode(self, cells: Cells, marks: Collection[str]) -> tuple[Array, Tally]:
        """Return ((n, values kept) float32, at most one 1 a row; what was changed)."""
        values = set(self.values)
        text = Coded.of(cells, lambda cell: _spelled(cell, values))
        absent = [not name or name in marks for name in text.names]
        unknown = [not gone and name not in values for name, gone in zip(text.names, absent, strict=True)]
        place = {value: k for k, value in enumerate(self.kept)}
        at = np.array([place.get(name, -1) for name in text.names], dtype=np.int64)
        at[absent] = place.get(self.missing or "", -1)
        at[unknown] = place.get(self.other or "", -1)
        x = text.each((at[:, None] == np.arange(len(place))).astype(np.float32))
        return x, Tally(missing=text.count(absent), unknown=text.count(unknown))


@dataclass(frozen=True)
class LabelColumn:
    """One of `classes`. A record of another class counts as absent."""

    kind: ClassVar[str] = "label"
    classes: tuple[str, ...]

    def __post_init__(self) -> None:
        check_list("classes", self.classes, least=2)

    def tally(self, cells: Cells, marks: Collection[str] = ()) -> Tally:  # noqa: ARG002
        """Count the cells that name no class."""
        text = Coded.of(cells)
        missing = text.count([not name for name in text.names])
        return Tally(missing=missing, unknown=text.count([name not in self.classes for name in text.names]) - missing)


@dataclass(frozen=True)
class TargetColumn:
    """A number to predict, in [lo, hi]: numbers outside are moved to the end, a record without one counts as absent."""

    kind: ClassVar[str] = "target"
    lo: float
    hi: float

    def __post_init__(self) -> None:
        _ = self.range  # refuses bounds that bound nothing

    @property
    def range(self) -> Target:
        """The public bounds."""
        return Target(self.lo, self.hi)

    def tally(self, cells: Cells, marks: Collection[str] = ()) -> Tally:
        """Count the cells that are moved to a bound, missing or no number."""
        value, unreadable = as_numbers(cells, marks)
        missing = int(np.isnan(value).sum()) - unreadable
        clipped = int(((value < self.lo) | (value > self.hi)).sum())
        return Tally(clipped=clipped, missing=missing, unreadable=unreadable)


@dataclass(frozen=True)
class AgentColumn:
    """The name of the agent that holds the record."""

    kind: ClassVar[str] = "agent"

    def tally(self, cells: Cells, marks: Collection[str] = ()) -> Tally:  # noqa: ARG002
        """Count the empty cells."""
        text = Coded.of(cells)
        return Tally(missing=text.count([not name for name in text.names]))


@dataclass(frozen=True)
class IgnoredColumn:
    """A column that is not used, and need not be there."""

    kind: ClassVar[str] = "ignore"


FeatureColumn: TypeAlias = NumericColumn | CategoricalColumn
Column: TypeAlias = FeatureColumn | LabelColumn | TargetColumn | AgentColumn | IgnoredColumn

# what `kind` of a schema.toml says -> the class; the fields of the class are the keys that the column takes
KINDS: dict[str, type[Column]] = {
    column.kind: column
    for column in (NumericColumn, CategoricalColumn, LabelColumn, TargetColumn, AgentColumn, IgnoredColumn)
}


def check_list(name: str, values: tuple[str, ...], least: int) -> None:
    """Refuse a list with too few values, an empty one, or one that is there twice."""
    if len(values) < least:
        raise SpecError(f"{name} needs at least {least} of them, got {len(values)}: list every one there can be.")
    if "" in values:
        raise SpecError(f"{name} holds an empty text, which is how a missing cell reads: say `missing` for those.")
    value, times = Counter(values).most_common(1)[0]
    if times > 1:
        raise SpecError(f"{name} holds {value!r} {times} times: list each once (3, 3.0 and '3' are the same).")


def as_numbers(cells: Cells, marks: Collection[str]) -> tuple[Array, int]:
    """Return (float64, NaN where missing or unreadable; how many were unreadable)."""
    unreadable = 0
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "biuf":
        value = cells.astype(np.float64)
    else:
        value = np.full(len(cells), math.nan) if isinstance(cells, np.ndarray) else cells.numbers()
        rest = np.flatnonzero(np.isnan(value))
        text = [plain(cell) for cell in (cells[rest].tolist() if isinstance(cells, np.ndarray) else cells.take(rest))]
        read = {cell: _number(cell) for cell in {*text} - {"", *marks}}
        unreadable = sum(cell in read and read[cell] is None for cell in text)
        value[rest] = np.array([read.get(cell) for cell in text], dtype=np.float64)  # None becomes NaN
    codes = [_number(mark) for mark in marks]  # -9 is a mark however the number is written
    value[np.isin(value, [code for code in codes if code is not None])] = math.nan
    return value, unreadable


def _spelled(cell: object, values: Collection[str]) -> str:
    """Return a cell as text; a truth value of a typed file as the list spells it: True, or true as in CSV files."""
    text = plain(cell)
    return text.lower() if isinstance(cell, bool) and text not in values else text


def _number(text: str) -> float | None:
    """Return the number that a text holds, 1 and 0 for true and false, or None."""
    try:
        return number(_BOOLEANS.get(text.lower(), text))
    except ValueError:
        return None
