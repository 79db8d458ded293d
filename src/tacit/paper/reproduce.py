"""Reproduce artefacts: plan their runs, do those that are not recorded, adopt runs done elsewhere, write it all down.

A run that several artefacts share is done once, and one that is in the records file never again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from tacit import jsontext, record
from tacit.errors import RecordError, RunDirectoryError
from tacit.paper import artefact as paper
from tacit.paper import convergence
from tacit.paper.archive import Archive
from tacit.paper.artefact import Artefact, Scale, key_of
from tacit.paper.tables import TABLES, Given
from tacit.run import processes, sweep
from tacit.run.directory import RunDirectory, write_whole
from tacit.run.sources import FEMNIST, Sources
from tacit.run.sweep import Load, Member
from tacit.run.train import Listener, nobody

Values = dict[str, Any]
Finish = Callable[[Sequence[Member], Path, Listener, Load], Iterator[Values]]

RUNNERS: dict[str, Finish] = {"sweep": sweep.finish, "theorem": convergence.finish}


@dataclass(frozen=True)
class Plan:
    """The distinct runs of some artefacts at a scale, each with the name of its runner."""

    artefacts: tuple[Artefact, ...]
    scale: Scale
    runs: dict[str, tuple[str, Member]]

    @classmethod
    def of(cls, artefacts: Sequence[Artefact], scale: Scale) -> Plan:
        runs = {
            key_of(member.spec): (artefact.runner, member)
            for artefact in artefacts
            for member in artefact.members(scale)
        }
        return cls(tuple(artefacts), scale, runs)

    def waiting(self, archive: Archive) -> list[tuple[str, Member]]:
        """What is not recorded."""
        return [run for key, run in self.runs.items() if key not in archive]

    def records(self, artefact: Artefact, archive: Archive) -> list[Values]:
        """What is recorded of an artefact."""
        keys = (key_of(member.spec) for member in artefact.members(self.scale))
        return [archive.records[key] for key in keys if key in archive]


def possible(runs: Iterable[tuple[str, Member]], sources: Sources) -> list[tuple[str, Member]]:
    """The runs whose data are here."""
    return [run for run in runs if sources.has(run[1].spec)]


def run(
    waiting: Sequence[tuple[str, Member]],
    archive: Archive,
    out: Path,
    sources: Sources,
    listener: Listener = nobody,
    n_jobs: int = 1,
) -> None:
    """Do these runs in OUT/runs, and record each as soon as it is finished."""
    done = 0
    for name, same in groupby(sorted(waiting, key=lambda run: run[0]), key=lambda run: run[0]):
        members = [member for _, member in same]

        def hear(rounds: int, row: Values | None, before: int = done) -> None:
            listener(before + rounds, row)

        finish = processes.spread(RUNNERS[name], n_jobs) if n_jobs > 1 else RUNNERS[name]
        for one in finish(members, out / "runs", hear, sources):
            archive.add([one])
        done += sum(member.spec.run.rounds for member in members)


@dataclass(frozen=True)
class Adopted:
    """What was found under some directories: records that are new, and the runs that were left."""

    records: tuple[Values, ...]
    recorded: int
    unfinished: int
    foreign: int


def adopt(directories: Sequence[Path], plan: Plan, archive: Archive) -> Adopted:
    """Record every finished run under these directories that the plan asks for."""
    new: dict[str, Values] = {}
    known = archive.data
    recorded = unfinished = foreign = 0
    for directory in directories:
        if not directory.is_dir():
            raise RunDirectoryError(f"{directory} is no directory: give one that holds runs.")
        for path in sorted(directory.rglob("spec.toml")):
            held = RunDirectory.open(path.parent)
            key = key_of(held.spec())
            if key not in plan.runs or plan.runs[key][0] != "sweep":
                foreign += 1
            elif key in archive or key in new:
                recorded += 1
            elif not held.finished:
                unfinished += 1
            else:
                new[key] = sweep.taken(held, paper.named(held.spec()))
                size = new[key]["agents"], new[key]["records"]
                if known.setdefault(held.spec().data, size) != size:
                    raise RecordError(f"{path.parent} is of other data than the runs recorded: adopt it elsewhere.")
    archive.add(new.values())
    return Adopted(tuple(new.values()), recorded, unfinished, foreign)


def write(plan: Plan, archive: Archive, out: Path, sources: Sources) -> list[Path]:
    """OUT/<artefact>/records.jsonl and artefact.json, for every artefact of which there is something to show."""
    folders = []
    for artefact in (claimed(one, plan.scale) for one in plan.artefacts):
        records = plan.records(artefact, archive)
        if not records and artefact.grid:
            continue
        shown = describe(artefact, plan.scale, records)
        missing = len(artefact.members(plan.scale)) - len(records)
        if missing:
            shown["notes"].insert(0, f"{missing} of {missing + len(records)} runs are not recorded.")
        if artefact.compute:
            shown |= TABLES[artefact.compute](Given(artefact, records, shown["panels"], sources))
        shown["runs"] = {one["name"]: one["seal"] for one in records}
        folder = out / artefact.name
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / "records.jsonl", record.lines(records))
        _write(folder / "artefact.json", jsontext.dumps(record.with_seal(shown), indent=2) + "\n")
        folders.append(folder)
    return folders


def claimed(artefact: Artefact, scale: Scale) -> Artefact:
    """The artefact as it stands at a scale: short runs are no ground for a claim about long ones."""
    return artefact if scale is Scale.FULL else paper.unclaimed(artefact, "quick scale: shorter runs, fewer seeds")


def describe(artefact: Artefact, scale: Scale, records: Sequence[Values]) -> Values:
    """artefact.json, but for what is computed; panels of which nothing was run are left out."""
    panels = [one for one in artefact.all_panels() if paper.select(records, one.get("where", {}))]
    usual: Values = {"where": {}, "tolerance": None, "note": ""}
    return {
        "name": artefact.name,
        "title": artefact.title,
        "about": artefact.about,
        "scale": scale.value,
        "panels": panels,
        "columns": artefact.columns,
        "printed": [usual | one | {"note": _noted(one, records)} for one in artefact.printed],
        "table": None,
        "series": [],
        "notes": _of_writers(artefact.notes, records),
    }


def _noted(one: Values, records: Sequence[Values]) -> str:
    return "".join(_of_writers([one.get("note", "")], records))


def _of_writers(notes: Iterable[str], records: Sequence[Values]) -> list[str]:
    """Notes with the number of FEMNIST's {writers}; where none of its runs is recorded, without those that name it."""
    writers = {str(one["agents"]) for one in records if one.get("dataset") == FEMNIST}
    return [note.replace("{writers}", "".join(writers)) for note in notes if writers or "{writers}" not in note]


def _write(path: Path, text: str) -> None:
    write_whole(path, lambda file: file.write(text.encode()))
