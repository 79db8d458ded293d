"""python -m benchmarks.epsilon_figure: the README's figure, test error on MNIST against the total epsilon of a run.

Lines of tacit come from records/. Runs of others that epsilon-figure.jsonl does not hold yet are made first: their
constants are tuned at every budget on a sixth of the training records. --draw makes no run.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.peers import budgets, task
from benchmarks.peers.peer import find

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).with_name("epsilon-figure.jsonl")
RUNS = {"diffprivlib-budgets": ("mnist",), "naive-budgets": ("mnist-pixels", "mnist")}  # tool -> data
EPSILONS = (0.5, 1.0, 3.0, 8.0)
SEEDS, TRIAL_SEEDS = 3, (1000,)  # a trial has a seed of no reported run

Errors = dict[float, list[float]]  # epsilon -> test error of each seed, in per cent


@dataclass(frozen=True)
class Curve:
    """One line of the figure: a name, who is trusted, and errors by total epsilon."""

    name: str
    note: str
    errors: Errors

    @property
    def means(self) -> dict[float, float]:
        """The mean over seeds at each epsilon, in order."""
        return {epsilon: mean(self.errors[epsilon]) for epsilon in sorted(self.errors)}


def measure(out: Path, seeds: int) -> None:
    """Make every run that `out` does not hold, of the tools that are installed."""
    for name, every in RUNS.items():
        if missing := find(name).missing():
            print(f"{name} is skipped: {' and '.join(missing)} not installed.", file=sys.stderr)
            continue
        for data in every:
            kept = budgets.Records(out, name, data, budgets.mark_of(find(name), task.load(data, None)), None)
            budgets.measure_one(kept, EPSILONS, seeds, TRIAL_SEEDS)


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def by_epsilon(rows: Sequence[Mapping[str, Any]], epsilon: str, error: str) -> Errors:
    """Errors in per cent, by the budget that was asked for."""
    found: Errors = defaultdict(list)
    for row in rows:
        found[row[epsilon]].append(100 * row[error])
    return dict(found)


def curves(out: Path) -> dict[str, Curve]:
    """Every line of the figure, by a short name."""
    others = [row for row in read(out) if row["role"] == "run"]
    board = read(ROOT / "records" / "leaderboard-mnist" / "records.jsonl")
    curator = [row for row in board if (row["role"], row["method"]) == ("run", "dpsgd")]

    def other(peer: str, data: str) -> Errors:
        rows = [row for row in others if (row["peer"], row["data"]) == (peer, data)]
        return by_epsilon(rows, "asked_epsilon", "test_error")

    def own(name: str) -> Errors:
        return by_epsilon(read(ROOT / "records" / name), "privacy.epsilon", "test_error")

    return {
        "paper": Curve("the paper's ObjT", "not private: reads its sensitivity off the data", other("naive-budgets", "mnist-pixels")),
        "diffprivlib": Curve("diffprivlib", "a curator holds all records", other("diffprivlib-budgets", "mnist")),
        "alone": Curve("tacit", "trusts nobody", own("sound-mnist.jsonl")),
        "sum": Curve("tacit, secure sum", "trusts a sum", own("sum-mnist.jsonl")),
        "curator": Curve("DP-SGD", "a curator holds all records", by_epsilon(curator, "budget_epsilon", "error")),
    }  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, say every mean, draw."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.epsilon_figure", description=__doc__)
    parser.add_argument("--draw", action="store_true", help="make no run")
    parser.add_argument("--no-draw", action="store_true", help="draw nothing: matplotlib is not needed")
    parser.add_argument("--seeds", type=int, default=SEEDS, metavar="N", help=f"runs at each epsilon (default {SEEDS})")
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="FILE", help="rows; those there are not run again")
    options = parser.parse_args(argv)
    if not options.draw:
        measure(options.out, options.seeds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
