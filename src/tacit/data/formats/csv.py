"""CSV files: the first row names the columns, and every cell is text."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

import numpy as np

from tacit.data.table import RawTable, check_column_names
from tacit.errors import DataError

ROWS, CELLS = 200, 10_000  # of one raw table, at least: text of this size stays in the cache of the processor


def read(path: Path) -> Iterator[RawTable]:
    """Read a CSV file as runs of records."""
    rows = _rows(path)
    _, header = next(rows)
    check_column_names(str(path), header)
    n_rows = max(ROWS, CELLS // len(header))
    runs = iter(lambda: list(islice(rows, n_rows)), [])
    for run in chain([next(runs, [])], runs):  # a file without records is a table without records, which is refused
        cells = np.array([row for _, row in run], dtype=object).reshape(len(run), len(header))
        yield RawTable(str(path), dict(zip(header, cells.T, strict=True)), lines=[line for line, _ in run])


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Give (line, cells) of the header, its names stripped, and of every row under it that is not blank."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(file, strict=True)
            header = [name.strip() for name in next(rows, [])]
            yield rows.line_num, header
            for row in filter(None, rows):
                if len(row) != len(header):
                    raise DataError(
                        f"{path}, line {rows.line_num}: {len(row)} cells under a header of {len(header)}: "
                        "every row needs one cell a column; quote cells that hold commas."
                    )
                yield rows.line_num, row
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} is not a readable CSV file ({error}): save it as UTF-8 text.") from error
