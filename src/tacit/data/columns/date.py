"""Dates and times. Each part that is asked for becomes features of its own:

    year      the moment as a number in [0, 1] between lo and hi: what changes over the years
    month     one of twelve     weekday   one of seven, Monday first     hour   one of twenty-four

A cell that does not say a part, such as a date without an hour, has zeros for it. A moment outside [lo, hi] is moved to
its end for `year`, and keeps its month, weekday and hour.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date
from typing import ClassVar

import numpy as np

from tacit.data.cells import Cells, Coded, plain
from tacit.data.columns import moments
from tacit.data.columns.encoding import LEVEL, FeatureBlock, FeatureColumn, Tally, check_list, check_missing, one_hot
from tacit.errors import SpecError, unknown
from tacit.types import Array

# the parts but the year -> their names, and how many days the range has at least for the part to be there by default
CYCLES = {
    "month": (tuple(map(str, range(1, 13))), 365.0),
    "weekday": (("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"), 7.0),
    "hour": (tuple(map(str, range(24))), 0.0),
}
PARTS = ("year", *CYCLES)


@dataclass(frozen=True)
class DateColumn(FeatureColumn):
    """A moment in [lo, hi], both ISO 8601. Missing cells are the middle of the range and zeros, or a level.

    parts    default: year; month if the range has a year; weekday if it has a week; hour if lo or hi says an hour
    format   how the cells are written, as `datetime.strptime` takes it; default: ISO 8601
    """

    kind: ClassVar[str] = "date"
    lo: str
    hi: str
    parts: tuple[str, ...] = ()
    format: str | None = None
    missing: str | None = None
    marks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        ends = moments.read([self.lo, self.hi])
        for text, known in zip((self.lo, self.hi), ends.known, strict=True):
            if not known:
                raise SpecError(f"{text!r} is no date: write lo and hi as 2020-01-31 or 2020-01-31T23:59.")
        if not ends.when[0] < ends.when[1]:
            raise SpecError(f"lo must be before hi, got lo = {self.lo} and hi = {self.hi}.")
        if self.parts:
            check_list("parts", self.parts, least=1)
        for part in self.parts:
            if part not in PARTS:
                raise unknown("part of a date", part, PARTS)
        if self.format is not None:
            moments.check_form(self.format)
        check_missing(self.missing)

    @property
    def declared(self) -> str:
        return f"a date from {self.lo} to {self.hi}"

    @property
    def made_of(self) -> tuple[str, ...]:
        """The parts that become features, in the order of PARTS."""
        lo, hi = moments.read([self.lo, self.hi]).when
        clock = any(":" in end for end in (self.lo, self.hi))
        default = ["year", *(part for part, (_, least) in CYCLES.items() if (hi - lo >= least if least else clock))]
        return tuple(part for part in PARTS if part in (self.parts or default))

    def blocks(self, column: str) -> tuple[FeatureBlock, ...]:
        """One block a part: admitted year; admitted month=1, ...; the first has the level of missing cells."""
        found: list[FeatureBlock] = []
        for part in self.made_of:
            name = f"{column} {part}"
            names = [name] if part == "year" else [f"{name}={value}" for value in CYCLES[part][0]]
            names += [f"{column}=missing"] if self.missing == LEVEL and not found else []
            found.append(FeatureBlock(name, tuple(names), number=part == "year"))
        return tuple(found)

    def levels(self) -> None:
        """Return None: a date is several columns, and no cross says which."""

    def encode(self, cells: Cells, marks: Collection[str]) -> tuple[Array, Tally]:
        """Return ((n, features) float32 in [0, 1], what was changed)."""
        text = Coded.of(_as_objects(cells), self._spelled)
        found, gone = moments.read(text.names, self.format), {"", *marks, *self.marks}
        absent = np.array([name in gone for name in text.names], dtype=bool)
        there = found.known & ~absent
        lo, hi = moments.read([self.lo, self.hi]).when
        when = np.where(there, found.when, lo + (hi - lo) / 2)
        columns = []
        for part in self.made_of:
            if part == "year":
                columns.append(((np.clip(when, lo, hi) - lo) / (hi - lo)).astype(np.float32)[:, None])
            else:
                columns.append(one_hot(np.where(there, getattr(found, part), -1), len(CYCLES[part][0])))
            if self.missing == LEVEL:
                columns[-1][~there] = 0
                columns += [(~there).astype(np.float32)[:, None]] if len(columns) == 1 else []
        outside = there & ((when < lo) | (when > hi))
        counts = (text.count(some.tolist()) for some in (outside, absent, ~there & ~absent))
        return text.each(np.concatenate(columns, axis=1)), Tally(*counts)

    def _spelled(self, cell: object) -> str:
        """Return a cell as `plain` does; a date of a typed file as `format` writes it."""
        if type(cell) is str and cell[4:5] == "-":  # soon done: most cells are such texts
            return cell.strip()
        text = plain(cell)
        return cell.strftime(self.format) if self.format and text and isinstance(cell, date) else text


def _as_objects(cells: Cells) -> Cells:
    """Return an array of NumPy's dates as Python's, which have no nanoseconds; other cells as they are."""
    if not isinstance(cells, np.ndarray) or cells.dtype.kind != "M":
        return cells
    if np.datetime_data(cells.dtype)[0] in ("ns", "ps", "fs", "as"):
        cells = cells.astype("datetime64[us]")
    return np.array(cells.tolist(), dtype=object)
