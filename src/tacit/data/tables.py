"""CSV, Parquet and NPZ files, one or a directory of them, in; one `Table` out.

    CSV, Parquet    named columns: one may hold labels, one the agent of each record, the rest are features
    NPZ             see `tacit.data.npz`
    a directory     files with an agent column are put under one another; without, each file is an agent
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import numpy as np

from tacit.data.columns import NOT_NUMBERS, Table, feature_names, names, no_labels, number, stack
from tacit.data.npz import read_npz
from tacit.data.parquet import read_parquet
from tacit.errors import DataError, SpecError
from tacit.types import Array

SUFFIXES = (".csv", ".parquet", ".npz")


def read(
    path: str | Path,
    *,
    label_column: str = "label",
    agent_column: str = "agent",
    need_labels: bool = False,
    blank_labels: bool = False,
) -> Table:
    """The table in a file or directory.

    Without a label column its labels are None, unless needed. An empty label is refused, unless `blank_labels`.
    """
    path = Path(path)
    if label_column == agent_column:
        raise SpecError(f"the label and the agent column are both {label_column!r}: name two columns.")
    if path.is_dir():
        return _read_directory(path, label_column, agent_column, need_labels, blank_labels)
    (file,) = table_files(path)
    if suffix(file) == ".npz":
        return read_npz(file, need_labels, blank_labels)
    reader = _read_csv if suffix(file) == ".csv" else read_parquet
    return reader(file, label_column, agent_column, need_labels, blank_labels)


def suffix(path: Path) -> str:
    """Which format a file name promises: .CSV is .csv."""
    return path.suffix.lower()


def table_files(path: Path) -> list[Path]:
    """The file itself, or the table files directly in a directory, by name; each agent's once."""
    if not path.is_dir():
        if suffix(path) not in SUFFIXES:
            raise DataError(f"{path} is no table tacit reads: convert it to one of {', '.join(SUFFIXES)}.")
        if not path.is_file():
            raise DataError(f"{path} does not exist: check the path.")
        return [path]
    files = sorted(file for file in path.iterdir() if suffix(file) in SUFFIXES and file.is_file())
    if not files:
        raise DataError(f"{path} holds no table: put a file for each agent in it.")
    stem, times = Counter(file.stem for file in files).most_common(1)[0]
    if times > 1:
        raise DataError(f"{path} has {times} files for {stem!r}: keep one, records would count twice.")
    return files


def csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """(line, cells) of the header, its names stripped, and of every row under it that is not blank."""
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


def _read_directory(directory: Path, label_column: str, agent_column: str, need: bool, blank: bool) -> Table:
    files = table_files(directory)
    tables = [
        read(path, label_column=label_column, agent_column=agent_column, need_labels=need, blank_labels=blank)
        for path in files
    ]
    mute = [table for table in tables if table.agents is None]
    if mute and len(mute) < len(tables):
        raise DataError(f"{mute[0].source} has no agent column, other files do: give it to all or none.")
    if mute:
        stems = [path.stem for path in files]
        tables = [replace(t, agents=np.full(len(t), stem)) for t, stem in zip(tables, stems, strict=True)]
    return stack(str(directory), tables)


def _read_csv(path: Path, label_column: str, agent_column: str, need_labels: bool, blank_labels: bool) -> Table:
    rows = csv_rows(path)
    _, header = next(rows)
    features = feature_names(str(path), header, (label_column, agent_column))
    if need_labels and label_column not in header:
        raise no_labels(str(path), label_column, header)
    at = [header.index(name) for name in features]
    x: list[Array] = []
    cells: dict[str, list[str]] = {name: [] for name in (label_column, agent_column) if name in header}
    with np.errstate(over="ignore"):  # beyond float32 becomes inf, refused with its cell
        for line, row in rows:
            x.append(_numbers(path, line, features, [row[j] for j in at]))
            for name, column in cells.items():
                column.append(row[header.index(name)])
    blank = {label_column: blank_labels, agent_column: False}
    named = {name: names(str(path), name, column, blank[name]) for name, column in cells.items()}
    return Table(
        str(path),
        features,
        np.array(x, dtype=np.float32).reshape(len(x), len(features)),
        named.get(label_column),
        named.get(agent_column),
    )


def _numbers(path: Path, line: int, features: tuple[str, ...], cells: list[str]) -> Array:
    try:
        values = np.array(list(map(float, cells)), dtype=np.float32)
    except ValueError:
        _refuse(path, line, features, cells)
    # one look at the row for what `number` refuses: a call for every cell would double the time
    if "_" in "".join(cells) or not np.isfinite(values).all():
        _refuse(path, line, features, cells)
    return values


def _refuse(path: Path, line: int, features: tuple[str, ...], cells: list[str]) -> NoReturn:
    """Name the cell of a row that is no finite number."""
    for name, cell in zip(features, cells, strict=True):
        where = f"{path}, line {line}, column {name!r}"
        if not cell.strip():
            raise DataError(f"{where} is empty: impute it or drop the record.")
        try:
            value = np.float32(number(cell))
        except ValueError:
            raise DataError(f"{where}: {cell!r} is not a number: {NOT_NUMBERS}") from None
        if not np.isfinite(value):
            raise DataError(f"{where}: {cell!r} is not a finite float32: impute it or drop the record.")
    raise AssertionError("every cell of the row is a finite number")
