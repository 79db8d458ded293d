"""python -m benchmarks.peers: measure what is missing in peers.jsonl, and show the table."""

from __future__ import annotations

import argparse
import itertools
import json
import re
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks import machine, report
from benchmarks.peers import budget_table, budgets, table
from benchmarks.peers.budgets import read
from benchmarks.peers.child import ask
from benchmarks.peers.peer import ON_TABLES, PEERS, find
from benchmarks.peers.task import NoData, check_there

RESULTS = Path(__file__).parent.parent / "peers.jsonl"
TUNING = Path(__file__).with_name("tuning.jsonl")
DOCUMENT = RESULTS.parent.parent / "docs" / "peers.md"
DATA = ("mnist", "adult")
SEEDS = 3


def main(argv: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(argv)
    known, all_data = (ON_TABLES, budgets.DATA) if options.tables else (PEERS, DATA)
    for flag, given, valid in (("--only", options.only, known), ("--data", options.data, all_data)):
        if given is not None and given not in valid:
            parser.error(f"{flag} {given} is for the other comparison: with{'' if options.tables else 'out'} --tables "
                         f"choose from {', '.join(valid)}.")  # fmt: skip
    data = [options.data] if options.data else list(all_data)
    names = [options.only] if options.only else list(known)
    if not (options.table or options.write):
        for own in data:
            try:
                check_there(own, options.adult)
            except NoData as error:
                rest = [other for other in all_data if other != own]
                parser.error(f"{error} Or leave it out: --data {' or '.join(rest)}.")
    if options.tables:
        return tables(options, names, data)
    out = options.out or RESULTS
    if options.write:
        write(report.MEASURED, table.markdown(table.current(read(out))))
        return 0
    if options.tune:
        return tune(options.tune, data, options.adult)
    if not options.table:
        if options.fresh:
            out.unlink(missing_ok=True)
        measure(names, data, options.seeds or SEEDS, options.adult, out)
    rows = [row for row in table.current(read(out)) if row["peer"] in names and row["data"] in data]
    print(json.dumps(rows) if options.json else table.markdown(rows))
    return 0


def tables(options: argparse.Namespace, names: Sequence[str], data: Sequence[str]) -> int:
    """The same for tables at several budgets."""
    out = options.out or budgets.RESULTS
    if options.write:
        write(budget_table.MEASURED, budget_table.markdown(budgets.current(read(out))))
        return 0
    if not options.table:
        if options.fresh:
            out.unlink(missing_ok=True)
        epsilons = options.epsilon or budgets.EPSILONS
        budgets.measure(_installed(names), data, epsilons, options.seeds or budgets.SEEDS, options.adult, out)
    rows = [row for row in budgets.current(read(out)) if row["peer"] in names and row["data"] in data]
    print(json.dumps(rows) if options.json else budget_table.markdown(rows))
    return 0


def write(marked: re.Pattern[str], text: str) -> None:
    """Put a table between its markers in the document."""
    page = DOCUMENT.read_text(encoding="utf-8")
    DOCUMENT.write_text(marked.sub(lambda found: f"{found[1]}\n{text}\n{found[2]}", page), encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description="What a user would pick instead.")
    every, all_data = {**PEERS, **ON_TABLES}, list(dict.fromkeys((*DATA, *budgets.DATA)))
    parser.add_argument("--tables", action="store_true", help="the other comparison: tables at several budgets")
    parser.add_argument("--only", metavar="NAME", choices=every, help=f"one tool: {', '.join(every)}")
    parser.add_argument("--data", choices=all_data, help="one data set; default all of the comparison")
    parser.add_argument("--adult", metavar="DIR", help="where train.csv(.gz) and test.csv(.gz) of UCI Adult are")
    parser.add_argument(
        "--seeds", type=int, metavar="N", help=f"runs of each (default {SEEDS}; {budgets.SEEDS} of --tables)"
    )
    parser.add_argument(
        "--epsilon", type=float, action="append", metavar="E", help="--tables: a budget (default 0.5, 1, 3 and 8)"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="rows; those there are not run again")
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
    """What a process of its own finds with each of these constants."""
    return ask(name, data, adult, [{"seed": seed, "constants": own, "validate": validate} for own in constants])


def _key(row: dict[str, Any]) -> str:
    """A run is known by its tool, data, seed and constants."""
    return json.dumps([row[part] for part in ("peer", "data", "seed", "constants")], sort_keys=True)


def append(path: Path, row: dict[str, Any]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
