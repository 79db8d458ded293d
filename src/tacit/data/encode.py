"""Tables through a schema: a `RawTable` in; features in [0, 1] and the owner's `Counts` out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from tacit.data.column_kinds import AgentColumn, LabelColumn, Tally
from tacit.data.formats import read_features
from tacit.data.schema import Schema
from tacit.data.table import FeatureTable, RawTable


@dataclass(frozen=True)
class Counts:
    """How many cells of each column were changed. The counts describe private records: they stay with their owner.

    No federation, message or result holds one.
    """

    records: int
    columns: dict[str, Tally]

    def __add__(self, other: Counts) -> Counts:
        both = {name: self.columns.get(name, Tally()) + tally for name, tally in other.columns.items()}
        return Counts(self.records + other.records, self.columns | both)

    def as_dict(self) -> dict[str, dict[str, int]]:
        """Return plain numbers by column, fit for JSON."""
        return {name: asdict(tally) for name, tally in self.columns.items()}


def read(path: str | Path, schema: Schema, *, training: bool = False) -> FeatureTable:
    """Read the table in a file or directory, encoded; `training` as for `encode`."""
    return read_features(path, lambda raw: encode(raw, schema, training=training)[0])


def encode(raw: RawTable, schema: Schema, *, training: bool = False) -> tuple[FeatureTable, Counts]:
    """Encode features to [0, 1], each row from its own record and the schema alone; labels and agents as text.

    For training all columns of the schema must be there and no others; else (testing, predicting) the columns of the
    features are enough.
    """
    schema.check_columns(raw.source, raw.columns, training)
    blocks, tallies = {}, {}
    for name, column in schema.encoded.items():
        blocks[name], tallies[name] = column.encode(raw.columns[name], schema.marks)
    # classes are declared: a label that names none, or nothing, is no error
    labels, agents = raw.texts(schema.label, blank=True), raw.texts(schema.agent)
    x = np.hstack(list(blocks.values()))
    return FeatureTable(raw.source, schema.features, x, labels, agents), Counts(len(raw), tallies)


def count(tables: Iterable[RawTable], schema: Schema) -> Counts:
    """Count what training would change, with the labels that name no class and the agents that are missing."""
    total = Counts(0, {})
    for raw in tables:
        schema.check_columns(raw.source, raw.columns, training=True)
        tallies = {name: column.encode(raw.columns[name], schema.marks)[1] for name, column in schema.encoded.items()}
        for name, column in schema.columns.items():
            if isinstance(column, LabelColumn | AgentColumn):
                tallies[name] = column.tally(raw.columns[name])
        total += Counts(len(raw), tallies)
    return total
