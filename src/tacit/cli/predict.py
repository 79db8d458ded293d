"""tacit predict: classes for new records."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.cli.options import Commands, add_common
from tacit.errors import IncompatibleError

if TYPE_CHECKING:
    from tacit.data.columns import Table


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "predict",
        help="predict with a trained model",
        description="Print the class of each record of a table, one a line. A label column, if there is one, is "
        "compared with the prediction and the error goes to stderr. A model that was trained with a schema "
        "holds it, and encodes new records by it.",
    )
    parser.add_argument("--model", type=Path, required=True, metavar="DIR", help="a finished run, or its model.npz")
    parser.add_argument("--data", required=True, metavar="FILE", help="a table: .csv, .parquet or .npz")
    parser.add_argument("--averaged", action="store_true", help="use the averaged iterate")
    parser.add_argument("--label-column", metavar="NAME", help="column with the label, if any (default: label)")
    parser.add_argument("--agent-column", metavar="NAME", help="column that names the agent, if any (default: agent)")
    add_common(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from tacit.experiments.model import Model

    model = Model.read(options.model)
    table, label_column = _table(options, model.schema)
    x = model.in_order(table.x, table.features)
    predicted = model.predict(x, options.averaged)
    error = None
    if table.labels is not None:
        wrong = sum(str(label) != guess for label, guess in zip(table.labels, predicted, strict=True))
        error = wrong / max(len(predicted), 1)
    if options.json:
        print(json.dumps({"predictions": predicted, "error": error}))
        return 0
    print("\n".join(predicted))
    if error is not None and not options.quiet:
        print(f"error {100 * error:.2f}% against column {label_column!r}", file=sys.stderr)
    return 0


def _table(options: argparse.Namespace, schema_text: str) -> tuple[Table, str]:
    """(the records, the name of their label column), through the model's schema if it has one."""
    from tacit.data import encode, schema, tables

    given = options.label_column, options.agent_column
    if not schema_text:
        label, agent = given[0] or "label", given[1] or "agent"
        return tables.read(options.data, label_column=label, agent_column=agent), label
    known = schema.parse(schema_text, "the model's schema")
    for name, declared in zip(given, (known.label, known.agent), strict=True):
        if name not in (None, declared):
            raise IncompatibleError(f"the model's schema names {declared!r}, not {name!r}: drop the option.")
    return encode.read(options.data, known)[0], known.label
