"""Many runs from one file: a spec in which any value may be a list. Runs that share data share their passes.

Each run has a directory of its own, the same as `tacit train` makes, so a sweep that was stopped goes on
where it stopped: finished runs are read, started ones resumed, the rest begun.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit import record
from tacit.engine.fast import fusable
from tacit.engine.gradients import bound_norms
from tacit.errors import Diverged, Interrupted, RunDirectoryError, SpecError
from tacit.experiments import build, guard, toml
from tacit.experiments.presets import preset
from tacit.experiments.run import Run, together
from tacit.experiments.spec import Spec
from tacit.experiments.store import RunDirectory, write_whole
from tacit.types import Federation

LANES = 16  # runs at most in a batch: beyond it a row of models no longer fits the first level cache
STATE_BYTES = 2e9  # of z and duals at most in a batch

CURVE = 50  # points at most
CURVES = (
    "t", "test_error", "test_error_averaged", "objective", "consensus_violation",
    "noise_gradient_units", "noise_parameter_units", "rho",
)  # fmt: skip

Values = dict[str, Any]


@dataclass(frozen=True)
class Member:
    """One run of a sweep: its name, what sets it apart, and its spec."""

    name: str
    varied: Values
    spec: Spec


def read(path: Path) -> list[Member]:
    """Every combination of the lists in a TOML file."""
    values = toml.read(path)
    lists = {key: value if isinstance(value, list) else [value] for key, value in values.items()}
    for key, choices in lists.items():
        if not choices:
            raise SpecError(f"{path}: {key} is an empty list: give at least one value.")
    varied = [key for key, choices in lists.items() if len(choices) > 1]
    members = []
    for combination in itertools.product(*lists.values()):
        chosen = dict(zip(lists, combination, strict=True))
        bundle = {"run.preset": "sound", "algorithm.name": "objt", "data.source": "mnist"} | chosen
        for key in ("run.preset", "algorithm.name", "data.source"):
            if not isinstance(bundle[key], str):
                raise SpecError(f"{path}: {key} takes a name, or a list of names, got {bundle[key]!r}.")
        base = preset(bundle["run.preset"], bundle["algorithm.name"], bundle["data.source"])
        own = {key: chosen[key] for key in varied}
        if "run.name" in chosen:
            raise SpecError(f"{path}: run.name is drawn for each run of a sweep: drop it.")
        members.append(Member(_name(own), own, base.with_values(chosen).checked()))
    names = [member.name for member in members]
    if len(set(names)) < len(names):
        raise SpecError(f"{path}: a list holds the same value twice: each run must differ.")
    return members


def run(
    members: Sequence[Member], out: Path, listener: Callable[[int, Values | None], None] = lambda _done, _row: None
) -> list[Values]:
    """Run what is not finished, batch by batch, and write one record a run."""
    records = {}
    waiting = []
    for member in members:
        directory = _directory(out / member.name, member.spec)
        if directory is not None and directory.finished:
            records[member.name] = _record(member, directory.result(), directory.rows())
        else:
            waiting.append(member)
    before = sum(member.spec.run.rounds for member in members if member.name in records)
    for batch in _batches(waiting, out):
        rounds = batch[0].spec.run.rounds * len(batch)

        def hear(done: int, row: Values | None, before: int = before, size: int = len(batch)) -> None:
            listener(before + done * size, row)

        named = {member.name: member for member in members}
        lanes, results = batch, None
        while lanes and results is None:
            try:
                results = together(lanes, hear)
            except Interrupted as stop:
                raise Interrupted(f"{stop} of a batch of {len(lanes)}; run the same sweep again to go on") from None
            except Diverged as lost:  # the others go on without it, from their last checkpoint
                name = next(_name_of(lane) for lane in lanes if lane is lost.run)
                own = {"name": name, **named[name].varied, "diverged": str(lost)}
                records[name] = record.sealed(own | {"spec": toml.dumps(named[name].spec)})
                lanes = [Run(one.spec, one.over, one.setup, one.directory) for one in lanes if one is not lost.run]
        for lane, result in zip(lanes, results or [], strict=True):
            records[_name_of(lane)] = _record(named[_name_of(lane)], result.summary, result.rounds)
        before += rounds
    ordered = [records[member.name] for member in members]
    write_whole(out / "records.jsonl", lambda file: file.write(record.lines(ordered).encode()))
    return ordered


def _batches(members: Sequence[Member], out: Path) -> Iterator[list[Run]]:
    """Runs over the same data, of one length and at the same round, as many as one pass serves well."""
    by_data = itertools.groupby(sorted(members, key=_data_key), key=_data_key)
    for _, same_data in by_data:
        group = list(same_data)
        over = build.federation(group[0].spec)
        runs = [_start(member, out, over) for member in group]
        for _, alike in itertools.groupby(sorted(runs, key=_lockstep_key), key=_lockstep_key):
            lanes = list(alike)
            state = 8 * over.n_agents * over.n_features * over.n_classes  # float32 z and dual
            size = max(1, min(LANES, int(STATE_BYTES // state)))
            yield from (lanes[i : i + size] for i in range(0, len(lanes), size))


def _start(member: Member, out: Path, over: Federation) -> Run:
    path = out / member.name
    directory = _directory(path, member.spec)
    spec = directory.spec() if directory else guard.named(member.spec)
    run = Run(spec, over, build.setup(spec, over))
    run.directory = directory or RunDirectory.create(path, spec)
    return run


def _directory(path: Path, spec: Spec) -> RunDirectory | None:
    """The directory of a member that was started; None if it was not."""
    if not (path / "spec.toml").exists():
        return None
    directory = RunDirectory.open(path)
    held = directory.spec()
    if spec.privacy.ledger:  # its place and the name of the run were settled when it was created
        spec = spec.with_values({"run.name": held.run.name, "privacy.ledger": held.privacy.ledger})
    if held != spec:
        raise RunDirectoryError(f"{path} holds a run of another specification: name another --out, or remove it.")
    return directory


def _name_of(run: Run) -> str:
    assert run.directory is not None  # every run of a sweep has one
    return run.directory.path.name


def _data_key(member: Member) -> str:
    return repr(member.spec.data)


def _lockstep_key(run: Run) -> str:
    assert run.directory is not None
    saved = run.directory.saved()
    t = int(saved["t"]) if saved else 0
    agent, own = run.setup.agents[0], run.spec.run
    # a declared bound is not measured, so it goes with runs that measure in any norm
    norms = sorted(norm.value for norm in bound_norms([[agent]])) or ["l1"]
    if not fusable(agent):
        norms = [run.directory.path.name]
    alike = (own.rounds, own.record_every, own.engine, own.device, run.spec.privacy.noise)
    return repr((*alike, t, type(agent.problem.loss).__name__, norms))


def _record(member: Member, summary: Values, rows: list[Values]) -> Values:
    """One run in one line: what sets it apart, its result, and its curves thinned to at most CURVE points."""
    thin = rows[: -1 : -(-len(rows) // CURVE)] + rows[-1:]
    curve = {key: [_short(row[key]) for row in thin] for key in CURVES}
    return record.sealed(
        {"name": member.name, **member.varied, **summary, "curve": curve, "spec": toml.dumps(member.spec)}
    )


def _short(value: Any) -> Any:
    """Six digits: a curve is looked at."""
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _name(varied: Values) -> str:
    """objt-epsilon0.05-seed0: the values that differ, fit for a file name."""
    parts = []
    for key, value in varied.items():
        short = key.partition(".")[2]
        text = re.sub(r"[^\w.+-]", "_", str(value))
        parts.append(text if key in ("algorithm.name", "run.preset") else f"{short}{text}")
    return "-".join(parts) or "run"
