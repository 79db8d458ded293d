"""CSV files as runs of records: by the layout that a schema declares, or strictly.

**By a layout** nothing that one record holds changes how another is read. A line is a record, its cells are text, and
blank lines are no records. A line that is not well-formed is a record too, and all its cells are empty, which is how
missing cells are written. Not well-formed are: more or fewer cells than the header has, a quote that is not closed in
its line, text behind a closed quote, a cell of more than LIMIT bytes, bytes that are not UTF-8. A quote inside a cell
that does not begin with one is a sign like others. Lines end as the header does: with a line feed (and perhaps a
carriage return before it), or with a carriage return alone.

With `FileLayout.newlines` a quoted cell may go on behind the end of its line, if what is read so is a well-formed
record. If not, its first line alone is not well-formed, and the next line is read for itself: a stray quote costs one
line, unless a later quote happens to complete a record of as many cells as the header has.

**Strictly**, without a schema, a bad row is refused with its line. The compiled reader reads plain records, and
csv.reader the file from the first record on that is not plain: it alone decides what is refused.

Either way the compiled reader (_csv.c) finds the cells if it is installed, and Python gives the same tables and errors.
The first row names the columns; it is public, and refused if it cannot be read.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from types import ModuleType
from typing import BinaryIO

import numpy as np

from tacit.data.file_layout import FileLayout
from tacit.data.formats import lines_python
from tacit.data.formats.chunk import Chunk, Column, Texts, chunk_size, compiled, is_utf8
from tacit.data.formats.lines_python import LARGEST, Rules
from tacit.data.formats.text_file import columns_of, layout_header, opened, readable, separator_of, strict_header
from tacit.data.table import RawTable, check_column_names
from tacit.errors import DataError
from tacit.types import Array

ROWS, CELLS = 200, 10_000  # of a raw table of csv.reader, at least: text of this size stays in the processor's cache


def read(path: Path, layout: FileLayout | None = None) -> Iterator[RawTable]:
    """Read a CSV file as runs of records: by a layout if there is one, else strictly."""
    with readable(path):
        yield from _read_strictly(path) if layout is None else _read_by_layout(path, layout)


@dataclass(frozen=True)
class _Run:
    """Some records, and how far they reach: bytes, lines."""

    columns: list[Column | Texts]  # none if there is no record
    numbers: Array  # the line of each record, counted from the first line of the run
    unreadable: Array
    used: int
    lines: int
    odd: bool = False  # the record behind these cannot be read so
    chunk: Chunk | None = None  # the records, if they are plain: it has a matrix of them at hand

    def table(self, path: Path, names: list[str], before: int) -> RawTable:
        """Return the records as a raw table that so many lines come before."""
        columns, numbers = dict(zip(names, self.columns, strict=True)), self.numbers + before
        matrix = self.chunk.matrix_of(names) if self.chunk else None
        return RawTable(str(path), columns, lines=numbers, unreadable=self.unreadable, matrix=matrix)


class _Room:
    """Where the compiled reader writes, chunk after chunk: memory that was used before is faster than new memory."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._make(0)

    def _make(self, n: int) -> None:
        self.spans, self.numbers = np.empty((n, self.width, 2), np.uint32), np.empty(n, np.int32)
        self.begins, self.bad = np.empty(n, np.uint32), np.empty(n, np.uint8)

    def grow(self, text: bytes, at: int) -> None:
        """Make room for all records of these bytes, if they are well-formed."""
        if (n := most_records(text, at, self.width)) > len(self.numbers):
            self._make(n)


def most_records(text: bytes, at: int, width: int) -> int:
    """Return how many well-formed records these bytes hold at most: a record is a byte a cell, but for the last."""
    return (len(text) - at) // width + 1


_Split = Callable[[bytes, int, bool], _Run]  # text, where it begins, whether the file ends with it


def _runs(file: BinaryIO, text: bytes, width: int, split: _Split, end: bytes | None) -> Iterator[_Run]:
    """Give runs of records; `text` was read of the file already.

    An odd record is one of empty cells that ends with its line if `end` is how lines end; else nothing follows it.
    """
    final = False
    while not final:
        size = max(min(chunk_size(width), LARGEST), len(text))  # twice as much for a record that is longer
        more = file.read(size)
        text, final, at = text + more, len(more) < size, 0
        while True:
            run = split(text, at, final)
            yield run
            at += run.used
            if run.odd or not run.used:
                break
        text = text[at:]
        if run.odd:
            if end is None:
                return
            yield _Run([Texts([""])] * width, np.ones(1, np.int64), np.zeros(1, np.int64), 0, 1)
            text, final = _behind_line(file, text, end, size)  # it is not held, however long it is


def _behind_line(file: BinaryIO, text: bytes, end: bytes, size: int) -> tuple[bytes, bool]:
    """Return (what follows the line, whether the file ends with it)."""
    while (stop := text.find(end)) < 0:
        text = file.read(size)
        if not text:
            return b"", True
    return text[stop + 1 :], False


