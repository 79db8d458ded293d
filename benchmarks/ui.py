"""How long the live page takes: 1,000 runs with results and ledgers beside them, and histories of 20,000 rounds.

    python -m benchmarks.ui [RUNS] [ROUNDS]

A real server and, where there is one, a real Chromium. `first` is the first time, `again` the median of the next ten.
Questions come first, when the server has read no file yet; pages come after them, so their files were read before.
A page counts as shown once its rows or charts are in the document.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.ui.browser import CHROMIUM, chromium
from tests.ui.serving import Served, serving, write_run

from tacit.run.presets import preset
from tacit.run.train import train

AGAIN = 10
SMALL = {"data.source": "synthetic", "data.records": 200, "data.agents": 10, "run.rounds": 100}


def fill(root: Path, runs: int, rounds: int) -> None:
    """Make one real run, copies of it, two long histories and one long history with a result."""
    train(preset("sound", "objt").with_values(SMALL), out=root / "grid-0" / "run-0")
    for n in range(1, runs):
        shutil.copytree(root / "grid-0" / "run-0", root / f"grid-{n % 20}" / f"run-{n}",
                        ignore=shutil.ignore_patterns("ledgers") if n % 10 else None)  # fmt: skip
    keys = ("test_error_averaged", "consensus_violation", "noise_gradient_units", "noise_parameter_units", "rho")
    for name in ("long-a", "long-b"):
        folder = write_run(root / name, rounds=rounds, done=0)
        with (folder / "rounds.jsonl").open("w") as file:
            for t in range(1, rounds + 1):
                row = {"t": t, "test_error": 1 / t, "objective": 2 / t, **dict.fromkeys(keys, 1.5 / t)}
                row |= {f"seconds_{part}": 0.001 * t for part in ("gradient", "noise", "step", "evaluation")}
                file.write(json.dumps(row) + "\n")


def timed(action: Callable[[], object]) -> tuple[float, float]:
    """Return the milliseconds of the first time, and the median of the next."""
    taken = []
    for _ in range(AGAIN + 1):
        start = time.perf_counter()
        action()
        taken.append(1000 * (time.perf_counter() - start))
    return taken[0], statistics.median(taken[1:])


def questions(server: Served) -> dict[str, tuple[float, float]]:
    """Time every question that the page asks."""
    found = {"list": timed(lambda: server.ask("/api/list"))}
    found["list, filtered"] = timed(lambda: server.ask("/api/list", words="grid-7", state="finished", order="error"))
    listed = {row["name"]: row["id"] for row in server.ask("/api/list", words="long").told["rows"]}
    run = server.ask("/api/list", words="grid-0/run-0").told["rows"][0]["id"]
    for name, one in (("a run", run), ("a long run", listed["long-a"])):
        for path in ("item", "more", "budgets"):
            found[f"{name}: {path}"] = timed(lambda path=path, one=one: server.ask(f"/api/{path}", id=one))
    found["two long runs: compare"] = timed(lambda: server.ask("/api/compare", id=list(listed.values())))
    return found | {"list, once more": timed(lambda: server.ask("/api/list"))}


def pages(server: Served, profile: Path) -> dict[str, tuple[float, float]]:
    """Time what a person waits for, from the address to the rows or the charts."""
    listed = {row["name"]: row["id"] for row in server.ask("/api/list", words="long").told["rows"]}
    run = server.ask("/api/list", words="grid-0/run-0").told["rows"][0]["id"]
    with chromium(profile) as tab:
        tab.size(1280)
        tab.open(server.link)
        tab.wait("document.querySelector('tbody tr')")
        rows, charts = "document.querySelector('tbody tr')", "document.querySelector('figure svg')"
        shown = {"": rows, f"item/{run}": charts, f"item/{listed['long-a']}": charts,
                 f"compare/{','.join(listed.values())}": charts}  # fmt: skip
        names = ("page: list", "page: a run", "page: a long run", "page: two long runs compared")

        def show(hash: str, there: str) -> None:
            tab.open(f"{server.link.partition('#')[0]}#/{hash}")
            tab.wait(there)

        return {name: timed(lambda at=at: show(*at)) for name, at in zip(names, shown.items(), strict=True)}


def main(runs: int = 1000, rounds: int = 20_000) -> None:
    with tempfile.TemporaryDirectory() as made:
        root = Path(made) / "runs"
        root.mkdir()
        fill(root, runs, rounds)
        with serving(root) as server:
            found = questions(server)
            found |= pages(server, Path(made) / "chromium") if CHROMIUM else {}
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"  # what others do here slows a page down too
    print(f"{runs} runs, histories of {rounds} rounds; milliseconds; {load}\n{'':32}{'first':>8}{'again':>8}")
    for name, (first, again) in found.items():
        print(f"{name:32}{first:8.0f}{again:8.0f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
