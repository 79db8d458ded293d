"""Reproduce artefacts: plan their runs and tell the cost, do what is not recorded, adopt runs done elsewhere, write.

A run that several artefacts share is done once, and one that is in the records file never again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from time import perf_counter

from tacit import jsontext, record
from tacit.errors import RecordError, RunDirectoryError
from tacit.jsontext import Values
from tacit.machine import write_whole
from tacit.paper import convergence
from tacit.paper.archive import ONE_WEIGHT, Archive, key_of, on_one_weight, select
from tacit.paper.artefact import Artefact, Scale, named
from tacit.paper.tables import TABLES, Given
from tacit.rounds import rounds
from tacit.run import processes, sweep
from tacit.run.directory import RunDirectory
from tacit.run.run import Run, measure
from tacit.run.sources import FEMNIST, Sources
from tacit.run.sweep import Load, Member
from tacit.run.train import Listener, engine_for, nobody

TIMED = 3  # rounds of a batch whose pace is taken, after one that warms up


RUNNERS: dict[str, processes.Finish] = {"sweep": sweep.finish, "theorem": convergence.finish}


@dataclass(frozen=True)
class Reproduction:
    """The runs behind some artefacts at a scale."""

    artefacts: Sequence[Artefact]
    scale: Scale

    @cached_property
    def runs(self) -> dict[str, tuple[str, Member]]:
        """The distinct runs by key, each with the name of its runner."""
        asked = ((one.runner, member) for one in self.artefacts for member in one.members(self.scale))
        return {key_of(member.spec): (runner, member) for runner, member in asked}

    def waiting(self, archive: Archive) -> list[tuple[str, Member]]:
        """The runs that are not recorded."""
        return [run for key, run in self.runs.items() if key not in archive]

    def recorded(self, archive: Archive) -> int:
        """How many of the runs are recorded."""
        return len(self.runs) - len(self.waiting(archive))

    def records(self, artefact: Artefact, archive: Archive) -> list[Values]:
        """The records of an artefact, of those runs that have one."""
        keys = (key_of(member.spec) for member in artefact.members(self.scale))
        return [archive.records[key] for key in keys if key in archive]


def cost(members: Sequence[Member], load: Load) -> float:
    """The seconds that all runs will take, one batch at a time.

    The largest batch over each data set and on each engine is timed, and its pace taken for the others.
    """
    spent = 0.0

    def alike(member: Member) -> tuple[str, str]:
        return sweep.data_key(member), member.spec.run.engine

    for _, same in groupby(sorted(members, key=alike), key=alike):
        group = list(same)
        batch = max(sweep.batches(group, load, sweep.fresh), key=len)
        a_round, a_row = pace([run for _, run in batch])
        for own in (member.spec.run for member in group):
            rows = own.rounds // (own.record_every or max(1, own.rounds // 100))
            spent += a_round / len(batch) * own.rounds + a_row * rows
    return spent


def pace(runs: Sequence[Run]) -> tuple[float, float]:
    """The seconds that a round of a batch takes, and those that measuring one run takes. The rounds are thrown away."""
    engine = engine_for(runs, ExitStack())
    going = rounds([run.setup.server for run in runs], [run.state for run in runs], engine.exchange_all)
    *_, (state, info) = next(going)
    start, done = perf_counter(), 0
    for ended in islice(going, TIMED):
        done, (state, info) = done + 1, ended[-1]
    end = perf_counter()
    measure(state, info, runs[-1].setup, runs[-1].federation, runs[-1].clock, training=True)
    return (end - start) / max(done, 1), perf_counter() - end


def run(
    waiting: Sequence[tuple[str, Member]],
    archive: Archive,
    out: Path,
    sources: Sources,
    listener: Listener = nobody,
    n_jobs: int = 1,
) -> None:
    """Do these runs in OUT/runs, and record each run as soon as it is finished."""
    done = 0
    for name, same in groupby(sorted(waiting, key=itemgetter(0)), key=itemgetter(0)):
        members = [member for _, member in same]

        def hear(ended: int, row: Values | None, before: int = done) -> None:
            listener(before + ended, row)

        finish = processes.spread(RUNNERS[name], n_jobs) if n_jobs > 1 else RUNNERS[name]
        for one in finish(members, out / "runs", hear, sources):
            archive.add([one])
        done += sum(member.spec.run.rounds for member in members)


def adopt(directories: Sequence[Path], wanted: Reproduction, archive: Archive) -> tuple[list[Values], dict[str, int]]:
    """Record every finished run under these directories that is wanted: the new records, and what was left."""
    new: dict[str, Values] = {}
    left, known = {"recorded": 0, "unfinished": 0, "foreign": 0}, archive.data
    for directory in directories:
        if not directory.is_dir():
            raise RunDirectoryError(f"{directory} is no directory: give one that holds runs.")
        for path in sorted(directory.rglob("spec.toml")):
            held = RunDirectory.open(path.parent)
            key = key_of(held.spec())
            if key not in wanted.runs or wanted.runs[key][0] != "sweep":
                left["foreign"] += 1
            elif key in archive or key in new:
                left["recorded"] += 1
            elif not held.finished:
                left["unfinished"] += 1
            else:
                new[key] = sweep.taken(held, named(held.spec()))
                size = new[key]["agents"], new[key]["records"]
                if known.setdefault(held.spec().data, size) != size:
                    raise RecordError(f"{path.parent} is of other data than the runs recorded: adopt it elsewhere.")
    archive.add(new.values())
    return list(new.values()), left


def write(wanted: Reproduction, archive: Archive, out: Path, sources: Sources) -> list[Path]:
    """OUT/<artefact>/records.jsonl and artefact.json, for every artefact of which there is something to show."""
    folders = []
    for artefact in (one.claimed(wanted.scale) for one in wanted.artefacts):
        records = wanted.records(artefact, archive)
        if artefact.asks_for(ONE_WEIGHT):
            records = [on_one_weight(one) for one in records]
        if not records and artefact.grid:
            continue
        shown = describe(artefact, wanted.scale, records)
        missing = len(artefact.members(wanted.scale)) - len(records)
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


def describe(artefact: Artefact, scale: Scale, records: Sequence[Values]) -> Values:
    """What artefact.json says, but for what is computed. Panels of which nothing was run are left out."""
    panels = [one for one in artefact.all_panels() if select(records, one["where"])]
    printed: list[Values] = [{"where": {}, "tolerance": None, "note": "", **one} for one in artefact.printed]
    return {
        "name": artefact.name, "title": artefact.title, "about": artefact.about, "scale": scale.value,
        "panels": panels, "columns": artefact.columns,
        "printed": [one | {"note": "".join(_of_writers([one["note"]], records))} for one in printed],
        "table": None, "series": [], "notes": _of_writers(artefact.notes, records),
    }  # fmt: skip


def _of_writers(notes: Iterable[str], records: Sequence[Values]) -> list[str]:
    """The notes with the number of FEMNIST's {writers}; notes on writers are left out where no run is of FEMNIST."""
    writers = {str(one["agents"]) for one in records if one.get("dataset") == FEMNIST}
    return [note.replace("{writers}", "".join(writers)) for note in notes if writers or "{writers}" not in note]


def _write(path: Path, text: str) -> None:
    write_whole(path, lambda file: file.write(text.encode()))
