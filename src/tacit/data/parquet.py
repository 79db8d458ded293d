"""Parquet files, read with pyarrow: as a `Table` of numbers, or as `Cells` for a schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tacit.data.columns import NOT_NUMBERS, Cells, Table, feature_names, names, no_labels, plain
from tacit.errors import DataError, MissingDependency
from tacit.types import Array


def read_parquet(path: Path, label_column: str, agent_column: str, need_labels: bool, blank_labels: bool) -> Table:
    """The table, whose features must be numbers."""
    pa, table = _open(path)
    features = feature_names(str(path), table.column_names, (label_column, agent_column))
    if need_labels and label_column not in table.column_names:
        raise no_labels(str(path), label_column, table.column_names)
    x = np.empty((table.num_rows, len(features)), np.float32)
    with np.errstate(over="ignore"):
        for j, name in enumerate(features):
            column = table.column(name)
            kind = column.type
            if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
                raise DataError(f"{path}: column {name!r} holds {kind}, not numbers: {NOT_NUMBERS}")
            if column.null_count:
                i = column.is_null().to_pylist().index(True) + 1
                raise DataError(f"{path}: column {name!r}, record {i} is empty: impute or drop the record.")
            x[:, j] = column.to_numpy()
    named = [
        names(str(path), name, table.column(name).to_pylist(), blank) if name in table.column_names else None
        for name, blank in ((label_column, blank_labels), (agent_column, False))
    ]
    return Table(str(path), features, x, *named)


def parquet_cells(path: Path) -> Cells:
    """The columns as they are: numbers without nulls stay numbers, all else becomes text."""
    _, table = _open(path)
    columns: dict[str, Array] = {}
    for name in feature_names(str(path), table.column_names, ()):
        column = table.column(name)
        # integers beside nulls would become floats, and long ones lose digits
        values = None if column.null_count else column.to_numpy()
        if values is None or values.dtype.kind not in "biuf":
            values = np.array([plain(cell) for cell in column.to_pylist()], dtype=object)
        columns[name] = values
    return Cells(str(path), columns)


def _open(path: Path) -> tuple[Any, Any]:
    """(pyarrow, the table)."""
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
    return pa, table
