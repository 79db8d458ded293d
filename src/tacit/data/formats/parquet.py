"""Parquet files, read with pyarrow: columns of numbers without nulls stay numbers, others become lists of cells."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tacit.data.table import RawTable, check_column_names
from tacit.errors import DataError, MissingDependency
from tacit.types import Array


def read(path: Path) -> Iterator[RawTable]:
    """Read a Parquet file as one table."""
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
    check_column_names(str(path), table.column_names)
    numeric = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
    types = dict(zip(table.column_names, table.schema.types, strict=True))
    others = {name: str(kind) for name, kind in types.items() if not any(is_a(kind) for is_a in numeric)}
    columns = {name: _cells(table.column(name), name not in others) for name in table.column_names}
    yield RawTable(str(path), columns, not_numbers=others)


def _cells(column: Any, numeric: bool) -> Array:
    """Return a column as an array; integers beside nulls would become floats, and long ones lose digits."""
    if numeric and not column.null_count:
        return np.asarray(column.to_numpy())
    return np.fromiter(column.to_pylist(), dtype=object, count=len(column))  # np.array would unpack lists
