"""CSV files without a schema: the first row names the columns, every cell is text, and a bad row is refused.

Files that a schema declares are read by `lines`. The compiled reader (_csv.c), where it is installed, finds the cells
and reads plain numbers. Whatever is not plain is Python's: `number` reads a cell in doubt, and csv.reader the file,
from the first record on that is not well-formed. So both readers give the same table, and the same errors.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from types import ModuleType

import numpy as np

from tacit.data.formats.chunk import Chunk, Column, chunk_size, compiled, is_utf8
from tacit.data.formats.text_file import opened, readable, separator_of
from tacit.data.table import RawTable, check_column_names
from tacit.errors import DataError

ROWS, CELLS = 200, 10_000  # of one raw table, at least: text of this size stays in the cache of the processor


def read(path: Path) -> Iterator[RawTable]:
    """Read a CSV file as runs of records."""
    with readable(path):
        header = _header(path)
        check_column_names(str(path), header.names)
        kernels = compiled()
        yield from _read_all(path, header) if kernels is None else _read_chunks(path, header, kernels)


@dataclass(frozen=True)
class _Header:
    names: list[str]  # stripped
    size: int  # bytes
    lines: int


def _header(path: Path) -> _Header:
    """Read the first row."""
    with opened(path) as file:
        size = len(codecs.BOM_UTF8) if file.read(len(codecs.BOM_UTF8)) == codecs.BOM_UTF8 else 0
        file.seek(0)
        text = io.TextIOWrapper(file, newline="", encoding="utf-8-sig")
        lines: list[str] = []

        def noted() -> Iterator[str]:
            for line in text:
                lines.append(line)
                yield line

        rows = csv.reader(noted(), strict=True, delimiter=separator_of(path))
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
    with opened(path) as file:
        file.seek(size)
        text = io.TextIOWrapper(file, newline="", encoding="utf-8" if size else "utf-8-sig")
        rows = csv.reader(text, strict=True, delimiter=separator_of(path))
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
    text, final, why, step = b"", False, None, chunk_size(width)
    spans, ends = np.empty((0, width, 2), np.uint32), np.empty(0, np.int32)
    separator = separator_of(path).encode()
    with opened(path) as file:
        file.seek(size)
        while not final and why != kernels.ODD:
            more = file.read(max(step, len(text)))  # a record that is longer than all there is needs twice as much
            text, final = text + more, len(more) < max(step, len(text))
            room = len(text) // width + 1  # a row is a byte a cell at the least, but for the last
            if room > len(ends):
                spans, ends = np.empty((room, width, 2), np.uint32), np.empty(room, np.int32)
            n, used, passed, why = kernels.split(text, final, width, csv.field_size_limit(), separator, spans, ends)
            chunk = Chunk(kernels, text[:used], spans[:n].copy())
            if not is_utf8(chunk.text):
                why = kernels.ODD
                break
            if n:
                columns = {name: Column(chunk, j) for j, name in enumerate(names)}
                own_lines = ends[:n].astype(np.int64) + lines
                yield RawTable(str(path), columns, lines=own_lines, matrix=partial(chunk.matrix, columns))
                least = 0
            text, size, lines = text[used:], size + used, lines + passed
    if why == kernels.ODD or least:
        yield from _raw_tables(path, names, _rows(path, width, size, lines), least)
