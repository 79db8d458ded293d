"""Print the class of each record of a table, one a line, or the number where the model predicts one. A label column, if
there is one, is compared with the prediction and the error goes to stderr (RMSE for numbers, which are first moved into
the bounds of the target); empty labels do not count. A model that was trained with a schema holds it,
and encodes new records by it. A run that was edited is refused. With --proba the output is a CSV: the names of the
classes, then a line a record with the probability that the model gives each of them.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from pathlib import Path

from tacit.cli.folding import say
from tacit.cli.options import finish


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tacit predict`."""
    parser.add_argument("--model", type=Path, required=True, metavar="DIR", help="a finished run, or a model.npz alone")
    parser.add_argument("--data", required=True, metavar="FILE", help="a table: .csv, .parquet or .npz")
    parser.add_argument("--averaged", action="store_true", help="use the averaged iterate")
    parser.add_argument("--proba", action="store_true", help="print the probability of each class, as CSV")
    parser.add_argument("--label-column", metavar="NAME", help="column with the label, if any (default: label)")
    parser.add_argument("--agent-column", metavar="NAME", help="column that names the agent, if any (default: agent)")
    parser.add_argument("--features", metavar="MODULE:FUNCTION", help="your own feature map, if the model needs one")
    finish(parser, __doc__, run)


def run(options: argparse.Namespace) -> int:
    """Print the class or the number of each record."""
    from tacit.problem.loss import check_probabilities, probabilities
    from tacit.run.model import Model

    model = Model.read(options.model, options.features)
    if options.proba:
        check_probabilities(model.target, model.loss)
    table = model.table(options.data, options.label_column, options.agent_column)
    scores = model.scores(table.x, options.averaged)
    predicted = model.read_off(scores)
    number = model.target is not None
    error = None if table.labels is None else model.error(scores, table.labels)
    proba = probabilities(scores) if options.proba else None
    if options.json:
        found = {} if proba is None else {"classes": list(model.classes), "probabilities": proba.tolist()}
        print(json.dumps({"predictions": predicted, **found, "rmse" if number else "error": error}))
        return 0
    if proba is None:
        print("\n".join(one if isinstance(one, str) else f"{one:.7g}" for one in predicted))
    else:
        writer = csv.writer(sys.stdout, lineterminator="\n")  # the name of a class may hold a comma
        writer.writerow(model.classes)
        writer.writerows([f"{p:.6g}" for p in row] for row in proba)
    if error is not None and not options.quiet:
        label_column = model.known.label if model.known else options.label_column or "label"
        shown = f"RMSE {error:.4g}" if number else f"error {100 * error:.2f}%"
        say(f"{shown} against column {label_column!r}", file=sys.stderr)
    return 0
