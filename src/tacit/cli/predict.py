"""tacit predict: classes for new records."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from tacit.cli.options import Commands, add_common


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "predict",
        help="predict with a trained model",
        description="Print the class of each record of a table, one a line. A label column, if there is one, is "
        "compared with the prediction and the error goes to stderr.",
    )
    parser.add_argument("--model", type=Path, required=True, metavar="DIR", help="the directory of a finished run")
    parser.add_argument("--data", required=True, metavar="FILE", help="a table: .csv, .parquet or .npz")
    parser.add_argument("--averaged", action="store_true", help="use the averaged iterate")
    parser.add_argument("--label-column", default="label", metavar="NAME", help="column with the label, if any")
    parser.add_argument("--agent-column", default="agent", metavar="NAME", help="column that names the agent, if any")
    add_common(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from tacit.data import tables
    from tacit.experiments.model import Model

    model = Model.read(options.model)
    table = tables.read(options.data, label_column=options.label_column, agent_column=options.agent_column)
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
        print(f"error {100 * error:.2f}% against column {options.label_column!r}", file=sys.stderr)
    return 0
