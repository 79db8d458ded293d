"""What deployment costs: the wall time of a run with exact noise and ledgers over that of the same run, simulated.

    python -m benchmarks.deployed                  three of each on the bundled MNIST, in turn: a table
    python -m benchmarks.deployed --repeat 5 --json
    python -m benchmarks.deployed --rounds 50      shorter; the start of a process then counts for more

Every run is a process of its own with directories of its own. Other load on the machine lengthens both, so that the
ratio is of two runs that follow one another; what is stated is the median of these ratios.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Pair:
    """One run of each kind: seconds from start to end, and what the second left in its ledgers."""

    simulated: float
    deployed: float
    ledgers_mb: float

    @property
    def ratio(self) -> float:
        return self.deployed / self.simulated


def seconds(arguments: list[str]) -> float:
    """Return the wall time of one tacit train."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "tacit", "train", "-qq", *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def measured(arguments: list[str]) -> Pair:
    """Run both, the simulated one first."""
    with tempfile.TemporaryDirectory() as folder:
        ledgers = Path(folder) / "ledgers"
        simulated = seconds([*arguments, "--out", f"{folder}/simulated"])
        deployed = seconds([*arguments, "--noise", "exact", "--ledger", str(ledgers), "--out", f"{folder}/deployed"])
        return Pair(simulated, deployed, sum(file.stat().st_size for file in ledgers.iterdir()) / 1e6)


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.deployed", description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="runs of each kind (default 3)")
    parser.add_argument("--rounds", type=int, metavar="T", help="rounds of a run (default: the method's own)")
    parser.add_argument("--data", default="mnist", metavar="SOURCE", help="as in tacit train (default mnist)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    chosen = parser.parse_args(words)
    arguments = ["--data", chosen.data, *(["--rounds", str(chosen.rounds)] if chosen.rounds else [])]
    pairs = []
    if not chosen.json:
        print(f"{'simulated s':>12} {'deployed s':>12} {'ratio':>7} {'ledgers MB':>11}")
    for _ in range(chosen.repeat):
        pairs.append(pair := measured(arguments))
        if not chosen.json:
            row = f"{pair.simulated:>12.2f} {pair.deployed:>12.2f} {pair.ratio:>7.2f} {pair.ledgers_mb:>11.1f}"
            print(row, flush=True)
    ratio = statistics.median(pair.ratio for pair in pairs)
    if chosen.json:
        print(json.dumps({"pairs": [asdict(pair) for pair in pairs], "ratio": ratio}))
    else:
        print(f"median ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
