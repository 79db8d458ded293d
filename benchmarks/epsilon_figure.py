"""python -m benchmarks.epsilon_figure: the README's figure, test error on MNIST against the total epsilon of a run.

Lines of tacit come from records/. Runs of others that epsilon-figure.jsonl does not hold yet are made first: their
constants are tuned at every budget on a sixth of the training records. --draw makes no run.
"""

from __future__ import annotations

import argparse
import json
import re
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
FIGURE = ROOT / "docs" / "img" / "epsilon-mnist.svg"
PAGE, MARKED = ROOT / "docs" / "peers.md", re.compile(r"(<!-- epsilon -->).*?(<!-- /epsilon -->)", re.DOTALL)
RESULTS = Path(__file__).with_name("epsilon-figure.jsonl")
RUNS = {"diffprivlib-budgets": ("mnist",), "naive-budgets": ("mnist-pixels", "mnist")}  # tool -> data
EPSILONS = (0.5, 1.0, 3.0, 8.0)
SEEDS, TRIAL_SEEDS = 3, (1000,)  # a trial has a seed of no reported run

Errors = dict[float, list[float]]  # epsilon -> test error of each seed, in per cent


@dataclass(frozen=True)
class Curve:
    """One line of the figure: a name, who is trusted, and errors by total epsilon."""

    name: str
    trusts: str
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


def chosen(rows: Sequence[dict[str, Any]], grid: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The runs of one tool with the constants that its trials on the grid of today choose; others stay in the file."""
    found = []
    for epsilon in EPSILONS:
        at = [row for row in rows if row["asked_epsilon"] == epsilon]
        best = budgets.choose([row for row in at if row["role"] == "trial" and row["constants"] in grid])
        found += [row for row in at if row["role"] == "run" and row["constants"] == best]
    return found


def curves(out: Path) -> dict[str, Curve]:
    """Every line of the figure, by a short name."""
    rows = read(out)
    board = read(ROOT / "records" / "leaderboard-mnist" / "records.jsonl")
    curator = [row for row in board if (row["role"], row["method"]) == ("run", "dpsgd")]

    def other(peer: str, data: str) -> Errors:
        of_peer = [row for row in rows if (row["peer"], row["data"]) == (peer, data)]
        return by_epsilon(chosen(of_peer, budgets.points(find(peer))), "asked_epsilon", "test_error")

    def own(name: str) -> Errors:
        return by_epsilon(read(ROOT / "records" / name), "privacy.epsilon", "test_error")

    return {
        "paper": Curve("the paper's ObjT on pixels (not private)", "nobody", other("naive-budgets", "mnist-pixels")),
        "paper-features": Curve("the same on tacit's features", "nobody", other("naive-budgets", "mnist")),
        "diffprivlib": Curve("diffprivlib, LogisticRegression", "a curator", other("diffprivlib-budgets", "mnist")),
        "alone": Curve("tacit", "nobody", own("sound-mnist.jsonl")),
        "sum": Curve("tacit behind a secure sum", "a secure sum", own("sum-mnist.jsonl")),
        "curator": Curve("DP-SGD", "a curator", by_epsilon(curator, "budget_epsilon", "error")),
    }  # fmt: skip


def table(found: Mapping[str, Curve]) -> str:
    """The means in per cent, as Markdown."""
    heads = " | ".join(f"epsilon {epsilon:g}" for epsilon in EPSILONS)
    lines = [f"| | trusts | {heads} |", "|---|---|" + "---|" * len(EPSILONS)]
    for curve in found.values():
        cells = [f"{mean(curve.errors[epsilon]):.2f} %" if epsilon in curve.errors else "" for epsilon in EPSILONS]
        lines.append(f"| {curve.name} | {curve.trusts} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, say every mean, draw."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.epsilon_figure", description=__doc__)
    parser.add_argument("--draw", action="store_true", help="make no run")
    parser.add_argument("--figure", type=Path, default=FIGURE, metavar="FILE", help="where to draw")
    parser.add_argument("--write", action="store_true", help="put the means into docs/peers.md as well")
    parser.add_argument("--no-draw", action="store_true", help="draw nothing: matplotlib is not needed")
    parser.add_argument("--seeds", type=int, default=SEEDS, metavar="N", help=f"runs at each epsilon (default {SEEDS})")
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="FILE", help="rows; those there are not run again")
    options = parser.parse_args(argv)
    if not options.draw:
        measure(options.out, options.seeds)
    found = curves(options.out)
    print(table(found))
    if not options.no_draw:
        from benchmarks.epsilon_drawing import draw

        draw(found, options.figure)
    if options.write:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(MARKED.sub(lambda old: f"{old[1]}\n{table(found)}\n{old[2]}", page), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
