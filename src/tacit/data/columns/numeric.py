"""A number between public bounds: one number u in [0, 1], one of several bins, or linear splines.

    scale       u = (v - lo) / (hi - lo);  "log": log(v / lo) / log(hi / lo), and log(1 + c v / hi) / log(1 + c) for
                lo = 0, c = 10^4: in proportion below hi / c, where the difference of two amounts hardly matters, and
                logarithmic above. Neither depends on the unit of the column.
    bins        one feature a bin, 1 in the bin of the record: equal bins of u, or between given edges
    spline      hats max(0, 1 - |(k - 1) u - i|) on k knots: two neighbours are not zero, and add up to one exactly
    neither     u itself, which the feature map `columns` bends by a public rule
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar

import numpy as np

from tacit.data.cells import Cells, number, plain
from tacit.data.columns.encoding import LEVEL, FeatureBlock, FeatureColumn, Tally, Values, check_size, one_hot
from tacit.errors import SpecError
from tacit.types import Array

DECADES = 1e4  # c of a log scale from zero: four decades below hi
DRAWN = 129  # values of a number whose effect is drawn
CROSSED_BINS = 4  # of a column that says no bins, in a cross
SCALES = ("linear", "log")

_BOOLEANS = {"true": "1", "false": "0"}


@dataclass(frozen=True)
class NumericColumn(FeatureColumn):
    """A number in [lo, hi]; missing cells are read as `missing`, by default the middle of the scale, or are a level."""

    kind: ClassVar[str] = "numeric"
    lo: float
    hi: float
    missing: float | str | None = None
    bins: int | None = None
    edges: tuple[float, ...] = ()
    spline: int | None = None
    scale: str | None = None
    marks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not (self.lo < self.hi and math.isfinite(self.hi - self.lo)):
            raise SpecError(f"lo must be less than hi and both finite, got lo = {self.lo:g} and hi = {self.hi:g}.")
        if isinstance(self.missing, str):
            if self.missing != LEVEL:
                raise SpecError(f'missing takes a number or "{LEVEL}", got {self.missing!r}.')
        elif self.missing is not None and not self.lo <= self.missing <= self.hi:
            raise SpecError(f"missing = {self.missing:g} lies outside [{self.lo:g}, {self.hi:g}]: choose within.")
        self._check_scale()
        given = [key for key in ("bins", "edges", "spline") if getattr(self, key) not in (None, ())]
        if len(given) > 1:
            raise SpecError(f"{' and '.join(given)} each say what becomes of the number: keep one of them.")
        for key in ("bins", "spline"):
            if getattr(self, key) is not None:
                check_size(key, getattr(self, key), least=2)
        check_size("the list of edges", len(self.edges), least=0)
        ends = (self.lo, *self.edges, self.hi)
        if any(not a < b for a, b in pairwise(ends)):
            raise SpecError(
                f"edges must increase and lie between lo = {self.lo:g} and hi = {self.hi:g}, which are ends already."
            )
        if len(set(self.knots)) < len(self.knots):
            raise SpecError(f"lo = {self.lo!r} and hi = {self.hi!r} are too close for so many bins or knots.")

    def _check_scale(self) -> None:
        if self.scale not in (None, *SCALES):
            raise SpecError(f"scale takes {' or '.join(map(repr, SCALES))}, got {self.scale!r}.")
        if self.scale == "log":
            if self.lo < 0:
                raise SpecError(f"a log scale needs lo >= 0, got lo = {self.lo:g}: split the column by its sign.")
            if self.edges:
                raise SpecError("edges say where the bins end, so that a log scale changes nothing: drop one of them.")
            if self.lo and math.log(self.lo) == math.log(self.hi):
                raise SpecError(f"lo = {self.lo!r} and hi = {self.hi!r} are too close for a log scale.")

    @property
    def declared(self) -> str:
        return f"a number from {self.lo:g} to {self.hi:g}"

    @property
    def straight(self) -> bool:
        """Whether the one feature is linear in the number."""
        return self.scale != "log" and not self.knots and self.missing != LEVEL

    @property
    def cuts(self) -> tuple[float, ...]:
        """Where one bin ends and the next begins, in the units of the column; () without bins."""
        inner = [self._unscaled(k / self.bins) for k in range(1, self.bins)] if self.bins else []
        return self.edges or tuple(inner)

    @property
    def knots(self) -> tuple[float, ...]:
        """The ends of the bins, or the knots of the spline, in the units of the column; () for a bare number."""
        if self.spline:
            inner = (self._unscaled(k / (self.spline - 1)) for k in range(1, self.spline - 1))
            return (self.lo, *inner, self.hi)
        return (self.lo, *self.cuts, self.hi) if self.cuts else ()

    def blocks(self, column: str) -> tuple[FeatureBlock, ...]:
        """One block: age; or age in [20, 30), ...; or age near 20, ...; then age=missing if that is a level."""
        at = _written(self.knots)
        if self.spline:
            names = [f"{column} near {knot}" for knot in at]
        elif at:
            names = [f"{column} in [{a}, {b})" for a, b in pairwise(at)]
            names[-1] = names[-1][:-1] + "]"
        else:
            names = [column]
        names += [f"{column}=missing"] if self.missing == LEVEL else []
        return (FeatureBlock(column, tuple(names), number=not at),)

    def width(self) -> int:
        return (self.bins or self.spline or len(self.edges) + 1) + (self.missing == LEVEL)

    def domain(self) -> Values:
        """Return numbers from lo to hi, evenly on the scale of the column."""
        cells = np.array([self._unscaled(k / (DRAWN - 1)) for k in range(DRAWN)])
        return Values(cells, number=True, log=self.scale == "log" and self.lo > 0)

    def levels(self) -> NumericColumn:
        """Return the column in bins or splines: a bare number in four bins."""
        return self if self.knots else replace(self, bins=CROSSED_BINS)

    def encode(self, cells: Cells, marks: Collection[str]) -> tuple[Array, Tally]:
        """Return ((n, features) float32 in [0, 1], what was changed)."""
        value, unreadable = as_numbers(cells, {*marks, *self.marks})
        absent = np.isnan(value)
        value[absent] = self._unscaled(0.5) if self.missing in (None, LEVEL) else self.missing
        outside = (value < self.lo) | (value > self.hi)
        x = self._bent(np.clip(value, self.lo, self.hi))
        if self.missing == LEVEL:
            x[absent] = 0
            x = np.column_stack([x, absent.astype(np.float32)])
        return x, Tally(int(outside.sum()), int(absent.sum()) - unreadable, unreadable)

    def _bent(self, value: Array) -> Array:
        if self.cuts:
            return one_hot(np.searchsorted(self.cuts, value, side="right"), len(self.cuts) + 1)
        u = self._scaled(value)
        return u.astype(np.float32)[:, None] if self.spline is None else _hats(u, self.spline)

    def _scaled(self, value: Array) -> Array:
        """u of numbers in [lo, hi]."""
        if self.scale != "log":
            u = (value - self.lo) / (self.hi - self.lo)
        elif self.lo:
            u = (np.log(value) - math.log(self.lo)) / (math.log(self.hi) - math.log(self.lo))
        else:
            u = np.log1p(DECADES * (value / self.hi)) / math.log1p(DECADES)
        return np.clip(u, 0, 1)

    def _unscaled(self, u: float) -> float:
        """Return the number whose u this is."""
        if self.scale != "log":
            return self.lo + u * (self.hi - self.lo)  # lo + hi may overflow
        if self.lo:
            found = math.exp((1 - u) * math.log(self.lo) + u * math.log(self.hi))
        else:
            found = self.hi * (math.expm1(u * math.log1p(DECADES)) / DECADES)
        return min(max(found, self.lo), self.hi)


def _hats(u: Array, knots: int) -> Array:
    """Linear splines (n, knots). The larger of the two is rounded and the smaller is 1 - larger, without rounding."""
    place = u * (knots - 1)
    left = np.minimum(place.astype(np.int64), knots - 2)
    share = place - left
    nearer = np.where(share < 0.5, left, left + 1)
    larger = np.maximum(share, 1 - share).astype(np.float32)
    x = np.zeros((len(u), knots), np.float32)
    rows = np.arange(len(u))
    x[rows, nearer] = larger
    x[rows, 2 * left + 1 - nearer] = 1 - larger
    return x


def _written(values: Sequence[float]) -> list[str]:
    """Write numbers with few digits that tell them apart, and whole ones as such."""
    for digits in (6, 9):
        whole = 10**digits
        texts = [f"{v:.0f}" if abs(v) < whole and v % 1 == 0 else f"{v:.{digits}g}" for v in values]
        if len(set(texts)) == len(texts):
            return texts
    return [repr(value) for value in values]


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


def _number(text: str) -> float | None:
    """Return the number that a text holds, 1 and 0 for true and false, or None."""
    try:
        return number(_BOOLEANS.get(text.lower(), text))
    except ValueError:
        return None
