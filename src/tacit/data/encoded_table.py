"""Tables that a schema declares: features in public bounds, and counts of the changed cells for the owner."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from tacit.data.cells import Coded
from tacit.data.column_kinds import AgentColumn, LabelColumn, NumericColumn, TargetColumn
from tacit.data.columns.encoding import Counts
from tacit.data.feature_table import FeatureTable, read_files
from tacit.data.formats.chunk import with_point
from tacit.data.rows import Rows
from tacit.data.schema import Schema
from tacit.data.table import RawTable
from tacit.types import Array


def read_encoded(
    path: str | Path, schema: Schema, *, training: bool = False, rows: Rows | None = None
) -> FeatureTable:
    """Read the table in a file or directory by a schema alone; `training` as for `encode`, `rows` as for numbers.

    Nothing that a record holds ends the reading, or changes another record. A record that names no agent is that of the
    only agent of its file; where a file names several agents (it simulates several holders), the name is "".
    """

    def roles(raw: RawTable) -> FeatureTable:
        schema.check_columns(raw.source, raw.columns, training)
        return FeatureTable(raw.source, schema.features, [], *_roles(raw, schema))

    return read_files(path, lambda raw: encode(raw, schema, training=training), roles, schema.file, rows)


def encode(raw: RawTable, schema: Schema, *, training: bool = False) -> FeatureTable:
    """Encode features to [0, 1], text to [-1, 1], each row from its own record and the schema alone.

    Labels become classes, and agents stay text.

    For training all columns of the schema must be there and no others; else (testing, predicting) the columns of the
    features are enough.
    """
    schema.check_columns(raw.source, raw.columns, training)
    x, tallies, done, place = np.empty((len(raw), len(schema.features)), np.float32), {}, {}, 0
    for name, column in schema.encoded.items():
        block, tallies[name] = column.encode(raw.columns[name], schema.marks)
        done[name] = x[:, place : place + block.shape[1]]
        done[name][:] = block
        place += block.shape[1]
    for cross in schema.crosses.values():
        block = cross.encode(schema.encoded, done, raw.columns, schema.marks)
        x[:, place : place + block.shape[1]] = block
        place += block.shape[1]
    counts = Counts(len(raw), tallies)
    return FeatureTable(raw.source, schema.features, [x], *_roles(raw, schema), counts=counts)


def encode_columns(source: str, columns: Mapping[str, Array], schema: Schema) -> FeatureTable:
    """Encode columns that are at hand: texts of numbers are read as [file] says, as in files."""
    if schema.file.decimal != ".":
        numeric = [name for name, column in schema.encoded.items() if isinstance(column, NumericColumn)]
        columns = {**columns, **{name: pointed(columns[name]) for name in numeric if name in columns}}
    return encode(RawTable(source, columns), schema)


def pointed(cells: Array) -> Array:
    """Return a column whose texts have decimal commas as `number` reads it; numbers stay as they are."""
    if cells.dtype.kind in "biufcmM":
        return cells
    found = (with_point(cell) if isinstance(cell, str) else cell for cell in cells.tolist())
    return np.fromiter(found, dtype=object, count=len(cells))


def _roles(raw: RawTable, schema: Schema) -> tuple[Coded | None, Coded | None]:
    """Return the labels and the agents.

    Classes or the target are declared: a label that names no class, or holds no number, is no error; nor is an agent
    that cannot be read.
    """
    labels, agents = raw.texts(schema.label, blank=True), raw.texts(schema.agent, blank=True)
    return labels and _outcomes(labels, schema), agents


def _outcomes(labels: Coded, schema: Schema) -> Coded:
    """Return what the label column says: the classes that labels mean, or numbers as Python writes them."""
    if isinstance(schema.outcome, LabelColumn):
        return schema.outcome.read(labels)
    return labels if schema.file.decimal == "." else Coded(labels.codes, tuple(map(with_point, labels.names)))


def count(tables: Iterable[RawTable], schema: Schema) -> Counts:
    """Count what training would change, with the labels that name no class and the agents that are missing."""
    total = Counts(0, {})
    for raw in tables:
        schema.check_columns(raw.source, raw.columns, training=True)
        tallies = {name: column.encode(raw.columns[name], schema.marks)[1] for name, column in schema.encoded.items()}
        for name, column in schema.columns.items():
            if isinstance(column, LabelColumn | TargetColumn | AgentColumn):
                tallies[name] = column.tally(raw.columns[name], schema.marks)
        total += Counts(len(raw), tallies, tuple(raw.place(i) for i in raw.unreadable))
    return total
