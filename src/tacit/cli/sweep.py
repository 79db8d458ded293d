"""Run every combination of the lists in a TOML file. Runs over the same data share their passes.

a grid is a spec in which any value may be a list:
  [data]
  source = "mnist"
  [algorithm]
  name = ["objt", "objp", "outp"]
  [privacy]
  epsilon = [0.05, 0.1, 1]
  [run]
  preset = "released"
  rounds = 1000
  seed = [0, 1, 2]

A sweep that was stopped goes on where it stopped: run the same command again.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tacit import jsontext
from tacit.cli.folding import say
from tacit.cli.options import finish
from tacit.cli.progress import Progress
from tacit.cli.table import table
from tacit.jsontext import Values
from tacit.measures import ERROR, judge


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tacit sweep`."""
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="the grid, see below")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where to write (default runs/FILE's name)")
    parser.add_argument("--plan", action="store_true", help="list the runs, and stop")
    finish(parser, __doc__, run)


def run(options: argparse.Namespace) -> int:
    """Run the grid, and print a line for each run."""
    from tacit.run import sweep

    members = sweep.read(options.config)
    out = options.out or Path("runs") / options.config.stem
    rounds = sum(member.spec.run.rounds for member in members)
    if not options.quiet or options.plan:
        say(f"{len(members)} runs, {rounds} rounds in all, in {out}", file=sys.stderr)
    if options.plan:
        print("\n".join(member.name for member in members))
        return 0
    with Progress(rounds, options) as progress:
        records = sweep.run(members, out, progress)
    names = dict.fromkeys(measure.name for measure in map(judge, records) if measure)
    head = ("run", " or ".join(names) or "test error", "averaged", "seconds", "")
    print(jsontext.dumps(records) if options.json else table(head, map(_cells, records), right=head[1:4]))
    if not options.quiet:
        if any(record.get("epsilon") is not None for record in records):
            say("each guarantee is of its run alone: on the same records their costs compose", file=sys.stderr)
        say(f"records in {out / 'records.jsonl'}", file=sys.stderr)
    return 0


def _cells(record: Values) -> tuple[str, ...]:
    if "diverged" in record:
        return (record["name"], "-", "-", "-", record["diverged"])
    measure = judge(record) or ERROR
    shown = (measure.shown(record.get(key)) for key in (measure.key, measure.averaged))
    return (record["name"], *shown, f"{record['seconds']:.1f}", "")
