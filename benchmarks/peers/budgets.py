"""Tables at several budgets: every tool is tuned, and run, on the same records, into records that resume.

A tool with a grid is tuned at every budget on a part of the training records, and for heart in every split on a part of
that split's training records: no test record decides a constant. Error and AUC count alike, for the table shows both.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks import machine
from benchmarks.peers import child, task
from benchmarks.peers.peer import ON_TABLES, Peer, find

RESULTS = Path(__file__).parent.parent / "peer-tables.jsonl"
DATA = ("adult", "heart")
EPSILONS = (0.5, 1.0, 3.0, 8.0)
SEEDS = 5
TRIAL_SEEDS = (1000, 1001)  # of no reported run

Row = dict[str, Any]
ASKED = ("role", "asked_epsilon", "split", "seed", "constants")  # what a job is known by, beside its tool and data


def measure(
    names: Sequence[str], data: Sequence[str], epsilons: Sequence[float], seeds: int, adult: str | None, out: Path
) -> None:
    """Every run that `out` does not hold yet, and the trials before it."""
    for own in data:
        loaded = task.load(own, adult)
        for name in names:
            kept = Records(out, name, own, mark_of(find(name), loaded), adult)
            measure_one(kept, epsilons if find(name).private else (None,), seeds)


def measure_one(
    kept: Records, epsilons: Sequence[float | None], seeds: int, private_trial_seeds: Sequence[int] = TRIAL_SEEDS
) -> None:
    """The trials of one tool on one data set in one process, and then the runs in another; a split is loaded once."""
    peer, several = find(kept.name), kept.data == "heart"  # heart has a split a seed; Adult has a test set of its own
    splits, grid = range(seeds) if several else (0,), points(peer)
    tried: list[Row] = []
    if len(grid) > 1:
        trial_seeds = private_trial_seeds if peer.private else (0,)
        every = itertools.product(splits, epsilons, grid, trial_seeds)
        tried = kept.settle(_job("trial", epsilon, split, seed, point) for split, epsilon, point, seed in every)

    def best(split: int, epsilon: float | None) -> Row:
        return choose([r for r in tried if (r["split"], r["asked_epsilon"]) == (split, epsilon)]) or grid[0]

    again = seeds if peer.private or several else 1  # without noise a run repeats itself
    every_run = [(seed if several else 0, seed, epsilon) for seed in range(again) for epsilon in epsilons]
    kept.settle(_job("run", epsilon, split, seed, best(split, epsilon)) for split, seed, epsilon in every_run)


def points(peer: Peer) -> list[Row]:
    """Every combination of the constants of a grid."""
    return [dict(zip(peer.grid, point, strict=True)) for point in itertools.product(*peer.grid.values())]


def choose(tried: Sequence[Row]) -> Row | None:
    """The constants whose trials have the least mean of error + 1 - AUC; the first of equals."""
    rows: dict[str, list[Row]] = {}
    for row in tried:
        rows.setdefault(json.dumps(row["constants"]), []).append(row)
    if not rows:
        return None
    least = min(rows, key=lambda key: mean(row["test_error"] + 1 - (row["auc"] or 0) for row in rows[key]))
    return rows[least][0]["constants"]  # type: ignore[no-any-return]


def mark_of(peer: Peer, loaded: task.Task) -> str:
    """A hash of what decides a run beside its job: schema, feature map, settings. Another mark, and it is run again."""
    text = json.dumps([loaded.over.schema, loaded.over.recipe, dict(peer.settings())], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _job(role: str, epsilon: float | None, split: int, seed: int, constants: Row) -> Row:
    """A job as the child takes it, which reads `epsilon` and `validate`."""
    return {
        "role": role, "asked_epsilon": epsilon, "split": split, "seed": seed, "constants": constants,
        "epsilon": epsilon, "validate": role == "trial",
    }  # fmt: skip


class Records:
    """The rows of one tool on one data set in a file; what is there is not run again."""

    def __init__(self, out: Path, name: str, data: str, mark: str, adult: str | None) -> None:
        self.out, self.name, self.data, self.mark, self.adult = out, name, data, mark, adult

    def settle(self, jobs: Iterable[Row]) -> list[Row]:
        """The rows of these jobs that there are, after those that are missing were run in one process."""
        jobs = list(jobs)
        known = self._known()
        left = [job for job in jobs if _key(job) not in known]
        load = machine.facts()["load_at_start"] if left else None
        versions = find(self.name).versions() if left else {}
        whose = {"peer": self.name, "data": self.data, "mark": self.mark}
        for job, found in zip(left, child.ask(self.name, self.data, self.adult, left) if left else (), strict=False):
            row = whose | {part: job[part] for part in ASKED} | found | {"load_at_start": load, "versions": versions}
            with self.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            if job["role"] == "run":
                at = "no privacy" if job["epsilon"] is None else f"epsilon {job['epsilon']:g}"
                says = f"error {row['test_error']:.4f}" + ("" if row["auc"] is None else f", AUC {row['auc']:.4f}")
                print(f"{self.name}, {self.data}, {at}, seed {job['seed']}: {says}", file=sys.stderr, flush=True)
        known = self._known()
        return [known[_key(job)] for job in jobs if _key(job) in known]

    def _known(self) -> dict[str, Row]:
        whose = (self.name, self.data, self.mark)
        return {_key(row): row for row in read(self.out) if (row["peer"], row["data"], row["mark"]) == whose}


def _key(job: Row) -> str:
    return json.dumps([job[part] for part in ASKED], sort_keys=True)


def read(path: Path) -> list[Row]:
    """All rows."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def current(rows: Sequence[Row]) -> list[Row]:
    """The runs of each tool and data set that have the mark of its latest row; of two equal runs, the later.

    Runs of one seed at one budget are equal, whichever constants its tuning led to: the later tuning counts.
    """
    marks = {(row["peer"], row["data"]): row["mark"] for row in rows}
    runs = [row for row in rows if row["role"] == "run" and marks[row["peer"], row["data"]] == row["mark"]]
    latest = {(row["peer"], row["data"], row["asked_epsilon"], row["seed"]): row for row in runs}
    return [row for row in latest.values() if row["peer"] in ON_TABLES]
