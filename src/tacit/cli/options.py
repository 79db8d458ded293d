"""Options that several commands share."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tacit.errors import SpecError

Commands = Any  # argparse keeps the type of add_subparsers() private

# flag, spec key, type, metavar, help
DATA_FLAGS = (
    ("--data", "data.source", str, "SOURCE", "mnist (bundled), synthetic, a LEAF directory, a table "
     "(.csv, .parquet, .npz), or a directory with one table per agent"),
    ("--agents", "data.agents", int, "P", "number of agents, where the data do not name them"),
    ("--partition", "data.partition", str, "HOW", "contiguous, shuffled, dirichlet or unequal"),
    ("--test", "data.test", str, "FILE", "test records; without it a part of each agent's is held out"),
    ("--classes", "data.class_names", str, "NAME,...", "tables: the classes, which are then public; or K for 0 to K-1"),
    ("--schema", "data.schema", str, "FILE", "tables: what is publicly known of each column, as TOML; "
     "tacit data schema init drafts one"),
    ("--label-column", "data.label_column", str, "NAME", "column with the label (default: label)"),
    ("--agent-column", "data.agent_column", str, "NAME", "column that names the agent (default: agent)"),
)  # fmt: skip


def add_spec_flags(parser: argparse.ArgumentParser, flags: tuple[tuple[Any, ...], ...]) -> None:
    """Flags that stand for spec keys."""
    for flag, key, kind, metavar, about in flags:
        parser.add_argument(flag, dest=key, type=kind, metavar=metavar, help=about, default=None)


def add_common(parser: argparse.ArgumentParser) -> None:
    """--json, -v, -q."""
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object")
    parser.add_argument("-v", "--verbose", action="count", default=0, help="a line for every recorded round")
    parser.add_argument("-q", "--quiet", action="count", default=0, help="no progress; -qq: no warnings either")


def add_spec_sources(parser: argparse.ArgumentParser) -> None:
    """--config and --set: any key of the spec."""
    parser.add_argument("--config", type=Path, metavar="FILE", help="a TOML file of keys, such as a spec.toml")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="any key, see tacit train --keys"
    )


def given(options: argparse.Namespace, flags: tuple[tuple[Any, ...], ...]) -> dict[str, Any]:
    """The spec values that were given as flags."""
    values = {key: getattr(options, key) for _, key, *_ in flags}
    return {key: value for key, value in values.items() if value is not None}


def assignments(pairs: list[str]) -> dict[str, str]:
    """--set key=value, as a dictionary."""
    for pair in pairs:
        if "=" not in pair:
            raise SpecError(f"--set takes key=value, got {pair!r}: for example --set privacy.clip=0.5.")
    return {key.strip(): value.strip() for key, _, value in (pair.partition("=") for pair in pairs)}
