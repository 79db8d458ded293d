"""What a column may be, and how a numeric or categorical one becomes features in [0, 1].

    Numeric       (v - lo) / (hi - lo), clipped to [0, 1]: one feature
    Categorical   one feature a value, 1 where it is the record's: at most one of them is not zero
    Label         the class of a record
    Agent         who holds it
    Ignored       left out

Every cell has an encoding, and it depends on that cell and on declared constants alone: nothing is learnt from
other records, and no record can make the encoding fail. What had to be changed is counted in a `Tally`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from tacit.data.columns import number, plain
from tacit.errors import SpecError
from tacit.types import Array

_BOOLEANS = {"true": 1.0, "false": 0.0}


@dataclass(frozen=True)
class Tally:
    """How many cells of a column were changed. It describes private records: it stays with their owner."""

    clipped: int = 0  # numbers outside [lo, hi]
    missing: int = 0
    unreadable: int = 0  # text in a numeric column, encoded as missing
    unknown: int = 0  # values that are not in the list

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.clipped + other.clipped,
            self.missing + other.missing,
            self.unreadable + other.unreadable,
            self.unknown + other.unknown,
        )


@dataclass(frozen=True)
class Numeric:
    """A number in [lo, hi]; missing cells are read as `missing`, by default the middle."""

    lo: float
    hi: float
    missing: float | None = None

    def __post_init__(self) -> None:
        if not (self.lo < self.hi and math.isfinite(self.hi - self.lo)):
            raise SpecError(f"lo must be less than hi and both finite, got lo = {self.lo:g} and hi = {self.hi:g}.")
        if self.missing is not None and not self.lo <= self.missing <= self.hi:
            raise SpecError(f"missing = {self.missing:g} lies outside [{self.lo:g}, {self.hi:g}]: choose within.")

    @property
    def middle(self) -> float:
        return self.lo + (self.hi - self.lo) / 2  # lo + hi may overflow

    def features(self, column: str) -> tuple[str, ...]:
        return (column,)

    def encode(self, cells: Array, marks: Collection[str]) -> tuple[Array, Tally]:
        """((n, 1) float32 in [0, 1], what was changed)."""
        value, unreadable = as_numbers(cells, marks)
        absent = np.isnan(value)
        value[absent] = self.middle if self.missing is None else self.missing
        outside = (value < self.lo) | (value > self.hi)
        x = (np.clip(value, self.lo, self.hi) - self.lo) / (self.hi - self.lo)
        tally = Tally(clipped=int(outside.sum()), missing=int(absent.sum()) - unreadable, unreadable=unreadable)
        return x.astype(np.float32)[:, None], tally


@dataclass(frozen=True)
class Categorical:
    """One of `values`, one-hot.

    drop      a value that has no feature of its own: its records have zeros
    other     the value that unknown ones are read as, by default zeros
    missing   the value that missing cells are read as, by default zeros
    """

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
        return tuple(f"{column}={value}" for value in self.kept)

    def encode(self, cells: Array, marks: Collection[str]) -> tuple[Array, Tally]:
        """((n, values kept) float32, at most one 1 a row, what was changed)."""
        values = set(self.values)
        text = [_spelled(cell, values) for cell in cells.tolist()]
        absent = np.array([not cell or cell in marks for cell in text], dtype=bool)
        known = np.array([cell in values for cell in text], dtype=bool)
        place = {value: k for k, value in enumerate(self.kept)}
        at = np.array([place.get(cell, -1) for cell in text], dtype=np.int64)
        at[absent] = place.get(self.missing or "", -1)
        at[~absent & ~known] = place.get(self.other or "", -1)
        x = (at[:, None] == np.arange(len(place))).astype(np.float32)
        return x, Tally(missing=int(absent.sum()), unknown=int((~absent & ~known).sum()))


@dataclass(frozen=True)
class Label:
    """One of `classes`. A record of another class counts as absent."""

    classes: tuple[str, ...]

    def __post_init__(self) -> None:
        check_list("classes", self.classes, least=2)

    def tally(self, cells: Array) -> Tally:
        """How many cells name no class."""
        text = [plain(cell) for cell in cells.tolist()]
        missing = text.count("")
        return Tally(missing=missing, unknown=sum(cell not in self.classes for cell in text) - missing)


@dataclass(frozen=True)
class Agent:
    """The name of the agent that holds the record."""

    def tally(self, cells: Array) -> Tally:
        """How many cells are empty."""
        return Tally(missing=sum(not plain(cell) for cell in cells.tolist()))


@dataclass(frozen=True)
class Ignored:
    """A column that is not used, and need not be there."""


Feature: TypeAlias = Numeric | Categorical
Kind: TypeAlias = Feature | Label | Agent | Ignored


def check_list(name: str, values: tuple[str, ...], least: int) -> None:
    """Enough values, none empty, none twice."""
    if len(values) < least:
        raise SpecError(f"{name} needs at least {least} of them, got {len(values)}: list every one there can be.")
    if "" in values:
        raise SpecError(f"{name} holds an empty text, which is how a missing cell reads: say `missing` for those.")
    value, times = Counter(values).most_common(1)[0]
    if times > 1:
        raise SpecError(f"{name} holds {value!r} {times} times: list each once (3, 3.0 and '3' are the same).")


def as_numbers(cells: Array, marks: Collection[str]) -> tuple[Array, int]:
    """(float64, NaN where missing or unreadable; how many were unreadable)."""
    unreadable = 0
    if cells.dtype.kind in "biuf":
        value = cells.astype(np.float64)
    else:
        value = np.empty(len(cells))
        for i, cell in enumerate(map(plain, cells.tolist())):
            absent = not cell or cell in marks
            number = None if absent else _number(cell)
            unreadable += number is None and not absent
            value[i] = math.nan if number is None else number
    codes = [_number(mark) for mark in marks]  # -9 is a mark however the number is written
    value[np.isin(value, [code for code in codes if code is not None])] = math.nan
    return value, unreadable


def _spelled(cell: object, values: Collection[str]) -> str:
    """A cell as text; a truth value of a typed file as the list spells it: True, or true as CSV files have it."""
    text = plain(cell)
    return text.lower() if isinstance(cell, bool) and text not in values else text


def _number(text: str) -> float | None:
    if text.lower() in _BOOLEANS:
        return _BOOLEANS[text.lower()]
    try:
        return number(text)
    except ValueError:
        return None
