"""CSV, Parquet and NPZ files, one or a directory of them, in; one `Table` out.

    CSV, Parquet    named columns: one may hold labels, one the agent of each record, the rest are features
    NPZ             see `tacit.data.npz`
    a directory     files with an agent column are put under one another; without, each file is an agent
"""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import numpy as np

from tacit.data.columns import Table, feature_names, missing_column, names, stack
from tacit.data.npz import read_npz
from tacit.errors import DataError, MissingDependency, SpecError
from tacit.types import Array

SUFFIXES = (".csv", ".parquet", ".npz")

_NOT_NUMBERS = (
    "encode the column as numbers or drop it; if it holds the labels or the agents, "
    "name it as the label or agent column."
)


def read(
    path: str | Path, *, label_column: str = "label", agent_column: str = "agent", need_labels: bool = False
) -> Table:
    """The table in a file or directory. Without a label column its labels are None, unless needed."""
    path = Path(path)
    if label_column == agent_column:
        raise SpecError(f"the label and the agent column are both {label_column!r}: name two columns.")
    if path.is_dir():
        return _read_directory(path, label_column, agent_column, need_labels)
    if path.suffix not in SUFFIXES:
        raise DataError(f"{path} is no table tacit reads: convert it to one of {', '.join(SUFFIXES)}.")
    if not path.is_file():
        raise DataError(f"{path} does not exist: check the path.")
    if path.suffix == ".npz":
        return read_npz(path, need_labels)
    reader = _read_csv if path.suffix == ".csv" else _read_parquet
    return reader(path, label_column, agent_column, need_labels)


def table_files(directory: Path) -> list[Path]:
    """The table files directly in a directory, by name."""
    return sorted(path for path in directory.iterdir() if path.suffix in SUFFIXES and path.is_file())


def _read_directory(directory: Path, label_column: str, agent_column: str, need_labels: bool) -> Table:
    files = table_files(directory)
    if not files:
        raise DataError(f"{directory} holds no table: put a file for each agent in it.")
    stem, times = Counter(path.stem for path in files).most_common(1)[0]
    if times > 1:
        raise DataError(f"{directory} has {times} files for {stem!r}: keep one, records would count twice.")
    tables = [
        read(path, label_column=label_column, agent_column=agent_column, need_labels=need_labels)
        for path in files
    ]
    mute = [table for table in tables if table.agents is None]
    if mute and len(mute) < len(tables):
        raise DataError(f"{mute[0].source} has no agent column, other files do: give it to all or none.")
    if mute:
        stems = [path.stem for path in files]
        tables = [replace(t, agents=np.full(len(t), stem)) for t, stem in zip(tables, stems, strict=True)]
    return stack(str(directory), tables)


def _read_csv(path: Path, label_column: str, agent_column: str, need_labels: bool) -> Table:
    x: list[Array] = []
    cells: dict[str, list[str]] = {}
    try:
        # beyond float32 becomes inf, refused with its cell
        with path.open(newline="", encoding="utf-8-sig") as file, np.errstate(over="ignore"):
            rows = csv.reader(file, strict=True)
            header = [name.strip() for name in next(rows, [])]
            features = feature_names(str(path), header, (label_column, agent_column))
            if need_labels and label_column not in header:
                raise _no_labels(path, label_column, header)
            cells = {name: [] for name in (label_column, agent_column) if name in header}
            at = [header.index(name) for name in features]
            for row in filter(None, rows):
                if len(row) != len(header):
                    raise DataError(
                        f"{path}, line {rows.line_num}: {len(row)} cells under a header of {len(header)}: "
                        "every row needs one cell a column; quote cells that hold commas."
                    )
                x.append(_numbers(path, rows.line_num, features, [row[j] for j in at]))
                for name, column in cells.items():
                    column.append(row[header.index(name)])
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} is not a readable CSV file ({error}): save it as UTF-8 text.") from error
    named = {name: names(str(path), name, column) for name, column in cells.items()}
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
    if not np.isfinite(values).all():
        _refuse(path, line, features, cells)
    return values


def _refuse(path: Path, line: int, features: tuple[str, ...], cells: list[str]) -> NoReturn:
    """Name the cell of a row that is no finite number."""
    for name, cell in zip(features, cells, strict=True):
        where = f"{path}, line {line}, column {name!r}"
        if not cell.strip():
            raise DataError(f"{where} is empty: impute it or drop the record.")
        try:
            value = np.float32(float(cell))
        except ValueError:
            raise DataError(f"{where}: {cell!r} is not a number: {_NOT_NUMBERS}") from None
        if not np.isfinite(value):
            raise DataError(f"{where}: {cell!r} is not a finite float32: impute it or drop the record.")
    raise AssertionError("every cell of the row is a finite number")


def _read_parquet(path: Path, label_column: str, agent_column: str, need_labels: bool) -> Table:
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError as error:
        raise MissingDependency(f"{path} needs pyarrow to be read: pip install 'tacit[parquet]'") from error
    try:
        # not read_table, which adds columns it reads from the folder names
        table = pa.parquet.ParquetFile(path).read()
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{path} is not a readable Parquet file ({error}): write it again.") from error
    features = feature_names(str(path), table.column_names, (label_column, agent_column))
    if need_labels and label_column not in table.column_names:
        raise _no_labels(path, label_column, table.column_names)
    x = np.empty((table.num_rows, len(features)), np.float32)
    with np.errstate(over="ignore"):
        for j, name in enumerate(features):
            column = table.column(name)
            kind = column.type
            if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
                raise DataError(f"{path}: column {name!r} holds {kind}, not numbers: {_NOT_NUMBERS}")
            if column.null_count:
                i = column.is_null().to_pylist().index(True) + 1
                raise DataError(f"{path}: column {name!r}, record {i} is empty: impute or drop the record.")
            x[:, j] = column.to_numpy()
    named = [
        names(str(path), name, table.column(name).to_pylist()) if name in table.column_names else None
        for name in (label_column, agent_column)
    ]
    return Table(str(path), features, x, *named)


def _no_labels(path: Path, label_column: str, columns: list[str]) -> DataError:
    todo = "Name the label column; the first row is the header."
    return missing_column(str(path), label_column, columns, todo)