# --- by a layout


def _read_by_layout(path: Path, layout: FileLayout) -> Iterator[RawTable]:
    with opened(path) as file:
        header, end, text = layout_header(path, file, layout)
        names, rules = columns_of(header, end, separator_of(path), layout)
        check_column_names(str(path), names)
        kernels, lines, none = compiled(), header.count(end) + 1, True
        find = _by_python if kernels is None else partial(_by_kernels, kernels, _Room(rules.width))
        for run in _runs(file, text, rules.width, partial(find, rules, layout.decimal), end):
            if run.columns:
                yield run.table(path, names, lines)
                none = False
            lines += run.lines
        if none:
            yield RawTable(str(path), dict.fromkeys(names, np.empty(0)))  # which is refused


def _by_kernels(
    kernels: ModuleType, room: _Room, rules: Rules, decimal: str, text: bytes, at: int, final: bool
) -> _Run:
    room.grow(text, at)
    n, used, lines, why = kernels.split_lines(
        memoryview(text)[at:], final, rules.end, rules.separator, rules.quote, rules.newlines, rules.width,
        lines_python.LIMIT, rules.most, room.spans, room.numbers, room.begins, room.bad,
    )  # fmt: skip
    spans, bad, own = room.spans[:n].copy(), room.bad[:n], text[at : at + used]
    if not is_utf8(own):
        ends = [*room.begins[1:n].tolist(), used]
        for i, (begin, end) in enumerate(zip(room.begins[:n].tolist(), ends, strict=True)):
            if not is_utf8(own[begin:end]):
                spans[i], bad[i] = 0, 1
    columns = Chunk(kernels, own, spans, rules.quote.decode(), decimal).columns()
    return _Run(columns, room.numbers[:n].astype(np.int64), np.flatnonzero(bad), used, lines, why == kernels.ODD)


def _by_python(rules: Rules, decimal: str, text: bytes, at: int, final: bool) -> _Run:
    found = lines_python.split(text, at, final, rules, most_records(text, at, rules.width))
    empty = [""] * rules.width
    cells = zip(*(empty if row is None else row for row in found.rows), strict=True)
    bad = np.array([i for i, row in enumerate(found.rows) if row is None], np.int64)
    columns: list[Column | Texts] = [Texts(list(column), decimal) for column in cells]
    return _Run(columns, np.array(found.numbers, np.int64), bad, found.used, found.lines, found.long)


# --- strictly


def _read_strictly(path: Path) -> Iterator[RawTable]:
    """Read chunk by chunk, and with csv.reader from the first record that is not plain, or without a compiler."""
    names, size, lines = strict_header(path)
    check_column_names(str(path), names)
    width, kernels, least, odd = len(names), compiled(), 1, True
    if kernels is not None:
        find = partial(_plain, kernels, _Room(width), separator_of(path).encode())
        with opened(path) as file:
            file.seek(size)
            for run in _runs(file, b"", width, find, None):
                if run.columns:
                    yield run.table(path, names, lines)
                    least = 0
                size, lines, odd = size + run.used, lines + run.lines, run.odd
    if odd or least:
        rows = _rows(path, width, size, lines)
        n_rows = max(ROWS, CELLS // width)
        runs = iter(lambda: list(islice(rows, n_rows)), [])
        for rest in chain([next(runs, []) for _ in range(least)], runs):  # a table without records is refused
            cells = np.array([row for _, row in rest], dtype=object).reshape(len(rest), width)
            yield RawTable(str(path), dict(zip(names, cells.T, strict=True)), lines=[line for line, _ in rest])


def _plain(kernels: ModuleType, room: _Room, separator: bytes, text: bytes, at: int, final: bool) -> _Run:
    room.grow(text, at)
    n, used, lines, why = kernels.split(
        memoryview(text)[at:], final, room.width, csv.field_size_limit(), separator, room.spans, room.numbers
    )
    own, none = text[at : at + used], np.empty(0, np.int64)
    if not is_utf8(own):
        return _Run([], none, none, 0, 0, odd=True)
    chunk = Chunk(kernels, own, room.spans[:n].copy())
    return _Run(chunk.columns(), room.numbers[:n].astype(np.int64), none, used, lines, why == kernels.ODD, chunk)


def _rows(path: Path, width: int, size: int, lines: int) -> Iterator[tuple[int, list[str]]]:
    """Give (line, cells) of every row that is not blank and lies behind so many bytes, which are so many lines."""
    with opened(path) as file:
        file.seek(size)
        text = io.TextIOWrapper(file, newline="", encoding="utf-8")
        rows = csv.reader(text, strict=True, delimiter=separator_of(path))
        for row in filter(None, rows):
            line = lines + rows.line_num
            if len(row) != width:
                raise DataError(
                    f"{path}, line {line}: {len(row)} cells under a header of {width}: "
                    "every row needs one cell a column; quote cells that hold commas."
                )
            yield line, row
