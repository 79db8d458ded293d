"""tacit data schema init, tacit data check: for the owner of a table, on the owner's machine."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.cli.options import Commands, add_common
from tacit.errors import DataError, NotPrivateWarning, SpecError

if TYPE_CHECKING:
    from tacit.data.feature_table import Counts
    from tacit.data.schema import Schema

_CHECK = """\
Read a table as training would, and count per column what the schema changes: numbers clipped to their
range, missing and unreadable cells, values that are not listed. The counts are about private records.
They are printed here for their owner, and are part of nothing that training writes or sends."""


def add_to(actions: Commands) -> None:
    """Add `check` and `schema init` to the actions of `tacit data`."""
    check = actions.add_parser(
        "check",
        help="count what a schema changes in a table, locally",
        description=_CHECK,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    check.add_argument("file", type=Path, metavar="FILE", help="a table, or a directory of them")
    check.add_argument("--schema", type=Path, required=True, metavar="FILE", help="the schema.toml")
    add_common(check)
    check.set_defaults(run=run_check)

    group = actions.add_parser("schema", help="write a schema.toml", description="Declare the columns of a table.")
    init = group.add_subparsers(title="actions", metavar="ACTION", required=True).add_parser(
        "init",
        help="draft a schema from a file",
        description="Draft a schema.toml by looking at a file. Numbers and lists read from the data are marked, and "
        "training refuses them until public knowledge stands in their place.",
    )
    init.add_argument("file", type=Path, metavar="FILE", help="a table, or a directory of them")
    init.add_argument("--label-column", metavar="NAME", help="column with the label (default: label; y in an NPZ)")
    init.add_argument("--agent-column", metavar="NAME", help="column that names the agent (default: agent, if any)")
    init.add_argument("--out", type=Path, default=Path("schema.toml"), metavar="FILE", help="default: schema.toml")
    add_common(init)
    init.set_defaults(run=run_init)


def run_init(options: argparse.Namespace) -> int:
    """Draft a schema.toml from a table, and warn of what was read from its records."""
    from tacit.data.formats import read_raw
    from tacit.data.schema_draft import draft_schema

    tables = list(read_raw(options.file))
    text, looked = draft_schema(tables, options.file.name, options.label_column, options.agent_column)
    try:
        with options.out.open("x", encoding="utf-8") as file:  # never over a schema someone has edited
            file.write(text)
    except FileExistsError:
        raise SpecError(f"{options.out} exists: name another --out, or remove it first.") from None
    except OSError as error:
        raise SpecError(f"cannot write {options.out}: {error.strerror}. Choose another --out.") from None
    print(json.dumps({"out": str(options.out), "read_from_data": looked}) if options.json else f"wrote {options.out}")
    warnings.warn(
        f"NOT PRIVATE YET: the ranges and lists of {', '.join(map(repr, looked))} in {options.out} were READ FROM "
        "THE DATA. Replace them by public knowledge and delete the lines read_from_data = true: training refuses them.",
        NotPrivateWarning,
        stacklevel=2,
    )
    return 0


def run_check(options: argparse.Namespace) -> int:
    """Print what a schema changes in a table; fail where training would not use all records."""
    from tacit.data import schema as schemas
    from tacit.data.feature_table import count
    from tacit.data.formats import read_raw
    from tacit.types import Norm

    schema = schemas.read(options.schema)
    counts = count(read_raw(options.file), schema)
    bounds = {norm.value: schema.row_bound(norm) for norm in (Norm.L1, Norm.L2)}
    if options.json:
        facts = {"records": counts.records, "features": len(schema.features), "classes": len(schema.classes)}
        marked = {"read_from_data": list(schema.drafted)}
        print(json.dumps(facts | {"row_bound": bounds, "counts": counts.as_dict()} | marked))
    else:
        print(_table(schema, counts))
        print(
            f"\n{counts.records} records, {len(schema.features)} features from {schema.active} columns, "
            f"each in [0, 1]: |x|_1 <= {bounds['l1']:g}, |x|_2 <= {bounds['l2']:.4g}\n"
            "These counts are about private records: they are for you, and training tells them to nobody."
        )
        sys.stdout.flush()
    _warn(schema, counts)
    for role, name, then in (("label", schema.label, "counts them as absent"), ("agent", schema.agent, "refuses them")):
        odd = counts.columns[name].missing + counts.columns[name].unknown if name else 0
        if odd:
            raise DataError(f"{odd} records have no usable {role} in {name!r}: mend or drop them, training {then}.")
    return 0


def _table(schema: Schema, counts: Counts) -> str:
    """Write the counts by column, as aligned text."""
    kinds = ("clipped", "missing", "unreadable", "unknown")
    rows = [["column", "kind", *kinds]]
    for name, tally in counts.as_dict().items():
        rows.append([name, schema.columns[name].kind, *(str(tally[kind]) for kind in kinds)])
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join([row[0].ljust(wide[0]), row[1].ljust(wide[1]), *map(str.rjust, row[2:], wide[2:])]) for row in rows
    )


def _warn(schema: Schema, counts: Counts) -> None:
    """Warn of what the owner should look at: columns that are mostly changed, and numbers still read from the data."""
    for name in schema.encoded:
        for what, times in counts.as_dict()[name].items():
            if 2 * times > counts.records:
                print(f"tacit: most cells of {name!r} are {what}: is it declared as it is written?", file=sys.stderr)
    if schema.drafted:
        marked = ", ".join(map(repr, schema.drafted))
        warnings.warn(
            f"not private: {marked} still hold numbers or lists read from the data; training refuses them.",
            NotPrivateWarning,
            stacklevel=2,
        )
