"""Tables through a schema: `Cells` in; features in [0, 1] and the owner's `Counts` out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from tacit.data.columns import Cells, Table, feature_names, names, stack
from tacit.data.kinds import Agent, Label, Tally
from tacit.data.npz import npz_cells
from tacit.data.parquet import parquet_cells
from tacit.data.schema import Schema
from tacit.data.tables import csv_rows, suffix, table_files


@dataclass(frozen=True)
class Counts:
    """How many cells of each column were changed. It describes private records: it stays with their owner.

    No federation, message or result holds one.
    """

    records: int
    columns: dict[str, Tally]

    def __add__(self, other: Counts) -> Counts:
        both = {name: self.columns.get(name, Tally()) + tally for name, tally in other.columns.items()}
        return Counts(self.records + other.records, self.columns | both)

    def as_dict(self) -> dict[str, dict[str, int]]:
        """Plain numbers by column, fit for JSON."""
        return {name: asdict(tally) for name, tally in self.columns.items()}


def read_cells(path: str | Path) -> list[Cells]:
    """The columns of a table as they are; one for each file of a directory, and each numbered agent of an NPZ."""
    return [cells for file in table_files(Path(path)) for cells in _file_cells(file)]


def read(path: str | Path, schema: Schema, *, training: bool = False) -> tuple[Table, Counts]:
    """The table in a file or directory, encoded. In a directory without agent column each file is an agent.

    For training all columns of the schema must be there and no others; else (testing, predicting) those of
    features are enough.
    """
    path = Path(path)
    tables, counts = [], Counts(0, {})
    for file in table_files(path):
        for cells in _file_cells(file):
            table, changed = encode(cells, schema, training=training)
            if path.is_dir() and schema.agent is None:
                table = replace(table, agents=np.full(len(table), file.stem))
            tables.append(table)
            counts += changed
    return (tables[0] if len(tables) == 1 else stack(str(path), tables)), counts


def encode(cells: Cells, schema: Schema, *, training: bool = False) -> tuple[Table, Counts]:
    """Features in [0, 1], each row from its own record and the schema alone; labels and agents as text."""
    schema.check_columns(cells.source, cells.columns, training)
    blocks, tallies = [], {}
    for name, kind in schema.encoded.items():
        block, tallies[name] = kind.encode(cells.columns[name], schema.marks)
        blocks.append(block)
    labels, agents = (  # classes are declared: a label that names none, or nothing, is no error
        names(cells.source, column, cells.columns[column].tolist(), blank) if column in cells.columns else None
        for column, blank in ((schema.label, True), (schema.agent or "", False))
    )
    table = Table(cells.source, schema.features, np.hstack(blocks), labels, agents)
    return table, Counts(len(cells), tallies)


def count(files: Sequence[Cells], schema: Schema) -> Counts:
    """What training would change, with the labels that name no class and the agents that are missing."""
    total = Counts(0, {})
    for cells in files:
        schema.check_columns(cells.source, cells.columns, training=True)
        tallies = {name: kind.encode(cells.columns[name], schema.marks)[1] for name, kind in schema.encoded.items()}
        for name, kind in schema.columns.items():
            if isinstance(kind, Label | Agent):
                tallies[name] = kind.tally(cells.columns[name])
        total += Counts(len(cells), tallies)
    return total


def _file_cells(path: Path) -> list[Cells]:
    if suffix(path) == ".npz":
        return npz_cells(path)
    return [parquet_cells(path) if suffix(path) == ".parquet" else _csv_cells(path)]


def _csv_cells(path: Path) -> Cells:
    rows = csv_rows(path)
    _, header = next(rows)
    feature_names(str(path), header, ())
    records = [row for _, row in rows]
    columns = {name: np.array([row[j] for row in records], dtype=object) for j, name in enumerate(header)}
    return Cells(str(path), columns)
