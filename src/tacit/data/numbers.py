"""Tables without a schema: every column but the labels and the agents holds numbers, which are the features."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tacit.data.formats import read_features
from tacit.data.table import FeatureTable, RawTable, missing_column, number
from tacit.errors import DataError, SpecError
from tacit.types import Array

NOT_NUMBERS = (
    "declare the columns in a schema (tacit data schema init), encode this one as numbers, or drop it; if it holds "
    "the labels or the agents, name it as the label or agent column."
)


def read(
    path: str | Path,
    *,
    label_column: str = "label",
    agent_column: str = "agent",
    need_labels: bool = False,
    blank_labels: bool = False,
) -> FeatureTable:
    """Read the table in a file or directory.

    Without a label column its labels are None, unless needed. An empty label is refused, unless `blank_labels`.
    """
    if label_column == agent_column:
        raise SpecError(f"the label and the agent column are both {label_column!r}: name two columns.")

    def convert(raw: RawTable) -> FeatureTable:
        label, agent = raw.roles or (label_column, agent_column)
        if need_labels and label not in raw.columns:
            raise _no_labels(raw, label)
        features = tuple(name for name in raw.columns if name not in (label, agent))
        return FeatureTable(
            raw.source, features, _matrix(raw, features), raw.texts(label, blank_labels), raw.texts(agent)
        )

    return read_features(path, convert)


def _no_labels(raw: RawTable, label: str) -> DataError:
    """The error for a table whose labels are needed and not there."""
    if raw.roles:
        return DataError(f"{raw.source} has no labels: store them as {label}, one a record.")
    todo = "Name the label column; the first row is the header."
    return missing_column(raw.source, label, list(raw.columns), todo)


def _matrix(raw: RawTable, features: tuple[str, ...]) -> Array:
    """Return the features as one matrix (n, J) of float32; a cell that is no finite number is refused."""
    with np.errstate(over="ignore"):  # beyond float32 becomes inf, refused with its cell
        if raw.matrix is not None and raw.matrix.shape[1] == len(features):
            x = raw.matrix.astype(np.float32, copy=False)
        else:
            x = np.empty((len(raw), len(features)), np.float32)
            for j, name in enumerate(features):
                x[:, j] = _numbers(raw, name)
        if x.size and not np.isfinite([x.min(), x.max()]).all():  # no temporary of the size of x
            raise _bad_cell(raw, features[int(np.argwhere(~np.isfinite(x))[0][1])])
    return x


def _numbers(raw: RawTable, column: str) -> Array:
    """Return a column as numbers; NaN where a cell is None."""
    if column in raw.not_numbers:
        kind = raw.not_numbers[column]
        raise DataError(f"{raw.source}: column {column!r} holds {kind}, not numbers: {NOT_NUMBERS}")
    cells = raw.columns[column]
    if cells.dtype != object:
        return cells
    try:
        # one look at a column of text for what `number` refuses: a call for every cell would double the time
        if "_" not in "".join(cells.tolist()):
            return cells.astype(np.float32)
    except (TypeError, ValueError):
        pass
    raise _bad_cell(raw, column)


def _bad_cell(raw: RawTable, column: str) -> DataError:
    """The error for the first cell of a column that is no finite number."""
    for i, cell in enumerate(raw.columns[column].tolist()):
        where = raw.where(i, column)
        if cell is None or not str(cell).strip():
            return DataError(f"{where} is empty: impute it or drop the record.")
        try:
            value = np.float32(number(cell) if isinstance(cell, str) else cell)
        except ValueError:
            return DataError(f"{where}: {cell!r} is not a number: {NOT_NUMBERS}")
        if not np.isfinite(value):
            return DataError(f"{where}: {cell!r} is not a finite float32: impute it or drop the record.")
    raise AssertionError("every cell of the column is a finite number")
