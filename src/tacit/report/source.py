"""What a report is made of: the directory of a run, a sweep, a comparison or an artefact, or a file of records."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tacit import measures, record, toml
from tacit.errors import IncompatibleError, RecordError, RunDirectoryError
from tacit.leaderboard.standing import is_compared
from tacit.report import artefact_file
from tacit.report.audience import Audience, Placeholders, shared
from tacit.report.leaderboard import Board, boards
from tacit.report.runs import Recorded, identity
from tacit.report.shapes import Learnt, learnt

QUANTITIES = (
    *measures.KEYS, "objective", "consensus_violation", "noise_gradient_units", "noise_parameter_units",
    "binding", "rho",
)  # fmt: skip


NOT_DRAWN = "its score is not a sum of one effect per column, or the model cannot be read here."  # without a path


@dataclass(frozen=True)
class Source:
    """Runs under one name, and how to show them where an artefact says so."""

    name: str
    runs: tuple[Recorded, ...]
    artefact: artefact_file.ArtefactFile | None = None
    learnt: Learnt | None = None
    boards: tuple[Board, ...] = ()  # of a comparison, whose records are of no single runs
    audience: Audience = Audience.OWNERS

    @property
    def single(self) -> Recorded | None:
        """The run, where there is but one and nothing else to show."""
        return self.runs[0] if len(self.runs) == 1 and self.artefact is None else None

    @property
    def title(self) -> str:
        if self.artefact is not None:
            return self.artefact.title
        if self.single is not None:
            return f"{self.single.privacy.title} on {self.single.summary.get('dataset', 'data')}"
        return "; ".join(dict.fromkeys(board.title for board in self.boards)) or self.name

    def shared(self, audience: Audience, number: int, paths: Placeholders) -> Source:
        """Return the source with what everybody may see; refuse to share what must not be released."""
        if self.artefact is not None or self.boards:
            maker = "compare" if self.boards else "reproduce"
            raise IncompatibleError(
                f"{self.name} cannot be shared: tacit {maker} simulates its noise. Write its page without --share."
            )
        runs = tuple(shared(run, audience, f"run {n}", paths) for n, run in enumerate(self.runs, 1))
        learnt = self.learnt and (replace(self.learnt, reason=NOT_DRAWN) if self.learnt.reason else self.learnt)
        name = f"{'run' if self.single else 'sweep'} {number}"
        return replace(self, name=name, runs=runs, learnt=learnt, audience=audience)


def read_all(paths: Sequence[Path], audience: Audience = Audience.OWNERS) -> list[Source]:
    """Read the sources of these paths; the directory that `tacit reproduce` wrote stands for its artefacts."""
    found = [read(one) for path in paths for one in sorted(path.glob("*/artefact.json")) or [path]]
    if not audience.public:
        return found
    placeholders = Placeholders()
    return [source.shared(audience, n, placeholders) for n, source in enumerate(found, 1)]


def read(path: Path) -> Source:
    """Read the runs of a source; a run that is not whole is refused."""
    if path.name == "artefact.json":
        return read(path.parent)
    if path.is_file():
        name, found = path.resolve().parent.name if path.stem == "records" else path.stem, record.read(path)
        if not found:
            raise RecordError(f"{path} holds no records: run `tacit sweep` again, or give its directory.")
        if any(map(is_compared, found)):
            return Source(name, (), boards=boards(found, str(path)))
        return Source(name, _runs(found, path))
    if not path.is_dir():
        todo = "give the directory of a run, a sweep or a comparison, or a file of records"
        raise RecordError(f"{path} does not exist: {todo}.")
    name, records, artefact = path.resolve().name, path / "records.jsonl", path / "artefact.json"
    if artefact.is_file():
        return _of_artefact(name, records, artefact_file.read(artefact))
    if records.is_file():
        return replace(read(records), name=name)
    if (path / "spec.toml").is_file():
        run = _directory(path, name)
        return Source(name, (run,), learnt=learnt(path, run))
    lacks = f"{path} holds neither a run (spec.toml) nor records (records.jsonl)"
    raise RunDirectoryError(f"{lacks}: give the --out of `tacit train`, `tacit sweep` or `tacit compare`.")


def _of_artefact(name: str, records: Path, artefact: artefact_file.ArtefactFile) -> Source:
    """Return an artefact with the very records it was written with; a table of computed numbers has none."""
    found = record.read(records) if records.is_file() else []
    there = Counter((str(one.get("name")), one["seal"]) for one in found)
    odd = there - Counter(artefact.runs.items()) or Counter(artefact.runs.items()) - there
    if odd:
        raise RecordError(
            f"{records} is not what artefact.json was written with: {min(odd)[0]} is missing, new or another. "
            f"Run `tacit reproduce {artefact.name}` again: what is recorded is not repeated."
        )
    return Source(name, _runs(found, records), artefact)


def _runs(records: Sequence[dict[str, Any]], path: Path) -> tuple[Recorded, ...]:
    runs: dict[str, Recorded] = {}
    for n, found in enumerate(records, 1):
        where = f"{path}, record {n}"
        run = _run(found, where)
        # how often a run is measured changes nothing of it
        if runs.setdefault(identity(run, ["run.record_every"]), run) is not run:
            raise RecordError(f"{where}: {run.name} is there twice, and would count twice. Remove one.")
    return tuple(runs.values())


def _run(found: dict[str, Any], where: str) -> Recorded:
    name = str(found.get("name", found["spec_hash"]))
    again = f"Run {name} again with this version of tacit."
    curve = found.get("curve", {})
    summary = {key: value for key, value in found.items() if key not in ("curve", "spec", "seal", "name")}
    if "diverged" not in found:
        judged = measures.judge(found) or measures.ERROR
        for key in ("guarantee", judged.key, "seconds"):
            if key not in found:
                raise RecordError(f"{where}: {name} has no {key}. {again}")
        if not isinstance(curve, dict) or not curve.get("t"):
            raise RecordError(f"{where}: {name} has no curve. {again}")
        if any(not isinstance(column, list) or len(column) != len(curve["t"]) for column in curve.values()):
            raise RecordError(f"{where}: the curves of {name} differ in length. {again}")
    return _known(Recorded(name, found["spec"], summary, curve), where)


def _directory(path: Path, name: str) -> Recorded:
    """Read a finished run of `tacit train`."""
    if not (path / "result.json").is_file():
        raise RunDirectoryError(f"{path} is not finished: continue it with `tacit train --resume {path}`.")
    try:
        summary = record.loads((path / "result.json").read_text(encoding="utf-8"))
        record.check_result(path, summary)
        rows = [json.loads(line) for line in (path / "rounds.jsonl").read_text(encoding="utf-8").splitlines()]
        curve = {key: [row.get(key) for row in rows] for key in ("t", *QUANTITIES) if any(key in row for row in rows)}
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise RunDirectoryError(f"{path} is damaged ({type(error).__name__}: {error}): run {name} again.") from None
    return _known(Recorded(name, toml.text_of(path / "spec.toml"), summary, curve), str(path))


def _known(run: Recorded, where: str) -> Recorded:
    """Return the run, if its result is that of its spec and of the end of its curve."""
    try:
        _ = run.privacy
    except RecordError as error:
        raise RecordError(f"{where}: {error} Run {run.name} again.") from None
    for key in ("algorithm.name", "run.preset", "run.rounds"):
        if key not in run.values:
            raise RecordError(f"{where}: the spec of {run.name} has no {key}. Run {run.name} again.")
    if run.diverged:
        return run
    rounds = run.values["run.rounds"]
    told = run.summary.get("algorithm"), run.summary.get("rounds"), run.curve["t"][-1]
    fits = told == (run.values["algorithm.name"], rounds, rounds)
    key = (measures.judge(run.summary) or measures.ERROR).key
    if not fits or not record.ends(run.curve.get(key, [None]), run.summary.get(key)):
        raise RecordError(f"{where}: the result of {run.name} is not of its spec and curve. Run {run.name} again.")
    return run
