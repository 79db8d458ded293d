"""CSV files: the first row names the columns, and every cell is text.

The compiled reader (_csv.c), where it is installed, finds the cells and reads plain numbers. Whatever is not plain is
Python's: `number` reads a cell in doubt, and csv.reader the file, from the first record on that is not well-formed. So
both readers give the same table, and the same errors.
"""

from __future__ import annotations

import codecs
import csv
import importlib
import importlib.util
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain, islice
from pathlib import Path
from types import ModuleType

import numpy as np

from tacit.data.cells import number
from tacit.data.table import RawTable, check_column_names
from tacit.errors import DataError
from tacit.types import Array

ROWS, CELLS = 200, 10_000  # of one raw table, at least: text of this size stays in the cache of the processor
CHUNK, CHUNK_ROWS, CELL = 1 << 20, 64, 8  # likewise compiled: bytes, and records of cells of so many bytes


def read(path: Path) -> Iterator[RawTable]:
    """Read a CSV file as runs of records."""
    with _readable(path):
        header = _header(path)
        check_column_names(str(path), header.names)
        kernels = compiled()
        yield from _read_all(path, header) if kernels is None else _read_chunks(path, header, kernels)


def compiled() -> ModuleType | None:
    """Return the extension module; None where it was not built, or TACIT_NO_KERNELS is set."""
    name = "tacit.data.formats._csv"
    if os.environ.get("TACIT_NO_KERNELS") or importlib.util.find_spec(name) is None:
        return None
    return importlib.import_module(name)


@dataclass(frozen=True)
class _Header:
    names: list[str]  # stripped
    size: int  # bytes
    lines: int


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} is not a readable CSV file ({error}): save it as UTF-8 text.") from error


def _header(path: Path) -> _Header:
    """Read the first row."""
    with path.open("rb") as file:
        size = len(codecs.BOM_UTF8) if file.read(len(codecs.BOM_UTF8)) == codecs.BOM_UTF8 else 0
    with path.open(newline="", encoding="utf-8-sig") as text:
        lines: list[str] = []

        def noted() -> Iterator[str]:
            for line in text:
                lines.append(line)
                yield line

        rows = csv.reader(noted(), strict=True)
        names = [name.strip() for name in next(rows, [])]
        return _Header(names, size + len("".join(lines).encode()), rows.line_num)


# --- in Python


def _read_all(path: Path, header: _Header) -> Iterator[RawTable]:
    """Read every record with csv.reader."""
    rows = _rows(path, len(header.names))
    next(rows)
    return _raw_tables(path, header.names, rows, least=1)  # without records it is a table without, which is refused


