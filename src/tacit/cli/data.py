"""tacit data: describe a federation, draft a schema, and check a table by it, on the machine of its owner."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.cli.folding import say, width
from tacit.cli.options import DATA_FLAGS, add_actions, add_spec_flags, assignments, finish, given
from tacit.errors import DataError, NotPrivateWarning, SpecError
from tacit.jsontext import Values

if TYPE_CHECKING:
    from tacit.data.columns.encoding import Counts
    from tacit.data.file_layout import FileLayout
    from tacit.data.look import Look
    from tacit.data.schema import Schema
    from tacit.data.schema_draft import Draft


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the actions of `tacit data`."""
    actions = add_actions(parser, "Look at data before training on them.")
    describe = actions.add_parser("describe", help="print the paper's Table 1: I, J, K, P, records per agent")
    describe.add_argument("source", nargs="?", metavar="SOURCE", help="the same as --data")
    add_spec_flags(describe, DATA_FLAGS)
    finish(describe, run_describe.__doc__, run_describe)

    check = actions.add_parser("check", help="count what a schema changes in a table, locally")
    check.add_argument("file", type=Path, metavar="FILE", help="a table, or a directory of them")
    check.add_argument("--schema", type=Path, required=True, metavar="FILE", help="the schema.toml")
    finish(check, run_check.__doc__, run_check)

    schema = add_actions(actions.add_parser("schema", help="write a schema.toml"), "Declare the columns of a table.")
    init = schema.add_parser("init", help="draft a schema from a file")
    init.add_argument("file", type=Path, metavar="FILE", help="a table, or a directory of them")
    init.add_argument("--label-column", metavar="NAME", help="column with the label (default: label; y in an NPZ)")
    init.add_argument("--agent-column", metavar="NAME", help="column that names the agent (default: agent, if any)")
    init.add_argument("--out", type=Path, default=Path("schema.toml"), metavar="FILE", help="default: schema.toml")
    finish(init, run_init.__doc__, run_init)


def run_describe(options: argparse.Namespace) -> int:
    """Print I, J, K, P and the mean and standard deviation of records per agent. Later sources win: --config, flags,
    --set.
    """
    from tacit import toml
    from tacit.data.describe import describe, table
    from tacit.run import build
    from tacit.run.spec import Spec

    config = toml.read(options.config) if options.config else {}
    flags = given(options, DATA_FLAGS)
    if options.source:
        flags.setdefault("data.source", options.source)
    federation = build.federation(Spec().with_values(config | flags | assignments(options.set)).checked())
    if options.json:
        print(json.dumps(describe(federation)))
        return 0
    text = table(federation)
    if max(map(len, text.splitlines())) <= width():
        print(text)
    else:
        say("\n".join(f"{name:<14}{value}" for name, value in describe(federation).items()), hang=14)
    return 0


def run_init(options: argparse.Namespace) -> int:
    """Draft a schema.toml by looking at a file: how its cells are separated, quoted and written, and what each column
    holds. What was found, left out or is in doubt is said here, for the owner of the records. Numbers and lists read
    from the data are marked in the draft, and training refuses them until public knowledge stands in their place.
    """
    from tacit.data.look import look

    found = look(options.file, options.label_column, options.agent_column)
    try:
        with options.out.open("x", encoding="utf-8") as file:  # never over a schema someone has edited
            file.write(found.draft.text)
    except FileExistsError:
        raise SpecError(f"{options.out} exists: name another --out, or remove it first.") from None
    except OSError as error:
        raise SpecError(f"cannot write {options.out}: {error.strerror}. Choose another --out.") from None
    if options.json:
        print(json.dumps({"out": str(options.out), **as_values(found)}))
    else:
        say_found(found)
        say(f"wrote {options.out}")
    warn_of_draft(found.draft, options.out)
    return 0


def as_values(found: Look) -> Values:
    """What was found in a file, for --json."""
    return {
        "file": found.layout and asdict(found.layout), "kinds": found.draft.kinds,
        "read_from_data": found.draft.looked, "records": found.records, "malformed": found.malformed,
        "ignored": found.draft.ignored, "notes": found.notes,
    }  # fmt: skip


