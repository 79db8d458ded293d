"""Parquet files, read with pyarrow batch by batch: columns of numbers without nulls stay numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tacit.data.cells import Cells
from tacit.data.table import RawTable, check_column_names
from tacit.errors import DataError, missing_extra
from tacit.types import Array

RECORDS = 1 << 14  # of one raw table, at most: its columns stay in the cache of the processor
BUFFER = 1 << 16  # bytes of a column that are read at a time; without, whole row groups are held


def read(path: Path) -> Iterator[RawTable]:
    """Read a Parquet file as runs of records."""
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError as error:
        raise missing_extra(f"{path} needs pyarrow to be read", "parquet") from error
    try:
        # not read_table, which adds columns it reads from the folder names
        with pa.parquet.ParquetFile(path, buffer_size=BUFFER, pre_buffer=False) as file:
            names, schema = file.schema_arrow.names, file.schema_arrow
            check_column_names(str(path), names)
            others = {field.name: str(field.type) for field in schema if not _is_number(pa, field.type)}
            first = 0
            for batch in file.iter_batches(RECORDS):
                columns = {name: _cells(pa, batch.column(j), name not in others) for j, name in enumerate(names)}
                yield RawTable(str(path), columns, not_numbers=others, first=first)
                first += len(batch)
            if not first:
                yield RawTable(str(path), dict.fromkeys(names, np.empty(0)))  # which is refused
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{path} is not a readable Parquet file ({error}): write it again.") from error


def _is_number(pa: Any, kind: Any) -> bool:
    return any(is_a(kind) for is_a in (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean))


def _cells(pa: Any, column: Any, numeric: bool) -> Cells:
    """Return a column as an array of numbers where it is one; else as it is."""
    if numeric and not column.null_count:
        return np.asarray(column.to_numpy(zero_copy_only=False))
    return _Column(pa, column, numeric)


@dataclass(frozen=True, eq=False)
class _Column:
    """A column of text or of other things, or one of numbers and nulls."""

    pa: Any
    column: Any
    numeric: bool

    def __len__(self) -> int:
        return len(self.column)

    def tolist(self) -> list[Any]:
        found: list[Any] = self.column.to_pylist()
        return found

    def take(self, rows: Array) -> list[Any]:
        found: list[Any] = self.column.take(self.pa.array(rows)).to_pylist()
        return found

    def numbers(self) -> Array:
        if not self.numeric:
            return np.full(len(self), np.nan)
        # a null is NaN
        return np.array(self.column.cast(self.pa.float64(), safe=False).to_numpy(zero_copy_only=False))

    def coded(self) -> tuple[Array, list[Any]]:
        is_a = self.pa.types
        column = self.column.dictionary_decode() if is_a.is_dictionary(self.column.type) else self.column
        if not (is_a.is_string(column.type) or is_a.is_large_string(column.type)):
            return np.arange(len(self)), self.tolist()
        few = column.dictionary_encode(null_encoding="encode")
        return few.indices.to_numpy(), few.dictionary.to_pylist()
