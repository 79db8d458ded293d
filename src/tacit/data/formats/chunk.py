"""Columns of text: records of a text file with the places of their cells, as _csv.c finds them, or lists of cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from types import ModuleType

import numpy as np

from tacit.data.cells import number
from tacit.machine import extension
from tacit.types import Array

CHUNK, CHUNK_ROWS, CELL = 1 << 20, 64, 8  # of one raw table, at least: bytes, and records of cells of so many bytes


def compiled() -> ModuleType | None:
    """Return the extension module; None where it was not built, or TACIT_NO_KERNELS is set."""
    return extension("tacit.data.formats._csv")


def chunk_size(width: int) -> int:
    """Return how many bytes of a file with so many columns are read at a time."""
    return max(CHUNK, CHUNK_ROWS * CELL * width)


def is_utf8(text: bytes) -> bool:
    """Tell whether bytes are text."""
    try:
        return text.isascii() or bool(text.decode())
    except UnicodeDecodeError:
        return False


@cache
def powers(most: int) -> Array:
    """Return 10^q for |q| <= most as (m, e): 10^q lies in [m, m + 1) 2^e and m has 64 bits."""
    found = []
    for q in range(-most, most + 1):
        large = 10 ** abs(q)
        e = large.bit_length() - 64 if q >= 0 else -large.bit_length() - 63
        found.append(((large << 64) >> (64 + e) if q >= 0 else (1 << -e) // large, e))
    return np.array(found, dtype=[("m", np.uint64), ("e", np.int64)])


def with_point(cell: str) -> str:
    """Return a cell of a file with decimal commas as `number` reads it.

    1,5 is given as 1.5. A number with a point is given in quotes, which make it unreadable: 1.500 may be meant as
    fifteen hundred.
    """
    try:
        if "." in cell:
            number(cell)
            return f"'{cell}'"
        number(pointed := cell.replace(",", "."))
        return pointed
    except ValueError:
        return cell


@dataclass(frozen=True, eq=False)
class Chunk:
    """Whole records, UTF-8, and where their cells lie: spans (n, columns, 2), as _csv.c has them."""

    kernels: ModuleType
    text: bytes
    spans: Array
    quote: str = '"'
    decimal: str = "."

    def columns(self) -> list[Column | Texts]:
        """Return all columns, none if there is no record."""
        return [Column(self, j) for j in range(self.spans.shape[1])] if len(self.spans) else []

    def cells(self, spans: Array) -> list[str]:
        """Return the cells at some spans (m, 2)."""
        doubled, quote = self.kernels.DOUBLED, self.quote
        found = []
        for begin, end in spans.tolist():
            cell = self.text[begin : end & ~doubled].decode()
            found.append(cell.replace(quote * 2, quote) if end & doubled else cell)
        return found

    def numbers(self, columns: list[int], dtype: type) -> tuple[Array, int]:
        """Return (the numbers (n, columns) in cells, how many are NaN because they are not plainly numbers)."""
        out: Array = np.empty((len(self.spans), len(columns)), dtype)
        wanted, table, decimal = np.array(columns, np.int32), powers(self.kernels.MOST), self.decimal.encode()
        return out, self.kernels.numbers(self.text, self.spans, self.spans.shape[1], wanted, decimal, table, out)

    def matrix_of(self, names: Sequence[str]) -> Callable[[Sequence[str]], Array | None]:
        """Return what gives the numbers in columns, if these are the names of all, as float32.

        It gives None if a cell holds no number.
        """
        places = {name: j for j, name in enumerate(names)}
        return lambda wanted: self._matrix([places[name] for name in wanted])

    def _matrix(self, columns: list[int]) -> Array | None:
        x, odd = self.numbers(columns, np.float32)
        if odd:
            i, j = np.nonzero(np.isnan(x))
            try:
                x[i, j] = [number(cell) for cell in self.cells(self.spans[i, np.array(columns)[j]])]
            except ValueError:
                return None
        return x


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a chunk."""

    chunk: Chunk
    j: int

    def __len__(self) -> int:
        return len(self.chunk.spans)

    def tolist(self) -> list[str]:
        return self.chunk.cells(self.chunk.spans[:, self.j])

    def take(self, rows: Array) -> list[str]:
        found = self.chunk.cells(self.chunk.spans[rows, self.j])
        return found if self.chunk.decimal == "." else list(map(with_point, found))

    def numbers(self) -> Array:
        return self.chunk.numbers([self.j], np.float64)[0][:, 0]

    def coded(self) -> tuple[Array, list[str]]:
        codes, firsts = np.empty((2, len(self)), np.int32)
        text, spans = self.chunk.text, self.chunk.spans
        n = self.chunk.kernels.intern(text, spans, spans.shape[1], self.j, codes, firsts)
        return codes, self.chunk.cells(spans[firsts[:n], self.j])


@dataclass(frozen=True, eq=False)
class Texts:
    """A column of the Python reader."""

    cells: list[str]
    decimal: str = "."

    def __len__(self) -> int:
        return len(self.cells)

    def tolist(self) -> list[str]:
        return self.cells

    def take(self, rows: Array) -> list[str]:
        found = [self.cells[i] for i in rows.tolist()]
        return found if self.decimal == "." else list(map(with_point, found))

    def numbers(self) -> Array:
        return np.full(len(self.cells), np.nan)

    def coded(self) -> tuple[Array, list[str]]:
        return np.arange(len(self.cells)), self.cells