def _raw_tables(path: Path, names: list[str], rows: Iterator[tuple[int, list[str]]], least: int) -> Iterator[RawTable]:
    """Make runs of rows into raw tables, at least so many."""
    n_rows = max(ROWS, CELLS // len(names))
    runs = iter(lambda: list(islice(rows, n_rows)), [])
    for run in chain([next(runs, []) for _ in range(least)], runs):
        cells = np.array([row for _, row in run], dtype=object).reshape(len(run), len(names))
        yield RawTable(str(path), dict(zip(names, cells.T, strict=True)), lines=[line for line, _ in run])


def _rows(path: Path, width: int, size: int = 0, lines: int = 0) -> Iterator[tuple[int, list[str]]]:
    """Give (line, cells) of every row that is not blank and lies behind so many bytes, which are so many lines."""
    with path.open("rb") as file:
        file.seek(size)
        text = io.TextIOWrapper(file, newline="", encoding="utf-8" if size else "utf-8-sig")
        rows = csv.reader(text, strict=True)
        for row in filter(None, rows):
            line = lines + rows.line_num
            if len(row) != width:
                raise DataError(
                    f"{path}, line {line}: {len(row)} cells under a header of {width}: "
                    "every row needs one cell a column; quote cells that hold commas."
                )
            yield line, row


# --- compiled


def _read_chunks(path: Path, header: _Header, kernels: ModuleType) -> Iterator[RawTable]:
    """Read the records chunk by chunk, and with csv.reader from the first that is not plain."""
    names, width, least = header.names, len(header.names), 1
    size, lines = header.size, header.lines  # of what was read so far
    text, final, why, step = b"", False, None, max(CHUNK, CHUNK_ROWS * CELL * width)
    spans, ends = np.empty((0, width, 2), np.uint32), np.empty(0, np.int32)
    with path.open("rb") as file:
        file.seek(size)
        while not final and why != kernels.ODD:
            more = file.read(max(step, len(text)))  # a record that is longer than all there is needs twice as much
            text, final = text + more, len(more) < max(step, len(text))
            room = len(text) // width + 1  # a row is a byte a cell at the least, but for the last
            if room > len(ends):
                spans, ends = np.empty((room, width, 2), np.uint32), np.empty(room, np.int32)
            n, used, passed, why = kernels.split(text, final, width, csv.field_size_limit(), spans, ends)
            chunk = _Chunk(kernels, text[:used], spans[:n].copy())
            if not _is_utf8(chunk.text):
                why = kernels.ODD
                break
            if n:
                columns = {name: _Column(chunk, j) for j, name in enumerate(names)}
                own_lines = ends[:n].astype(np.int64) + lines
                yield RawTable(str(path), columns, lines=own_lines, matrix=partial(chunk.matrix, columns))
                least = 0
            text, size, lines = text[used:], size + used, lines + passed
    if why == kernels.ODD or least:
        yield from _raw_tables(path, names, _rows(path, width, size, lines), least)


def _is_utf8(text: bytes) -> bool:
    try:
        return text.isascii() or bool(text.decode())
    except UnicodeDecodeError:
        return False


@cache
def _powers(most: int) -> Array:
    """Return 10^q for |q| <= most as (m, e): 10^q lies in [m, m + 1) 2^e and m has 64 bits."""
    found = []
    for q in range(-most, most + 1):
        large = 10 ** abs(q)
        e = large.bit_length() - 64 if q >= 0 else -large.bit_length() - 63
        found.append(((large << 64) >> (64 + e) if q >= 0 else (1 << -e) // large, e))
    return np.array(found, dtype=[("m", np.uint64), ("e", np.int64)])


@dataclass(frozen=True, eq=False)
class _Chunk:
    """Whole records, UTF-8, and where their cells lie: spans (n, columns, 2), as _csv.c has them."""

    kernels: ModuleType
    text: bytes
    spans: Array

    def cells(self, spans: Array) -> list[str]:
        """Return the cells at some spans (m, 2)."""
        doubled = self.kernels.DOUBLED
        found = []
        for begin, end in spans.tolist():
            cell = self.text[begin : end & ~doubled].decode()
            found.append(cell.replace('""', '"') if end & doubled else cell)
        return found

    def numbers(self, columns: list[int], dtype: type) -> tuple[Array, int]:
        """Return (the numbers (n, columns) in cells, how many are NaN because they are not plainly numbers)."""
        out: Array = np.empty((len(self.spans), len(columns)), dtype)
        wanted, powers = np.array(columns, np.int32), _powers(self.kernels.MOST)
        return out, self.kernels.numbers(self.text, self.spans, self.spans.shape[1], wanted, powers, out)

    def matrix(self, known: Mapping[str, _Column], names: Sequence[str]) -> Array | None:
        """Return the numbers in columns as float32, None where a cell holds none."""
        columns = [known[name].j for name in names]
        x, odd = self.numbers(columns, np.float32)
        if odd:
            i, j = np.nonzero(np.isnan(x))
            try:
                x[i, j] = [number(cell) for cell in self.cells(self.spans[i, np.array(columns)[j]])]
            except ValueError:
                return None
        return x


@dataclass(frozen=True, eq=False)
class _Column:
    """One column of a chunk."""

    chunk: _Chunk
    j: int

    def __len__(self) -> int:
        return len(self.chunk.spans)

    def tolist(self) -> list[str]:
        return self.chunk.cells(self.chunk.spans[:, self.j])

    def take(self, rows: Array) -> list[str]:
        return self.chunk.cells(self.chunk.spans[rows, self.j])

    def numbers(self) -> Array:
        return self.chunk.numbers([self.j], np.float64)[0][:, 0]

    def coded(self) -> tuple[Array, list[str]]:
        codes, firsts = np.empty((2, len(self)), np.int32)
        text, spans = self.chunk.text, self.chunk.spans
        n = self.chunk.kernels.intern(text, spans, spans.shape[1], self.j, codes, firsts)
        return codes, self.take(firsts[:n])
