"""python -m benchmarks.peers: measure what is missing in peers.jsonl, and show the table."""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks import machine, report
from benchmarks.peers import table
from benchmarks.peers.child import FOUND
from benchmarks.peers.peer import PEERS, find
from benchmarks.peers.task import NoData, find_adult

RESULTS = Path(__file__).parent.parent / "peers.jsonl"
TUNING = Path(__file__).with_name("tuning.jsonl")
DOCUMENT = RESULTS.parent.parent / "docs" / "peers.md"
DATA = ("mnist", "adult")


def main(argv: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(argv)
    data = [options.data] if options.data else list(DATA)
    if options.write:
        text = table.markdown(table.current(read(options.out)))
        DOCUMENT.write_text(report.MEASURED.sub(lambda found: f"{found[1]}\n{text}\n{found[2]}", DOCUMENT.read_text()))
        return 0
    if not options.table and "adult" in data:
        try:
            find_adult(options.adult)
        except NoData as error:
            parser.error(f"{error} Or leave Adult out: --data mnist.")
    if options.tune:
        return tune(options.tune, data, options.adult)
    names = [options.only] if options.only else list(PEERS)
    if not options.table:
        if options.fresh:
            options.out.unlink(missing_ok=True)
        measure(names, data, options.seeds, options.adult, options.out)
    rows = [row for row in table.current(read(options.out)) if row["peer"] in names and row["data"] in data]
    print(json.dumps(rows) if options.json else table.markdown(rows))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description="What a user would pick instead.")
    parser.add_argument("--only", metavar="NAME", choices=PEERS, help=f"one tool: {', '.join(PEERS)}")
    parser.add_argument("--data", choices=DATA, help="one data set; default both")
    parser.add_argument("--adult", metavar="DIR", help="where train.csv(.gz) and test.csv(.gz) of UCI Adult are")
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="runs of each (default 3)")
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="FILE", help="rows; those there are not run again")
    parser.add_argument("--fresh", action="store_true", help="forget the rows of FILE first: all in one run")
    parser.add_argument("--json", action="store_true", help="print rows in place of the table")
    parser.add_argument("--table", action="store_true", help="measure nothing: show what FILE holds")
    parser.add_argument("--write", action="store_true", help="measure nothing: put the table of FILE into the document")
    parser.add_argument("--tune", metavar="NAME", choices=PEERS, help="try its grid on a part of the training records")
    return parser


def measure(names: Sequence[str], data: Sequence[str], seeds: int, adult: str | None, out: Path) -> None:
    """Every run that `out` does not hold yet; seed by seed, so that all tools meet the same hours of the machine."""
    done = {_key(row) for row in read(out)}
    for seed, own, name in itertools.product(range(seeds), data, _installed(names)):
        constants = find(name).constants[own]
        if _key({"peer": name, "data": own, "seed": seed, "constants": constants}) in done:
            continue
        start, load = time.perf_counter(), machine.facts()["load_at_start"]
        for row in child(name, own, seed, [constants], adult, validate=False):
            whole = round(time.perf_counter() - start, 3)
            found = {"peer": name, "data": own, "seed": seed, **row, "process_seconds": whole, "load_at_start": load}
            append(out, found | {"versions": find(name).versions()})
            say(f"{name}, {own}, seed {seed}: {row['seconds']:g} s, error {row['test_error']:.4f}")


def tune(name: str, data: Sequence[str], adult: str | None) -> int:
    """The grid of a tool, into tuning.jsonl; the best last. A person puts it into the constants of the tool."""
    peer = find(name)
    grid = [dict(zip(peer.grid, point, strict=True)) for point in itertools.product(*peer.grid.values())]
    for own in data if _installed([name]) else ():
        rows = []
        for row in child(name, own, 0, grid, adult, validate=True):
            rows.append({"peer": name, "data": own, "validation_error": row["test_error"], **row["constants"]})
            append(TUNING, rows[-1] | {"seconds": row["seconds"]})
        for row in sorted(rows, key=lambda row: -row["validation_error"]):
            print(json.dumps(row))
    return 0


def _installed(names: Sequence[str]) -> list[str]:
    """Those that can run here; the others are named, with what to install."""
    missing = {name: find(name).missing() for name in names}
    for name, packages in missing.items():
        if packages:
            say(f"{name} is skipped: {' and '.join(packages)} not installed. pip install --editable '.[peers]'")
    return [name for name in names if not missing[name]]


def child(
    name: str, data: str, seed: int, constants: Sequence[Any], adult: str | None, validate: bool
) -> Iterator[dict[str, Any]]:
    """What a process of its own finds; what else the tool prints is not shown unless it fails."""
    asked = {"peer": name, "data": data, "seed": seed, "constants": constants, "adult": adult, "validate": validate}
    command = [sys.executable, "-m", "benchmarks.peers.child", json.dumps(asked)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        said: list[str] = []
        for line in process.stdout:
            if line.startswith(FOUND):
                yield json.loads(line.removeprefix(FOUND))
            else:
                said.append(line)
    if process.returncode:
        say(f"{name} failed on {data}:\n{''.join(said[-20:])}")


def _key(row: dict[str, Any]) -> str:
    """A run is known by its tool, data, seed and constants."""
    return json.dumps([row[part] for part in ("peer", "data", "seed", "constants")], sort_keys=True)


def read(path: Path) -> list[dict[str, Any]]:
    """All rows."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def append(path: Path, row: dict[str, Any]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
