"""Tune and run methods at the same total budget, and print a leaderboard. Flags win over --config.

examples:
  tacit compare --list                               every method, and what it declares
  tacit compare --data mnist --agents 10 --epsilon 1 --methods objt,fedgd --seeds 5
  tacit compare --data mnist --epsilon inf           without noise
  tacit compare --data mnist --trust sum             methods that need sums alone, behind a secure sum
  tacit compare --config leaderboard.toml

a file has two sections, and epsilon may be a list:
  [compare]
  data = "mnist"
  agents = 10
  epsilon = [0.5, 1, 3, 8]
  dp_delta = 1e-6
  methods = ["objt", "fedgd"]
  trust = "sum"                                      behind a secure sum; methods that cannot are refused
  seeds = 5
  rounds = 100                                       the most that a method may take
  [data]                                             any key of [data], see tacit train --keys

A comparison that was stopped goes on where it stopped: run the same command again.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tacit import jsontext
from tacit.cli.folding import say
from tacit.cli.options import DATA_FLAGS, add_spec_flags, assignments, finish, given
from tacit.cli.table import table
from tacit.errors import MissingDependency, SpecError
from tacit.jsontext import Values


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tacit compare`."""
    add_spec_flags(parser, DATA_FLAGS, config="a TOML file with all of this, see below", keys="any key of [data]")
    parser.add_argument("--epsilon", metavar="E,...", help="total budgets (default 1); inf adds no noise")
    parser.add_argument("--dp-delta", type=float, metavar="D", help="delta of the budgets (default 1e-6)")
    parser.add_argument("--methods", metavar="NAME,...", help="which to run (default: all; see --list)")
    parser.add_argument("--trust", metavar="WHOM", help="sum: put every method behind a secure sum (default: each as "
                        "its name says)")  # fmt: skip
    parser.add_argument("--seeds", type=int, metavar="N", help="runs of each method that are reported (default 5)")
    parser.add_argument("--rounds", type=int, metavar="T", help="the most that a method may take (default: its own)")
    parser.add_argument("--engine", metavar="NAME", help="fast (default), or mpi over the ranks of mpiexec")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where to write (default runs/compare-DATA)")
    parser.add_argument("--markdown", action="store_true", help="print tables of Markdown")
    parser.add_argument("--plan", action="store_true", help="say what would be run, and stop")
    parser.add_argument("--list", action="store_true", help="list the methods, and stop")
    finish(parser, __doc__, run)


def run(options: argparse.Namespace) -> int:
    """Run a comparison, and print its leaderboard."""
    from tacit.compare import comparison
    from tacit.compare.plan import plan
    from tacit.leaderboard import table as board
    from tacit.leaderboard.table import markdown
    from tacit.methods.method import TRIALS

    if options.list:
        _list(options.json)
        return 0
    wanted = plan(_values(options))
    name = options.config.stem if options.config else f"compare-{Path(wanted.base.data.source).stem}"
    out = options.out or Path("runs") / name
    if options.plan:
        say("\n".join(comparison.outline(wanted, out)))
        return 0
    rows = board.rows(comparison.run(wanted, out, (lambda _record: None) if options.quiet else _tell))
    drawn = _draw(rows, wanted.base.data.source, out)
    rule, cautions = board.rule(TRIALS, wanted.seeds, wanted.rounds), board.NOT_ACCOUNTED
    if options.json:
        print(jsontext.dumps({"rows": rows, "tuning": rule, "not_covered": cautions, "out": str(out)}))
    else:
        if options.markdown:
            print(markdown(rows))
        else:
            _say(rows)
        say("\n".join([f"tuning: {rule}", *(f"not covered: {caution}" for caution in cautions)]))
    if not options.quiet:
        say(f"records in {out / 'records.jsonl'}, {drawn}", file=sys.stderr)
    return 0


def _say(rows: list[Values]) -> None:
    """Print one table for each budget, and each guarantee once below it."""
    from tacit.leaderboard import table as board

    for n, (budget, own) in enumerate(board.by_budget(rows)):
        say(f"\n{budget}" if n else budget)
        head, brief = board.heads(own), [board.cells(row) for row in own]
        chosen = [[line[n] for n in board.BRIEF] for line in (head, *brief)]
        print(table(chosen[0], chosen[1:], right=board.NUMBERS))
        found = board.guarantees(own)
        for guarantee, methods in found:
            say(f"{'all methods' if len(found) == 1 else ', '.join(methods)}: {guarantee}")
    say("\n".join(["", *board.notes(rows)]))


def _values(options: argparse.Namespace) -> Values:
    from tacit.compare.plan import read

    values = read(options.config) if options.config else {}
    values |= given(options, DATA_FLAGS) | assignments(options.set)
    others = ("dp_delta", "trust", "seeds", "rounds", "engine")
    values |= {key: said for key in others if (said := getattr(options, key)) is not None}
    if options.epsilon is not None:
        values["epsilon"] = [_number(one) for one in options.epsilon.split(",")]
    if options.methods is not None:
        values["methods"] = [one.strip() for one in options.methods.split(",")]
    return values


def _number(said: str) -> float:
    try:
        return float(said)
    except ValueError:
        raise SpecError(f"--epsilon takes numbers, or inf, with commas between them: got {said!r}.") from None


def _tell(record: Values) -> None:
    """Print the record of a job that has ended."""
    from tacit.leaderboard.table import measure_of

    chosen = " ".join(f"{name}={value:g}" for name, value in record["choice"].items())
    measure = measure_of(record)
    error = record["failed"] or f"{measure.name} {measure.shown(record['error'])}, {record['seconds']:.1f} s"
    epsilon = "inf" if record["budget_epsilon"] is None else f"{record['budget_epsilon']:g}"  # JSON has no infinity
    job = f"epsilon {epsilon}  {record['method']}  {record['role']} {chosen} seed={record['seed']}"
    say(f"{job}: {error}", file=sys.stderr)


def _draw(rows: list[Values], source: str, out: Path) -> str:
    """Draw one figure for each budget, and say where the figures are, or what to install for them."""
    from tacit.report.leaderboard import dots

    try:
        from tacit.report.figures import draw_dots
    except MissingDependency as error:
        return f"no figure: {error}"
    paths = []
    for epsilon, chart in dots(rows, Path(source).stem):
        paths.append(out / f"error-epsilon{epsilon:g}.svg")
        draw_dots(chart, paths[-1])
    return ", ".join(map(str, paths)) or "no figure"


def _list(as_json: bool) -> None:
    from tacit.compare.listing import listing

    methods = listing()
    if as_json:
        print(jsontext.dumps(methods))
        return
    size = max(len(method["name"]) for method in methods)
    for method in methods:
        say(f"{method['name']:<{size}}  {method['about']}", hang=size + 2)
        trusts = f"; {method['events']}; trusts {method['trusted']}" if method["private"] else ""
        say(f"{'':<{size}}  {method['guarantee']}{trusts}", hang=size + 2)
