"""The cells of one column: numbers, text or None; and a column of texts as codes.

Labels, agents and categories are text: 3, 3.0 and "3" are one name, whatever the format.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from tacit.types import Array

# an integer without leading zeros, perhaps written as a real number: 3, +3, 3.0
_WHOLE = re.compile(r"\+?(-?(?:0|[1-9][0-9]*))(?:\.0*)?")


class LazyCells(Protocol):
    """Cells that still lie in their file's own form: each becomes a Python object where one is asked for."""

    def __len__(self) -> int: ...

    def tolist(self) -> list[Any]:
        """Return every cell."""

    def take(self, rows: Array) -> list[Any]:
        """Return the cells of some records."""

    def numbers(self) -> Array:
        """Return float64, NaN where a cell is not plainly a number."""

    def coded(self) -> tuple[Array, list[Any]]:
        """Return (codes, cells): record i holds cells[codes[i]]; the same cell may be there twice."""


Cells: TypeAlias = Array | LazyCells


def plain(value: object) -> str:
    """Return a cell as text, whole numbers without a decimal point; "" for None, NaN and blanks."""
    try:
        if value is None or value != value:  # NaN differs from itself
            return ""
    except TypeError:  # the NA of pandas cannot tell whether it does
        return ""
    text = value.decode(errors="replace") if isinstance(value, bytes) else str(value).strip()
    whole = _WHOLE.fullmatch(text)
    return whole[1] if whole else text


def number(text: str) -> float:
    """Return the number that a cell holds. ValueError where it holds none: 1_0 is ten to Python alone."""
    if "_" in text:
        raise ValueError(f"{text!r} is not a number")
    return float(text)


@dataclass(frozen=True, eq=False)
class Coded:
    """A column of texts (n,), few of which differ: record i holds names[codes[i]]; every name is somebody's.

    Ten million labels are 40 MB of codes, and would be 600 MB of texts.
    """

    codes: Array
    names: tuple[str, ...]

    @classmethod
    def of(cls, cells: Cells, spell: Callable[[Any], str] = plain) -> Coded:
        """Return the cells as texts, each spelled by `spell`."""
        codes, found = _distinct(cells)
        place: dict[str, int] = {}
        named = [place.setdefault(spell(cell), len(place)) for cell in found]
        return cls(np.array(named, np.int32)[codes], tuple(place))

    @classmethod
    def stacked(cls, columns: Sequence[Coded]) -> Coded:
        """Put columns under one another."""
        place: dict[str, int] = {}
        named = [[place.setdefault(name, len(place)) for name in column.names] for column in columns]
        codes = [np.array(own, np.int32)[column.codes] for own, column in zip(named, columns, strict=True)]
        return cls(np.concatenate(codes), tuple(place))

    def __len__(self) -> int:
        return len(self.codes)

    def tolist(self) -> list[str]:
        """Return the text of every record."""
        return [self.names[code] for code in self.codes.tolist()]

    def each(self, values: Sequence[Any] | Array) -> Array:
        """Return (n,), for every record what `values` holds for its name."""
        return np.asarray(values)[self.codes]

    def count(self, wanted: Sequence[bool]) -> int:
        """Count the records whose name is wanted; `wanted` holds an answer for each name."""
        return int(np.bincount(self.codes, minlength=len(self.names)) @ np.asarray(wanted, dtype=np.int64))


def _distinct(cells: Cells) -> tuple[Array, list[Any]]:
    """Return (codes, cells) as `LazyCells.coded` does."""
    if not isinstance(cells, np.ndarray):
        return cells.coded()
    if cells.dtype.kind not in "biuf":
        return np.arange(len(cells)), cells.tolist()
    real = cells.dtype.kind == "f" and cells.itemsize <= 8  # told apart by their bits, for -0.0 is not spelled as 0.0
    bits = cells.view(f"u{cells.itemsize}") if real else cells
    _, first, codes = np.unique(bits, return_index=True, return_inverse=True)
    return codes, cells[first].tolist()
