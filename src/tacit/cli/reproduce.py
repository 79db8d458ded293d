"""Run what is behind the paper's tables and figures, and put its printed numbers beside ours.

examples:
  tacit reproduce                                    everything, quick: the shapes in some minutes
  tacit reproduce fig2 --scale full --plan           what it would run, and for how long
  tacit reproduce all --scale full --femnist data/femnist --records records/paper.jsonl
  tacit reproduce --scale full --records records/paper.jsonl --adopt runs/grid
  tacit reproduce --scale full --records records/paper.jsonl --recorded    the report of the committed records
  tacit reproduce --list

A run that several artefacts share is done once; one that is in the records file is never done again, and a record that
was edited is refused. What was stopped, by kill -9 too, goes on where it stopped: run the same command again. Only a
batch of convergence or trust, some minutes long, starts anew.
Without --femnist, what needs FEMNIST is left out, and said.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tacit import jsontext
from tacit.cli.folding import say
from tacit.cli.options import finish
from tacit.cli.progress import Progress
from tacit.cli.table import table
from tacit.errors import RecordError, SpecError, TacitError
from tacit.jsontext import Values

if TYPE_CHECKING:
    from tacit.paper.archive import Archive
    from tacit.paper.reproduce import Reproduction
    from tacit.report.printed import Comparison
    from tacit.report.source import Source
    from tacit.run.sources import Sources
    from tacit.run.sweep import Member


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tacit reproduce`."""
    parser.add_argument("artefacts", nargs="*", default=["all"], metavar="ARTEFACT", help="all (default), or some of "
                        "table1, fig1 .. fig6, early, long, convergence, trust, privacy, discrepancies, writers, "
                        "gap")  # fmt: skip
    parser.add_argument("--scale", choices=("quick", "full"), default="quick", help="quick (default): fewer rounds and "
                        "seeds, the same shapes; full: the paper's lengths, up to ten seeds")  # fmt: skip
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="batches of runs at a time, each in a process "
                        "of its own (default 1: the fast engine uses every core already)")  # fmt: skip
    parser.add_argument("--resume", action="store_true", help="go on where it stopped; this is the default, and the "
                        "flag changes nothing")  # fmt: skip
    parser.add_argument("--out", type=Path, metavar="DIR", help="where to write (default runs/paper-SCALE)")
    parser.add_argument("--records", type=Path, metavar="FILE", help="the records (default OUT/records.jsonl)")
    parser.add_argument("--femnist", type=Path, metavar="DIR", help="LEAF's FEMNIST, with train/ and test/")
    parser.add_argument("--adopt", type=Path, nargs="+", metavar="DIR", help="record the finished runs under these "
                        "directories (of tacit train or sweep) that an artefact asks for, and stop")  # fmt: skip
    parser.add_argument("--recorded", action="store_true", help="train nothing: write what the records hold "
                        "(the attacks of privacy leave none, and are made anew)")  # fmt: skip
    parser.add_argument("--plan", action="store_true", help="list the runs to do and their cost, and stop")
    parser.add_argument("--list", action="store_true", help="list the artefacts, and stop")
    finish(parser, __doc__, run)


def run(options: argparse.Namespace) -> int:
    """Run what is not recorded, and print the paper's numbers beside ours."""
    from tacit.paper import reproduce
    from tacit.paper.archive import Archive
    from tacit.paper.artefact import Scale, choose, read_all
    from tacit.run.directory import check_writable
    from tacit.run.sources import Sources

    if options.jobs < 1:
        raise SpecError(f"--jobs must be at least 1, got {options.jobs}.")
    if options.plan and options.recorded:
        raise SpecError("--plan lists what would be run, and --recorded runs nothing: give one of them.")
    known = read_all()
    wanted = reproduce.Reproduction(choose(options.artefacts, known), Scale(options.scale))
    if options.list:
        _list(wanted, options.json)
        return 0
    out = options.out or Path("runs") / f"paper-{options.scale}"
    archive = Archive(options.records or out / "records.jsonl")
    sources = Sources(options.femnist, archive.data)
    if options.adopt:
        _adopt(options, wanted, archive)
        return 0
    if not options.plan:
        check_writable(out, "give another --out")
    if options.recorded:
        _require_records(wanted, archive, options.records is not None)
    else:
        if not options.plan:
            check_writable(archive.path.parent, "give another --records")
        waiting = [run for run in wanted.waiting(archive) if sources.has(run[1].spec)]
        cost = _announce(options, wanted, archive, sources, [member for _, member in waiting])
        if options.plan:
            names = [member.name for _, member in waiting]
            facts = {"runs": names, "recorded": wanted.recorded(archive), "seconds": cost}
            print(jsontext.dumps(facts) if options.json else "\n".join(names))
            return 0
        with Progress(sum(member.spec.run.rounds for _, member in waiting), options) as progress:
            reproduce.run(waiting, archive, out, sources, progress, options.jobs)
    _show(options, wanted, known, out, reproduce.write(wanted, archive, out, sources))
    return 0


def _list(wanted: Reproduction, as_json: bool) -> None:
    rows = [
        {"name": one.name, "title": one.title, "about": one.about, "scale": wanted.scale.value,
         "runs": len(one.members(wanted.scale))}
        for one in wanted.artefacts
    ]  # fmt: skip
    told = [f"{row['name']:<14} {row['runs']:>3} runs  {row['title']}" for row in rows]
    if as_json:
        print(jsontext.dumps(rows))
    else:
        say("\n".join(told))


