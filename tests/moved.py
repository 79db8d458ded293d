"""Tests and planted faults that a change of structure moves: none goes, unless the property that it is about goes too.

    python -m tests.moved                the last commit and the working tree
    python -m tests.moved --before REV   another commit

Lists the tests and the faults of the earlier commit that the working tree does not have, and fails if tests/moved.toml
does not name their successor:

    [tests]
    "tests/agent/test_agent.py::test_old" = "tests/agent/test_answer.py::test_new"
    [faults]
    "name of a fault" = "its new name"
    [gone]
    "tests/agent/test_agent.py::test_both_duals_agree" = "agents keep no dual any more"

A key may leave the parameters of a test out, or name a whole module: then it stands for all of its tests.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tacit import toml
from tests.same_bits.__main__ import extract

ROOT = Path(__file__).resolve().parent.parent
TABLE = Path(__file__).with_name("moved.toml")
NUMBERED = re.compile(r"(tests/test_docs_blocks\.py::\w+)\[.*")  # by the lines of a page, which move
FAULTS = "from tests.mutants import MUTANTS\nprint('\\n'.join(one.name for one in MUTANTS))"


def main() -> int:
    """Compare the tests and faults of two versions."""
    parser = argparse.ArgumentParser(prog="python -m tests.moved", description=__doc__.splitlines()[0])
    parser.add_argument("--before", default="HEAD", metavar="REV", help="a commit (default: HEAD)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        before = Path(folder) / "tree"
        extract(options.before, before)
        then, now = collected(before), collected(ROOT)
    lost = missing(then, now, entries())
    print("\n".join(lost))
    print(f"{len(then)} tests and faults in {options.before}, {len(now)} now, {len(lost)} without a successor")
    return int(bool(lost))


def collected(root: Path) -> set[str]:
    """Return the ids of all tests of a tree, those with real processes too, and the names of its faults."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(root / "src"), str(root)))}
    words = ["-m", "pytest", "-o", "addopts=", "--collect-only", "-q", "-p", "no:cacheprovider"]
    words += ["tests", "tests/distributed"]
    lines = ""
    for command in (words, ["-c", FAULTS]):
        done = subprocess.run([sys.executable, *command], cwd=root, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)} fails in {root}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        lines += done.stdout
    named = (NUMBERED.sub(r"\1", line) for line in lines.splitlines())
    return {line for line in named if line and not re.match(r"=|no tests|\d+ tests", line)}


def entries() -> dict[str, str]:
    """Return the table: successors by what they succeed; "" for what is gone."""
    found = toml.parsed(TABLE.read_text(encoding="utf-8"), str(TABLE)) if TABLE.exists() else {}
    table = {}
    for key, value in found.items():
        section, _, name = key.partition(".")
        table[name] = "" if section == "gone" else str(value)
    return table


def missing(then: set[str], now: set[str], table: dict[str, str]) -> list[str]:
    """Return what is not there any more and has no successor that is."""
    lost = []
    for name in sorted(then - now):
        key = next((part for part in (name, name.partition("[")[0], name.partition("::")[0]) if part in table), None)
        if key is None:
            lost.append(name)
        elif (to := table[key]) and not any(one == to or one.startswith((f"{to}[", f"{to}::")) for one in now):
            lost.append(f"{name}: its successor {to} is not there")
    return lost


if __name__ == "__main__":
    sys.exit(main())
