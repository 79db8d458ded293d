"""A look at the records of a file, for their owner: how it is written, what its columns hold, a first schema."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tacit.data.column_facts import ColumnFacts
from tacit.data.file_layout import FileLayout
from tacit.data.formats import read_raw
from tacit.data.schema_draft import Draft, draft_schema
from tacit.data.sniff import sniff
from tacit.data.table import RawTable, some
from tacit.errors import DataError


@dataclass(frozen=True)
class Look:
    """What was found in a file: all of it is about private records, but for the names of columns."""

    path: Path
    draft: Draft
    layout: FileLayout | None  # of text files
    records: int
    malformed: list[str]  # the places of records that are not well-formed
    notes: list[str]


def look(path: Path, label_column: str | None = None, agent_column: str | None = None, flag: str = "") -> Look:
    """Look at a table or a directory of tables; `flag` is the option that names the label, where one must."""
    sniffed = sniff(path)
    layout = None if sniffed is None else sniffed.layout
    tables = list(read_raw(path, layout))
    if layout is not None:
        for table in tables:
            _check_names(table, layout.decimal)
    first = tables[0]
    if flag and label_column is None and first.roles is None and "label" not in first.columns:
        raise DataError(f"{path} has the columns {some(list(first.columns))}: say which to predict with {flag}.")
    draft = draft_schema(tables, path.name, label_column, agent_column, layout)
    return Look(
        path, draft, layout, sum(map(len, tables)), [raw.place(i) for raw in tables for i in raw.unreadable],
        [*(sniffed.notes if sniffed else ()), *draft.notes],
    )  # fmt: skip


def _check_names(table: RawTable, decimal: str) -> None:
    """Refuse a text file whose first line is a record: the names of columns are written into what is shared.

    The error does not repeat the cell, which may be somebody's.
    """
    for place, (name, cells) in enumerate(table.columns.items(), start=1):
        own = ColumnFacts(name, [np.array([name.replace(decimal, ".")], np.object_)])
        below = ColumnFacts(name, [cells])
        if own.is_numeric:
            why = "is a number"
        elif own.is_iso_date or own.is_other_date:
            why = "is a date"
        elif below.unreadable and name in below.texts:
            why = "is also a value of its column"
        else:
            continue
        raise DataError(
            f"{table.source}: the first line seems to be a record, as its cell {place} {why}, and names of columns are "
            "written into files that are shared: put a line with the names of the columns above it."
        )
