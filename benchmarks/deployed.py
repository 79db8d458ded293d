"""What deployment costs: the wall time of a run with exact noise and ledgers over that of the same run, simulated.

    python -m benchmarks.deployed                  three of each on the bundled MNIST, in turn: a table
    python -m benchmarks.deployed --repeat 5 --json
    python -m benchmarks.deployed --rounds 50      shorter; the start of a process then counts for more
    python -m benchmarks.deployed --before DIR     deployed runs of this checkout over those of another, in pairs;
                                                   --instance femnist195 has 195 agents, 784 pixels and 62 classes

Every run is a process of its own with directories of its own. Other load on the machine lengthens both, so that the
ratio is of two runs that follow one another; what is stated is the median of these ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent.parent
CHILD = """
import sys, tempfile, time
from benchmarks import instances
from tacit.run.presets import preset
from tacit.run.train import train
name, rounds = sys.argv[1], int(sys.argv[2])
_, over = instances.mnist() if name == "mnist" else instances.femnist(name)
with tempfile.TemporaryDirectory() as folder:
    spec = preset("sound", "objt").with_values({
        "data.source": name, "features.map": "none", "privacy.noise": "exact", "run.rounds": rounds,
        "privacy.ledger": folder + "/ledgers",
    })
    start = time.perf_counter()
    train(spec, over, out=folder + "/run")
    print(time.perf_counter() - start)
"""
TARGET = 2  # the wall time of a deployed run over that of a simulated one, at most


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
        simulated = seconds([*arguments, "--seed", "0", "--out", f"{folder}/simulated"])
        deployed = seconds([*arguments, "--noise", "exact", "--ledger", str(ledgers), "--out", f"{folder}/deployed"])
        return Pair(simulated, deployed, sum(file.stat().st_size for file in ledgers.iterdir()) / 1e6)


def measure(arguments: list[str], repeat: int, say: Callable[[Pair], None]) -> dict[str, Any]:
    """Return the pairs and the medians over them."""
    pairs = []
    for _ in range(repeat):
        pairs.append(pair := measured(arguments))
        say(pair)
    middle = {key: statistics.median(getattr(pair, key) for pair in pairs) for key in ("ratio", "ledgers_mb")}
    return {"pairs": [asdict(pair) for pair in pairs], **middle}


def against(root: Path, instance: str, rounds: int, repeat: int, say: Callable[[str], None]) -> dict[str, Any]:
    """Return the seconds of deployed runs in another checkout and in this one, in turn, and the median ratio."""
    pairs = []
    for n in range(repeat):
        roots = (("before", root), ("now", HERE))
        pair = {name: trained(own, instance, rounds) for name, own in (roots if n % 2 else roots[::-1])}
        pairs.append(pair)
        say(f"{pair['now'] / pair['before']:.3f} of {pair['before']:.2f} s")
    return {"pairs": pairs, "ratio": statistics.median(pair["now"] / pair["before"] for pair in pairs)}


def trained(root: Path, instance: str, rounds: int) -> float:
    """Return the seconds of a deployed run in a process with the tacit of a checkout."""
    command = [sys.executable, "-c", CHILD, instance, str(rounds)]
    path = os.pathsep.join((str(root / "src"), str(root)))
    done = subprocess.run(
        command, cwd=root, env=os.environ | {"PYTHONPATH": path}, check=True, capture_output=True, text=True
    )
    return float(done.stdout.split()[-1])


def markdown(found: dict[str, Any]) -> str:
    """The numbers as a table."""
    head = f"**Deployed**: `tacit train --noise exact --ledger` over the simulated run; target: at most {TARGET:g}x"
    rows = [
        f"| {pair['simulated']:.2f} | {pair['deployed']:.2f} | {pair['deployed'] / pair['simulated']:.2f} | "
        f"{pair['ledgers_mb']:.1f} |"
        for pair in found["pairs"]
    ]
    columns = ["| simulated, s | deployed, s | ratio | ledgers, MB |", "| --: | --: | --: | --: |"]
    return "\n".join([head, "", *columns, *rows, "", f"Median ratio: {found['ratio']:.2f}."])


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.deployed", description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="runs of each kind (default 3)")
    parser.add_argument("--rounds", type=int, metavar="T", help="rounds of a run (default: the method's own)")
    parser.add_argument("--data", default="mnist", metavar="SOURCE", help="as in tacit train (default mnist)")
    parser.add_argument("--before", metavar="DIR", type=Path, help="another checkout, built in place")
    parser.add_argument("--instance", default="mnist", choices=("mnist", "femnist", "femnist195"), help="with --before")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    chosen = parser.parse_args(words)
    if chosen.before is not None:
        say = partial(print, file=sys.stderr, flush=True)
        ratios = against(chosen.before.resolve(), chosen.instance, chosen.rounds or 20, chosen.repeat, say)
        print(json.dumps(ratios) if chosen.json else f"median of now over before: {ratios['ratio']:.3f}")
        return
    arguments = ["--data", chosen.data, *(["--rounds", str(chosen.rounds)] if chosen.rounds else [])]
    found = measure(arguments, chosen.repeat, lambda pair: print(pair, file=sys.stderr, flush=True))
    print(json.dumps(found) if chosen.json else markdown(found))


if __name__ == "__main__":
    main()
