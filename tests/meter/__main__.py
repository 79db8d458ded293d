"""The command: see the package."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.meter import source
from tests.same_bits.__main__ import ROOT, extract

ENTERED = Path(__file__).with_name("entered.py")
TRAIN = ("train", "--data", "synthetic", "--rounds", "3")
LIMIT = 300  # lines that no module should exceed
SHORT = 30  # code lines: a module with fewer could perhaps be part of another one
LONGEST = 10  # modules that are listed


@dataclass(frozen=True)
class Measured:
    """What the meter finds in one tree."""

    code_lines: dict[str, int]
    longest: list[tuple[str, int]]
    packages: dict[str, int]
    entered_with_seed: list[str]
    entered_without_seed: list[str]
    cycles: list[list[str]]
    cycles_with_types: list[list[str]]
    twice: dict[str, list[str]]

    def rows(self) -> dict[str, int]:
        """Return the numbers that are compared, by the words of their row."""
        return {
            "code lines": sum(self.code_lines.values()),
            "modules": len(self.code_lines),
            "modules without __init__": sum(self.packages.values()),
            f"modules under {SHORT} code lines": sum(lines < SHORT for lines in self.code_lines.values()),
            f"modules over {LIMIT} lines": sum(lines > LIMIT for _, lines in self.longest),
            "files entered with a seed": len(self.entered_with_seed),
            "files entered without a seed": len(self.entered_without_seed),
            "import cycles": len(self.cycles),
            "import cycles, TYPE_CHECKING included": len(self.cycles_with_types),
            "class names defined twice": len(self.twice),
        }


def measure(root: Path) -> Measured:
    """Measure a tree: its text, and two processes that train."""
    src = root / "src"
    return Measured(
        code_lines={name: source.code_lines(path.read_text()) for name, path in source.modules(src).items()},
        longest=source.total_lines(src),
        packages=source.modules_per_package(src),
        entered_with_seed=files_entered(src, (*TRAIN, "--seed", "1")),
        entered_without_seed=files_entered(src, TRAIN),
        cycles=source.import_cycles(src),
        cycles_with_types=source.import_cycles(src, type_checking=True),
        twice=source.classes_defined_twice(src),
    )


def files_entered(src: Path, words: Sequence[str]) -> list[str]:
    """Return the modules that the second of two equal runs enters, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, str(ENTERED), *words], cwd=folder, capture_output=True, text=True, check=False,
            env=os.environ | {"PYTHONPATH": str(src)},
        )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"tacit {' '.join(words)} ended with exit code {done.returncode} in {src}:\n{done.stderr}")
    found: list[str] = json.loads(done.stdout)
    return found


def table(columns: dict[str, dict[str, int]]) -> str:
    """Return one line per row and one column per tree; a row that a tree does not have is a dash."""
    names = list(dict.fromkeys(name for own in columns.values() for name in own))
    first, width = max(map(len, names)), max(10, *(len(title) + 2 for title in columns))
    lines = [" " * first + "".join(f"{title:>{width}}" for title in columns)]
    for name in names:
        cells = (f"{own[name]:,}" if name in own else "-" for own in columns.values())
        lines.append(f"{name:<{first}}" + "".join(f"{cell:>{width}}" for cell in cells))
    return "\n".join(lines)


def report(found: dict[str, Measured]) -> str:
    """Return the numbers of all trees side by side, and the lists behind those of the last one."""
    now = [*found.values()][-1]
    parts = [
        table({name: own.rows() for name, own in found.items()}),
        "modules per package, without __init__\n" + table({name: own.packages for name, own in found.items()}),
        "longest modules\n" + "\n".join(f"{lines:5} {path}" for path, lines in now.longest[:LONGEST]),
        "import cycles\n" + ("\n".join(" ".join(group) for group in now.cycles_with_types) or "none"),
        "class names defined twice\n" + "\n".join(f"{name}: {', '.join(at)}" for name, at in now.twice.items()),
    ]
    return "\n\n".join(parts)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the trees and print what was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.meter", description=__doc__)
    parser.add_argument(
        "--before", metavar="REV", action="append", default=[], help="a commit to measure as well; may be repeated"
    )
    options = parser.parse_args(argv)
    found = {}
    for rev in options.before:
        with tempfile.TemporaryDirectory() as folder:
            extract(rev, Path(folder) / "tree")
            found[rev] = measure(Path(folder) / "tree")
    found["now"] = measure(ROOT)
    print(report(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