def say_found(found: Look) -> None:
    """Say what was found in a file, to the owner of its records."""
    from tacit.data.table import some

    if found.layout is not None:
        say(f"{found.path}: {_in_words(found.layout)}")
    if found.malformed:
        say(_malformed(found.malformed, found.records))
    for note in found.notes:
        say(f"note: {note}")
    for kind in sorted({*found.draft.kinds.values()} - {"ignore"}):
        say(f"{kind}: {some([name for name, own in found.draft.kinds.items() if own == kind])}")
    for name, why in found.draft.ignored.items():
        say(f"left out {name!r}: {why}")


def warn_of_draft(draft: Draft, path: Path) -> None:
    """Warn that a draft holds what was read from private records."""
    warnings.warn(
        f"NOT PRIVATE YET: the ranges and lists of {', '.join(map(repr, draft.looked))} in {path} were READ "
        "FROM THE DATA. Replace them by public knowledge and delete the lines read_from_data = true: training refuses "
        "them.",
        NotPrivateWarning,
        stacklevel=3,
    )


def _in_words(layout: FileLayout) -> str:
    """Say how a text file is written."""
    signs = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
    between = signs.get(layout.separator or ",", layout.separator)
    quoted = f"quoted with {layout.quote}" if layout.quote else "never quoted"
    decimal = "decimal commas" if layout.decimal == "," else "decimal points"
    spans = ", quoted cells may hold line ends" if layout.newlines else ""
    return f"cells between {between}, {quoted}, {decimal}{spans}"


def _malformed(places: Sequence[str], records: int) -> str:
    """Say which records are not well-formed."""
    few = ", ".join(places[:8]) + (f" and {len(places) - 8} more" if len(places) > 8 else "")
    return f"{len(places)} of {records} records are not well-formed, and are read as if every cell were missing: {few}"


def run_check(options: argparse.Namespace) -> int:
    """Read a table as training would, and count per column what the schema changes: numbers clipped to their range,
    missing and unreadable cells, values that are not listed. The counts are about private records. They are printed
    here for their owner, and are part of nothing that training writes or sends. Exit code 2 if training would not use
    all records.
    """
    from tacit.cli.table import table
    from tacit.data import schema as schemas
    from tacit.data.column_kinds import Tally
    from tacit.data.encoded_table import count
    from tacit.data.formats import read_raw

    schema = schemas.read(options.schema)
    counts = count(read_raw(options.file, schema.file), schema)
    tallies = counts.as_dict()
    bounds = dict(zip(("l1", "l2"), schema.longest, strict=True))
    if options.json:
        facts: Values = {"records": counts.records, "features": len(schema.features), "classes": len(schema.classes)}
        facts |= {} if schema.target is None else {"target": [schema.target.lo, schema.target.hi]}
        found = {"row_bound": bounds, "counts": tallies, "malformed": list(counts.places)}
        print(json.dumps({**facts, **found, "read_from_data": list(schema.drafted)}))
    else:
        kinds = ("clipped", "missing", "unreadable", "unknown")
        rows = [[name, schema.columns[name].kind, *(str(own[kind]) for kind in kinds)] for name, own in tallies.items()]
        print(table(("column", "kind", *kinds), rows, right=kinds))
        if counts.places:
            say(f"\n{_malformed(counts.places, counts.records)}")
        say(
            f"\n{counts.records} records, {len(schema.features)} features from {len(schema.encoded)} columns, "
            f"each in [{schema.bounds[0]:g}, 1]: |x|_1 <= {bounds['l1']:g}, |x|_2 <= {bounds['l2']:.4g}\n"
            "These counts are about private records: they are for you, and training tells them to nobody."
        )
        sys.stdout.flush()
    _warn(schema, counts)
    roles = (("label", schema.label, "counts them as absent"), ("agent", schema.agent, "leaves them out"))
    for role, name, then in roles:
        own = counts.columns[name] if name else Tally()
        odd = own.missing + own.unknown + own.unreadable
        if odd:
            raise DataError(f"{odd} records have no usable {role} in {name!r}: mend or drop them, training {then}.")
    return 0


def _warn(schema: Schema, counts: Counts) -> None:
    """Warn of what the owner should look at: columns that are mostly changed, and numbers still read from the data."""
    for name in schema.encoded:
        for what, times in counts.as_dict()[name].items():
            if 2 * times > counts.records:
                say(f"tacit: most cells of {name!r} are {what}: is it declared as it is written?", file=sys.stderr)
    if schema.drafted:
        marked = ", ".join(map(repr, schema.drafted))
        warnings.warn(
            f"not private: {marked} still hold numbers or lists read from the data; training refuses them.",
            NotPrivateWarning,
            stacklevel=2,
        )