def _adopt(options: argparse.Namespace, wanted: Reproduction, archive: Archive) -> None:
    from tacit.paper import reproduce

    records, left = reproduce.adopt(options.adopt, wanted, archive)
    names = [one["name"] for one in records]
    if options.json:
        print(jsontext.dumps({"adopted": names, **left}))
        return
    say("\n".join([f"adopted {name}" for name in names]))
    say(
        f"{len(names)} adopted into {archive.path}; {left['recorded']} recorded before, {left['unfinished']} not "
        f"finished, {left['foreign']} that no artefact asks for at this scale",
        file=sys.stderr,
    )


def _require_records(wanted: Reproduction, archive: Archive, named: bool) -> None:
    """Refuse to show what is recorded of these artefacts where nothing is, or a file that is `named` and not there."""
    asked = [one for one in wanted.artefacts if one.grid]
    if (asked or named) and not archive.path.exists():
        raise RecordError(f"{archive.path} does not exist: give --records, or leave --recorded out to run it all.")
    if asked and not any(wanted.records(one, archive) for one in asked):
        raise RecordError(
            f"{archive.path} holds {len(archive.records)} records, and none for {', '.join(one.name for one in asked)} "
            f"at the {wanted.scale.value} scale: try the other --scale, or leave --recorded out to run them."
        )


def _announce(
    options: argparse.Namespace, wanted: Reproduction, archive: Archive, sources: Sources, members: Sequence[Member]
) -> float:
    """Say what will be done and what it costs, from a few rounds of the real batches."""
    from tacit.paper import reproduce
    from tacit.run.sources import HOW_TO_GET

    absent = len(wanted.waiting(archive)) - len(members)
    if absent and not options.quiet:
        without = ", ".join(
            one.name for one in wanted.artefacts if any(not sources.has(m.spec) for m in one.members(wanted.scale))
        )
        say(f"skipped: {absent} runs of {without}. {HOW_TO_GET}", file=sys.stderr)
    spent = reproduce.cost(members, sources)
    if not options.quiet or options.plan:
        shared = f" one batch at a time ({options.jobs} jobs share the cores)" if options.jobs > 1 else ""
        about = f", about {_duration(spent)}{shared}" if members else ""
        say(f"{len(members)} runs{about}; {wanted.recorded(archive)} recorded in {archive.path}", file=sys.stderr)
    return spent


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _show(
    options: argparse.Namespace, wanted: Reproduction, known: Iterable[str], out: Path, folders: list[Path]
) -> None:
    """Print the numbers of what was written, and write the page of all that is there, in the order of the `known`."""
    from tacit.report import output, printed, source

    written = {folder.name: source.read(folder) for folder in folders}
    page = out / "report.html" if folders else None
    if page is not None:
        there = [name for name in known if (out / name / "artefact.json").is_file()]
        shown = [written.get(name) or _earlier(out / name) for name in there]
        output.write_page([one for one in shown if one is not None], page)
    numbers = [
        (name, number)
        for name, one in written.items()
        if one.artefact is not None
        for number in printed.compare(one.artefact, one.runs)
    ]
    absent = [one.name for one in wanted.artefacts if one.name not in written]
    if options.json:
        facts: Values = {"scale": wanted.scale.value, "numbers": [_facts(*number) for number in numbers]}
        facts |= {"not_run": absent, "artefacts": list(map(str, folders)), "report": page and str(page)}
        print(jsontext.dumps(facts))
        return
    if numbers:
        head = ("artefact", "number", "paper", "tacit", "difference", "seeds", "verdict")
        print(table(head, (_cells(*number) for number in numbers), right=head[2:6]))
    if absent:
        say(f"not run: {', '.join(absent)}")
    for folder in folders:
        say(f"wrote {folder}")
    if page is not None:
        say(f"report {page}")


def _earlier(folder: Path) -> Source | None:
    """An artefact written before; one that cannot be trusted is left out of the page, and said."""
    from tacit.report import source

    try:
        return source.read(folder)
    except TacitError as error:
        say(f"left out of the page: {error}", file=sys.stderr)
        return None


def _facts(artefact: str, one: Comparison) -> Values:
    """A number for JSON, in the unit of the records: errors between 0 and 1."""
    ours, seeds = (one.ours.mean, one.ours.count) if one.ours else (None, 0)
    found = {"paper": one.paper, "tacit": ours, "difference": one.difference}
    # 12 digits: free of the dust of the factor
    numbers = {key: None if value is None else round(value / one.factor, 12) for key, value in found.items()}
    told = {"seeds": seeds, "verdict": one.verdict, "note": one.note}
    return {"artefact": artefact, "label": one.label, **numbers, **told}


def _cells(artefact: str, one: Comparison) -> tuple[str, ...]:
    unit = "%" if one.factor == 100 else ""
    ours, seeds = (f"{one.shown(one.ours.mean)}{unit}", one.ours.count) if one.ours else ("-", 0)
    apart = "-" if one.difference is None else f"{one.difference:+.2f}"
    verdict = one.verdict + (f" ({one.note})" if one.note else "")
    return (artefact, one.label, f"{one.shown(one.paper)}{unit}", ours, apart, str(seeds), verdict)
