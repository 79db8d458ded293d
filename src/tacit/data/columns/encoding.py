"""What every kind of column that becomes features is, and what of it was changed.

Every cell has an encoding, and it depends on that cell and on declared constants alone: nothing is learnt from
other records, and no record can make the encoding fail. What had to be changed is counted in a `Tally`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection
from dataclasses import asdict, astuple, dataclass
from operator import add
from typing import ClassVar

import numpy as np

from tacit.data.cells import Cells
from tacit.errors import SpecError
from tacit.types import Array

LEVEL = "level"  # missing = "level": missing cells are a level of their own
MOST_LEVELS = 4096  # features that one column or cross may become, unless its kind says another number


@dataclass(frozen=True)
class Tally:
    """How many cells of a column were changed. It describes private records: it stays with their owner."""

    clipped: int = 0  # numbers and dates outside [lo, hi]
    missing: int = 0
    unreadable: int = 0  # text in a numeric column, encoded as missing
    unknown: int = 0  # values that are not in the list

    def __add__(self, other: Tally) -> Tally:
        return Tally(*map(add, astuple(self), astuple(other)))


@dataclass(frozen=True)
class Counts:
    """How many cells of each column were changed. The counts describe private records: they stay with their owner.

    No federation, message or result holds one.
    """

    records: int
    columns: dict[str, Tally]
    places: tuple[str, ...] = ()  # of the records that are not well-formed, all of whose cells are missing

    def __add__(self, other: Counts) -> Counts:
        both = {name: self.columns.get(name, Tally()) + tally for name, tally in other.columns.items()}
        return Counts(self.records + other.records, self.columns | both, self.places + other.places)

    def as_dict(self) -> dict[str, dict[str, int]]:
        """Return plain numbers by column, fit for JSON."""
        return {name: asdict(tally) for name, tally in self.columns.items()}


@dataclass(frozen=True)
class FeatureBlock:
    """Features that belong together, and what is publicly known of them."""

    column: str
    features: tuple[str, ...]
    number: bool = False  # as in `ColumnFeatures`
    l1: float = 1.0  # sup |x|_1 of these features
    l2: float = 1.0  # sup |x|_2
    signed: bool = False  # they lie in [-1, 1], and not in [0, 1]


@dataclass(frozen=True, eq=False)
class Values:
    """The values of a column whose effects a report draws, from its declaration alone."""

    cells: Array
    number: bool  # a curve; else a mark a value
    log: bool = False  # the axis of the curve


@dataclass(frozen=True)
class FeatureColumn(ABC):
    """A column that becomes features. Each kind takes `marks`, texts that count as missing in this column alone."""

    kind: ClassVar[str]

    @abstractmethod
    def blocks(self, column: str) -> tuple[FeatureBlock, ...]:
        """Return which features there are, in their order."""

    @abstractmethod
    def encode(self, cells: Cells, marks: Collection[str]) -> tuple[Array, Tally]:
        """Return ((n, features) float32, what was changed)."""

    @abstractmethod
    def levels(self) -> FeatureColumn | None:
        """Return the column as a cross takes it, each row of l1 norm at most one; None where it has no levels."""

    @property
    def declared(self) -> str:
        """The declaration in words, for the owner."""
        return f"a {self.kind} column"

    def width(self) -> int:
        """Return how many features there are."""
        return len(self.features(""))

    def domain(self) -> Values | None:
        """Return the values whose effects can be drawn; None where there are none to draw."""
        return None

    def features(self, column: str) -> tuple[str, ...]:
        """Name the features of a column."""
        return tuple(name for block in self.blocks(column) for name in block.features)


def one_hot(at: Array, size: int) -> Array:
    """Return (n, size) float32, 1 at the place of each row; a place of -1 is nowhere."""
    x = np.zeros((len(at), size), np.float32)
    there = np.flatnonzero(at >= 0)
    x[there, at[there]] = 1
    return x


def check_list(name: str, values: tuple[str, ...], least: int) -> None:
    """Refuse a list with too few values, an empty one, or one that is there twice."""
    if len(values) < least:
        raise SpecError(f"{name} needs at least {least} of them, got {len(values)}: list every one there can be.")
    if "" in values:
        raise SpecError(f"{name} holds an empty text, which is how a missing cell reads: say `missing` for those.")
    value, times = Counter(values).most_common(1)[0]
    if times > 1:
        first, second, *_ = (n for n, one in enumerate(values, 1) if one == value)
        raise SpecError(  # without the value: a list of a column's cells is a likely mistake
            f"{name} lists one value {times} times, at places {first} and {second}: list each once (3, 3.0 and '3' are "
            "the same)."
        )


def check_size(name: str, size: int, least: int, most: int = MOST_LEVELS) -> None:
    """Refuse a number of features that is too small to say anything, or too large for any table."""
    if not least <= size <= most:
        raise SpecError(f"{name} takes a whole number from {least} to {most}, got {size}.")


def check_missing(missing: str | None) -> None:
    """Refuse another word than "level" where a column takes no other."""
    if missing not in (None, LEVEL):
        raise SpecError(f'missing takes "{LEVEL}" here, or nothing (missing cells are zeros then), got {missing!r}.')
