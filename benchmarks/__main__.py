"""python -m benchmarks: measure, and say what was found."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks import deployed, growth, instances, machine, report, tables
from benchmarks.before import NotACheckout, checkout, commit, workers
from benchmarks.contenders import Player, Rounds, compare, contenders
from benchmarks.roofline import draws_per_second, roofline
from tacit.engine.fast import FastEngine
from tacit.run.spec import Spec
from tacit.types import Federation

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
DOCUMENT = HERE.parent / "docs" / "performance.md"

TABLE = 10_000_000  # records of the table that is read
ALL = ("naive", "naive64", "plain", "fast", "fast10")
DENSE = ("naive", "fast", "fast10", "read")
RATIOS = {  # key -> instance, contender
    "mnist_single": ("mnist", "fast"),
    "mnist_sweep10": ("mnist", "fast10"),
    "femnist_single": ("femnist", "fast"),
    "femnist195_single": ("femnist195", "fast"),
    **{f"{name}_single": (name, "fast") for name in instances.DENSE},
}

Load = Callable[[], tuple[Spec, Federation]]


def main(argv: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(argv)
    if options.write:
        if not RESULTS.exists():
            parser.error(f"{RESULTS.name} does not exist yet: measure first, without --write.")
        results = json.loads(RESULTS.read_text())
        DOCUMENT.write_text(report.insert(DOCUMENT.read_text(), results))
        return 0
    start = time.perf_counter()

    def say(what: str) -> None:
        print(f"{time.perf_counter() - start:6.1f} s  {what}", file=sys.stderr, flush=True)

    try:
        before = None if options.before is None else checkout(options.before)
        measure = quick if options.quick else full
        results = measure(options.femnist, before, say)
    except NotACheckout as error:
        parser.error(str(error))
    if before is not None:
        results["before"] = commit(before)
    results["seconds"] = round(time.perf_counter() - start, 1)
    if not options.quick:
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(json.dumps(results) if options.json else report.markdown(results))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Ratios measured side by side.")
    parser.add_argument("--quick", action="store_true", help="the ratios alone, in under a minute; writes no file")
    parser.add_argument("--json", action="store_true", help="print JSON in place of tables")
    parser.add_argument("--before", metavar="DIR", help="another checkout, built in place: its engine plays too")
    parser.add_argument("--femnist", metavar="DIR", help="a LEAF directory to use in place of FEMNIST-shaped data")
    parser.add_argument("--write", action="store_true", help="measure nothing: put results.json into the document")
    return parser


def quick(femnist: str | None, before: Path | None, say: Callable[[str], None]) -> dict[str, Any]:
    """The ratios of the targets."""
    results: dict[str, Any] = {"machine": machine.facts(), "startup": machine.startup(3), "instances": {}}
    wanted: dict[str, tuple[Load, tuple[str, ...]]] = {
        "mnist": (instances.mnist, ("naive", "plain", "fast", "fast10")),
        "femnist": (lambda: instances.femnist("femnist", femnist), ("naive", "fast")),
        "dense392": (lambda: instances.dense("dense392"), ("naive", "fast", "read")),
    }
    for name, (load, names) in wanted.items():
        say(f"{name}: {', '.join(names)}")
        _, results["instances"][name] = _play(load, names, before, seconds=6)
    return _with_ratios(results)


def full(femnist: str | None, before: Path | None, say: Callable[[str], None]) -> dict[str, Any]:
    """Every contender on every instance, the roofline, growth, deployment and reading."""
    results: dict[str, Any] = {"machine": machine.facts(), "startup": machine.startup(), "instances": {}}
    say("limits of the machine")
    results["limits"] = limits = machine.limits() | {"draws_per_s": draws_per_second()}
    results["roofline"] = {}
    torch = ("torch",) if find_spec("torch") else ()
    wanted: dict[str, tuple[Load, tuple[str, ...]]] = {
        "mnist": (instances.mnist, (*ALL, *torch)), "femnist": (lambda: instances.femnist("femnist", femnist), ALL),
    }  # fmt: skip
    if femnist is None:
        wanted["femnist195"] = (lambda: instances.femnist("femnist195"), ALL)
    wanted |= {name: (partial(instances.dense, name), DENSE) for name in instances.DENSE}
    wanted["dense392"] = (partial(instances.dense, "dense392"), (*DENSE, *torch))
    for name, (load, names) in wanted.items():
        say(f"{name}: {', '.join(names)}")
        players, results["instances"][name] = _play(load, names, before, seconds=30)
        for own in ("fast", "fast10"):
            player = players.pop(own)
            if isinstance(player, Rounds) and isinstance(player.engine, FastEngine):
                results["roofline"][f"{name}, {own}"] = roofline(player, limits)
        del players, player
    results["growth"] = growth.everything(20, say)
    say("deployed agents")
    results["deployed"] = deployed.measure(["--data", "mnist"], 3, lambda pair: say(f"{pair.ratio:.2f}"))
    results["tables"] = tables.measure(TABLE, 30, 2, say)
    return _with_ratios(results)


def _play(
    load: Load, names: Sequence[str], before: Path | None, seconds: float
) -> tuple[dict[str, Player], dict[str, Any]]:
    """One instance: who played, and what was found."""
    spec, over = load()
    with workers(before, spec, over) as apart:
        players = contenders(spec, over, names, apart)
        return players, compare(players, over, seconds)


def _with_ratios(results: dict[str, Any]) -> dict[str, Any]:
    found = {
        key: results["instances"][name]["contenders"][contender]["ratio"]
        for key, (name, contender) in RATIOS.items()
        if name in results["instances"]
    }
    return found | results


if __name__ == "__main__":
    sys.exit(main())
