"""python -m benchmarks.imports: how long `import tacit` takes beside `import numpy`, by -X importtime, in turns."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from statistics import median

STATEMENTS = {  # what is imported -> the module whose line of -X importtime is read
    "import tacit": "tacit",
    "import numpy": "numpy",
    "import tacit.run.train": "tacit.run.train",  # what tacit.train needs, on its first use
}
LIMIT = 300.0  # ms that `import tacit` may take


def milliseconds(statement: str, module: str) -> float:
    """Run a statement in a new process; return the cumulative time of importing a module."""
    command = [sys.executable, "-X", "importtime", "-c", statement]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    return cumulative(told, module)


def cumulative(told: str, module: str) -> float:
    """Return the milliseconds that -X importtime gives for a module and all that it imports."""
    for line in told.splitlines():
        parts = [part.strip() for part in line.removeprefix("import time:").split("|")]
        if len(parts) == 3 and parts[2] == module:
            return int(parts[1]) / 1000
    raise ValueError(f"-X importtime does not name {module}")


def measure(times: int) -> dict[str, list[float]]:
    """Return the times of each statement, taken in turns: what else the machine does is the same for all."""
    found: dict[str, list[float]] = {statement: [] for statement in STATEMENTS}
    for _ in range(times):
        for statement, module in STATEMENTS.items():
            found[statement].append(milliseconds(statement, module))
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Print a line a statement; exit with 1 if `import tacit` takes longer than it may."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.imports", description=__doc__)
    parser.add_argument("--times", type=int, default=7, help="processes a statement (default 7)")
    parser.add_argument("--json", action="store_true", help="print JSON in place of lines")
    options = parser.parse_args(argv)
    found = {statement: median(own) for statement, own in measure(options.times).items()}
    if options.json:
        print(json.dumps(found))
    else:
        print("\n".join(f"{statement:<26} {own:8.1f} ms" for statement, own in found.items()))
    return int(found["import tacit"] > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
