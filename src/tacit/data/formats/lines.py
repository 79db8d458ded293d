"""Text files by the layout that a schema declares: nothing that one record holds changes how another is read.

A line is a record, its cells are text, and blank lines are no records. A line that is not well-formed is a record too,
and all its cells are empty, which is how missing cells are written. Not well-formed are: more or fewer cells than the
header has, a quote that is not closed in its line, text behind a closed quote, a cell of more than LIMIT bytes, bytes
that are not UTF-8. A quote inside a cell that does not begin with one is a sign like others.

Lines end as the header does: with a line feed (and perhaps a carriage return before it), or with a carriage return
alone.

With `FileLayout.newlines` a quoted cell may go on behind the end of its line, if what is read so is a well-formed
record. If not, its first line alone is not well-formed, and the next line is read for itself: a stray quote costs one
line, unless a later quote happens to complete a record of as many cells as the header has.

The header is public, and one that cannot be read is refused. The compiled reader and its Python twin give the same.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import BinaryIO

import numpy as np

from tacit.data.file_layout import FileLayout
from tacit.data.formats import lines_python
from tacit.data.formats.chunk import Chunk, Column, chunk_size, compiled, is_utf8, with_point
from tacit.data.formats.lines_python import LIMIT, Rules
from tacit.data.formats.text_file import opened, readable, separator_of
from tacit.data.table import RawTable, check_column_names
from tacit.errors import DataError
from tacit.types import Array

LARGEST = 1 << 29  # bytes of a record, or of one reading, at most: places of cells have 31 bits


@dataclass(frozen=True)
class _Run:
    """Some records, and how far they reach: bytes, lines; `long` where an overlong line is next."""

    columns: list[Column | _Texts]  # none where there is no record
    numbers: Array  # the line of each record
    unreadable: Array
    used: int
    lines: int
    long: bool


def read(path: Path, layout: FileLayout) -> Iterator[RawTable]:
    """Read a text file as runs of records."""
    separator = separator_of(path) if layout.separator is None else layout.separator
    with readable(path), opened(path) as file:
        header, end, text = _head(path, file, layout)
        known = names(header, separator, layout.quote)
        check_column_names(str(path), known)
        width, quote = len(known), layout.quote.encode()
        rules = Rules(end, separator.encode(), quote, layout.newlines, width, longest(width))
        none = True
        for run, before in _runs(file, text, rules, layout.decimal, header.count(end) + 1):
            if run.columns:
                columns = dict(zip(known, run.columns, strict=True))
                yield RawTable(str(path), columns, lines=run.numbers + before, unreadable=run.unreadable)
                none = False
        if none:
            yield RawTable(str(path), dict.fromkeys(known, np.empty(0)))  # which is refused


def _head(path: Path, file: BinaryIO, layout: FileLayout) -> tuple[bytes, bytes, bytes]:
    """Read until the header is there, and return what `first_line` returns."""
    text = file.read(len(codecs.BOM_UTF8)).removeprefix(codecs.BOM_UTF8)
    if text.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DataError(f"{path} is UTF-16: save it as UTF-8 text.")
    while more := file.read(max(1 << 16, len(text))):
        text += more
        header, end, rest = first_line(text, layout)
        if rest:  # else a line feed may follow, or the header go on
            return header, end, rest
    return first_line(text, layout)


def first_line(text: bytes, layout: FileLayout) -> tuple[bytes, bytes, bytes]:
    """Return (the first line without its end, how lines end, what follows it)."""
    quote, quotes, at = layout.quote.encode(), 0, 0
    for found in re.finditer(b"\r\n|\n|\r", text):
        quotes, at = quotes + (text.count(quote, at, found.start()) if layout.newlines else 0), found.start()
        if quotes % 2 == 0:
            return text[: found.start()], found[0][-1:], text[found.end() :]
    return text, b"\n", b""


def names(header: bytes, separator: str, quote: str) -> list[str]:
    """Return the names of the columns, stripped."""
    text = io.StringIO(header.decode(), newline="")
    if quote:
        rows = csv.reader(text, strict=True, delimiter=separator, quotechar=quote)
    else:
        rows = csv.reader(text, strict=True, delimiter=separator, quoting=csv.QUOTE_NONE)
    found = [name.strip() for name in next(rows, [])]
    if next(rows, None) is not None:
        raise csv.Error("the names of the columns hold a stray quote or line end")
    return found


def longest(width: int) -> int:
    """Return how many bytes a record of so many cells has at most."""
    return min(width * (LIMIT + 3), LARGEST)


def _runs(file: BinaryIO, text: bytes, rules: Rules, decimal: str, lines: int) -> Iterator[tuple[_Run, int]]:
    """Give runs of records, each with the lines before it; `text` was read of the file already."""
    kernels, final, room = compiled(), False, _Room(0, rules.width)
    while not final:
        size = max(min(chunk_size(rules.width), LARGEST), len(text))  # twice as much for a record that is longer
        more = file.read(size)
        text, final, at = text + more, len(more) < size, 0
        while True:
            if kernels is None:
                run = _by_python(text, at, final, rules, decimal)
            else:
                n = _room(text, at, rules)
                room = room if len(room.numbers) >= n else _Room(n, rules.width)
                run = _by_kernels(kernels, text, at, final, rules, decimal, room)
            yield run, lines
            at, lines = at + run.used, lines + run.lines
            if run.long or not run.used:
                break
        text = text[at:]
        if run.long:  # it is not held, however long it is
            empty: list[Column | _Texts] = [_Texts([""], decimal)] * rules.width
            yield _Run(empty, np.ones(1, np.int64), np.zeros(1, np.int64), 0, 1, False), lines
            text, final = _behind_line(file, text, rules.end, size)
            lines += 1


def _behind_line(file: BinaryIO, text: bytes, end: bytes, size: int) -> tuple[bytes, bool]:
    """Return (what follows the line, whether the file ends with it)."""
    while (stop := text.find(end)) < 0:
        text = file.read(size)
        if not text:
            return b"", True
    return text[stop + 1 :], False


def _room(text: bytes, at: int, rules: Rules) -> int:
    """Return for how many records there is room: all of these bytes, if they are well-formed."""
    return (len(text) - at) // rules.width + 1


class _Room:
    """Where the compiled reader writes, chunk after chunk: memory that was used before is faster than new memory."""

    def __init__(self, n: int, width: int) -> None:
        self.spans, self.numbers = np.empty((n, width, 2), np.uint32), np.empty(n, np.int32)
        self.begins, self.bad = np.empty(n, np.uint32), np.empty(n, np.uint8)


def _by_kernels(
    kernels: ModuleType, text: bytes, at: int, final: bool, rules: Rules, decimal: str, room: _Room
) -> _Run:
    n, used, lines, why = kernels.split_lines(
        memoryview(text)[at:], final, rules.end, rules.separator, rules.quote, rules.newlines, rules.width, LIMIT,
        rules.most, room.spans, room.numbers, room.begins, room.bad,
    )  # fmt: skip
    spans, bad, own = room.spans[:n].copy(), room.bad[:n], text[at : at + used]
    if not is_utf8(own):
        ends = [*room.begins[1:n].tolist(), used]
        for i, (begin, end) in enumerate(zip(room.begins[:n].tolist(), ends, strict=True)):
            if not is_utf8(own[begin:end]):
                spans[i], bad[i] = 0, 1
    chunk = Chunk(kernels, own, spans, rules.quote.decode(), decimal)
    columns: list[Column | _Texts] = [Column(chunk, j) for j in range(rules.width)] if n else []
    return _Run(columns, room.numbers[:n].astype(np.int64), np.flatnonzero(bad), used, lines, why == kernels.ODD)


def _by_python(text: bytes, at: int, final: bool, rules: Rules, decimal: str) -> _Run:
    found = lines_python.split(text, at, final, rules, _room(text, at, rules))
    empty = [""] * rules.width
    cells = zip(*(empty if row is None else row for row in found.rows), strict=True)
    columns: list[Column | _Texts] = [_Texts(list(column), decimal) for column in cells]
    bad = np.array([i for i, row in enumerate(found.rows) if row is None], np.int64)
    return _Run(columns, np.array(found.numbers, np.int64), bad, found.used, found.lines, found.long)


@dataclass(frozen=True, eq=False)
class _Texts:
    """A column of the Python reader."""

    cells: list[str]
    decimal: str

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
