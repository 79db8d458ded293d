"""tacit data describe: the paper's Table 1 for any federation. For check and schema see `tacit.cli.schema`."""

from __future__ import annotations

import argparse
import json

from tacit.cli import schema
from tacit.cli.options import (
    DATA_FLAGS,
    Commands,
    add_common,
    add_spec_flags,
    add_spec_sources,
    assignments,
    given,
)


def add_to(commands: Commands, about: str) -> None:
    """Add `tacit data` and its actions to the commands."""
    parser = commands.add_parser("data", help=about, description="Look at data before training on them.")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    describe = actions.add_parser(
        "describe",
        help="print the paper's Table 1: I, J, K, P, records per agent",
        description="Print I, J, K, P and the mean and standard deviation of records per agent. Later sources win: "
        "--config, flags, --set.",
    )
    describe.add_argument("source", nargs="?", metavar="SOURCE", help="the same as --data")
    add_spec_flags(describe, DATA_FLAGS)
    add_spec_sources(describe)
    add_common(describe)
    describe.set_defaults(run=run)
    schema.add_to(actions)


def run(options: argparse.Namespace) -> int:
    """Print what a federation holds."""
    from tacit import toml
    from tacit.data.describe import describe, table
    from tacit.run import build
    from tacit.run.spec import Spec

    config = toml.read(options.config) if options.config else {}
    flags = given(options, DATA_FLAGS)
    if options.source:
        flags.setdefault("data.source", options.source)
    federation = build.federation(Spec().with_values(config | flags | assignments(options.set)).checked())
    print(json.dumps(describe(federation)) if options.json else table(federation))
    return 0
