"""Start a project from a table: a folder with a drafted schema.toml, run.toml, README.md and .gitignore, ready for
three commands. The records are looked at here, on the machine of their owner, and stay where they are; what was read
from them is marked in schema.toml and listed in README.md, and training refuses it until it is public knowledge.

examples:
  tacit new heart-risk --data patients.csv --label outcome --agent hospital
  tacit new stays --data stays.csv --label days                a number is predicted where the label is one
"""

from __future__ import annotations

import argparse
import json
import shlex
from pathlib import Path

from tacit.cli.data import as_values, say_found, warn_of_draft
from tacit.cli.folding import say
from tacit.cli.options import finish


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tacit new`."""
    parser.add_argument("folder", type=Path, metavar="DIR", help="the folder of the project; no file is overwritten")
    parser.add_argument(
        "--data", type=Path, required=True, metavar="FILE", help="a table (.csv, .tsv, .parquet, .npz), or a directory"
    )
    parser.add_argument("--label", metavar="COLUMN", help="the column to predict (default: label)")
    parser.add_argument("--agent", metavar="COLUMN", help="the column that names the agent (default: agent, if any)")
    finish(parser, __doc__, run)


def run(options: argparse.Namespace) -> int:
    """Write a project, and say what comes next."""
    from tacit.data.look import look
    from tacit.run.project import project_files, write_project

    found = look(options.data, options.label, options.agent, flag="--label COLUMN")
    folder: Path = options.folder
    files = project_files(found, folder, folder.resolve().name)
    write_project(folder, files)
    warn_of_draft(found.draft, folder / "schema.toml")
    if options.json:
        print(json.dumps({"out": str(folder), "wrote": list(files), **as_values(found)}))
        return 0
    say_found(found)
    say(f"wrote {', '.join(files)} in {folder}")
    say(
        f"next: cd {shlex.quote(str(folder))}, confirm the marked lines of schema.toml, then the three commands of "
        "README.md"
    )
    return 0
