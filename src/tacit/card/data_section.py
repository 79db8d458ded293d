"""What a card says of the data: the columns that the schema of the model declares, and no record."""

from __future__ import annotations

from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from tacit.card.blocks import Block, Facts, Table, Text
from tacit.data.schema import Schema
from tacit.errors import InputError
from tacit.report.runs import Recorded, text
from tacit.run.model import Model

VALUES = 12  # of a column at most
COLUMNS = 200  # at most that a card lists
NAMES = 24  # features at most that a card names where there is no schema


def blocks(directory: Path, run: Recorded) -> list[Block]:
    """Return the data section."""
    told = run.summary
    pairs = [("source", str(run.values.get("data.source", "-"))), ("name", str(told.get("dataset", "-")))]
    try:
        model = Model.read(directory)
        schema = model.known
    except InputError as error:  # the rest of the card can be written still
        return [Facts(pairs), Text(f"The model cannot be read: {error}", "bad")]
    if model.target is not None:
        what = f"{schema.label if schema else 'a number'}, from {model.target.lo:g} to {model.target.hi:g}"
    else:
        what = f"{schema.label if schema else 'a class'}, one of {len(model.classes)}: {_some(model.classes)}"
    pairs.append(("predicts", what))
    if told.get("features"):
        pairs.append(("feature map", str(told["features"])))
    if schema is not None:
        return [Facts(pairs), _table(schema)]
    pairs.append(("inputs", f"{model.n_inputs} numbers{': ' + _some(model.features, NAMES) if model.features else ''}"))
    return [Facts(pairs), Text("There is no schema: the records came as numbers.")]


def _table(schema: Schema) -> Table:
    listed = list(schema.columns.items())[:COLUMNS]
    rows = [[name, column.kind, _declared(column)] for name, column in listed]
    more = f", the first {COLUMNS} of {len(schema.columns)}" if len(schema.columns) > COLUMNS else ""
    rows += [[name, "cross", " by ".join(cross.of)] for name, cross in schema.crosses.items()]
    return Table(f"Columns, as the schema declares them{more}", ["column", "kind", "declared"], rows)


def _declared(column: Any) -> str:
    """Write what a schema says of a column beside its kind; what is left at its default is left out."""
    said = []
    for one in fields(column):
        value = getattr(column, one.name)
        usual = one.default_factory() if one.default_factory is not MISSING else one.default
        if value != usual and value is not None and value != ():
            said.append(f"{one.name} {_some(value) if isinstance(value, tuple | list) else text(value)}")
    return "; ".join(said)


def _pair(value: Any) -> str:
    """Write a name with what it stands for, or a name alone."""
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], tuple):
        return f"{text(value[0])} ({', '.join(map(text, value[1]))})"
    return text(value)


def _some(names: Any, most: int = VALUES) -> str:
    """Write some names, and how many there are where that is more."""
    shown = [_pair(name) for name in list(names)[:most]]
    return ", ".join(shown) + (f", ... ({len(names)} in all)" if len(names) > most else "")
