"""A sweep is many runs from one spec in which any value may be a list. Runs over the same data share their passes.

Each run has its own directory, as `tacit train` makes it, so a stopped sweep continues where it stopped: finished
runs are read, started runs are resumed, and all other runs are begun.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tacit import measures, record, toml
from tacit.engine.fast import fusable
from tacit.errors import Diverged, Interrupted, RunDirectoryError, SpecError
from tacit.jsontext import Values
from tacit.machine import write_whole
from tacit.problem.sensitivity import measured_norms
from tacit.run import build, deploy, ranks
from tacit.run.directory import RunDirectory
from tacit.run.evaluation import LONG
from tacit.run.noise import check_seed, simulated
from tacit.run.presets import fitted, preset
from tacit.run.result import Result
from tacit.run.run import Run, domain_digest
from tacit.run.spec import Spec
from tacit.run.train import GracefulInterrupt, K, Listener, nobody, settled, together
from tacit.types import Federation

LANES = 16  # runs at most in a batch: a row of more models does not fit the first level cache
MODEL_BYTES = 1e6  # the models of one agent in a batch: at most the part of the second level cache that a pass may fill
STATE_BYTES = 2e9  # all z and duals in a batch, at most

CURVE = 50  # points of a curve, at most
CURVES = (
    "t", *measures.KEYS, "objective", "consensus_violation",
    "noise_gradient_units", "noise_parameter_units", "binding", "rho",
)  # fmt: skip


@dataclass(frozen=True)
class Member:
    """One run of a sweep: its name, the values that differ from run to run, and its spec."""

    name: str
    varied: Values
    spec: Spec


MemberRun = tuple[Member, Run]
Load = Callable[[Spec], Federation]
Start = Callable[[Member, Federation], Run]


def read(path: Path) -> list[Member]:
    """Return one member for every combination of the lists in a TOML file."""
    return expand(toml.read(path), str(path))


def expand(values: Values, source: str) -> list[Member]:
    """Return one member for every combination of the lists in `values`; errors name `source`."""
    lists = {key: value if isinstance(value, list) else [value] for key, value in values.items()}
    for key, choices in lists.items():
        if not choices:
            raise SpecError(f"{source}: {key} is an empty list: give at least one value.")
    varied = [key for key, choices in lists.items() if len(choices) > 1]
    members = []
    for combination in itertools.product(*lists.values()):
        chosen = dict(zip(lists, combination, strict=True))
        bundle = {"run.preset": "sound", "algorithm.name": "objt", "data.source": "mnist"} | chosen
        for key in ("run.preset", "algorithm.name", "data.source"):
            if not isinstance(bundle[key], str):
                raise SpecError(f"{source}: {key} takes a name, or a list of names, got {bundle[key]!r}.")
        base = preset(bundle["run.preset"], bundle["algorithm.name"], bundle["data.source"])
        own = {key: chosen[key] for key in varied}
        if "run.name" in chosen:
            raise SpecError(f"{source}: run.name is drawn for each run of a sweep: drop it.")
        spec = fitted(base.with_values(chosen).checked(), chosen)
        check_seed(spec)
        members.append(Member(_name(own), own, simulated(spec)))
    names = [member.name for member in members]
    if len(set(names)) < len(names):
        raise SpecError(f"{source}: a list holds the same value twice: each run must differ.")
    _check_ledgers(members, source)
    return members


def _check_ledgers(members: Sequence[Member], source: str) -> None:
    """Refuse runs that cannot share one ledger, before the first run is paid for."""
    asked: dict[str, set[Any]] = {}
    for own in (member.spec.privacy for member in members if member.spec.privacy.ledger):
        asked.setdefault(str(own.ledger), set()).add((own.adjacency, own.limit, own.limit and own.dp_delta))
    if any(len(kinds) > 1 for kinds in asked.values()):
        raise SpecError(f"{source}: runs that share ledgers must have one adjacency and one limit, at one dp_delta.")


def run(members: Sequence[Member], out: Path, listener: Listener = nobody) -> list[Values]:
    """Compute the runs that are not finished, and write one record for each run."""
    records = {one["name"]: one for one in finish(members, out, listener)}
    ordered = [records[member.name] for member in members]
    write_whole(out / "records.jsonl", lambda file: file.write(record.lines(ordered).encode()))
    return ordered


def finish(
    members: Sequence[Member], out: Path, listener: Listener = nobody, load: Load = ranks.federation
) -> Iterator[Values]:
    """Yield the record of every run: first of the runs that were finished before, then batch by batch."""
    waiting, before = [], 0
    for member in members:
        directory = _directory(out / member.name, member.spec)
        if directory is not None and directory.finished:
            before += member.spec.run.rounds
            yield taken(directory, member)
        else:
            waiting.append(member)
    for batch, hear in heard(batches(waiting, load, partial(_start, out)), listener, before):
        for member, run in batch:  # only now that every run over the same data was built, and none was refused
            run.directory = run.directory or RunDirectory.create(out / member.name, run.spec)
        yield from _together(batch, hear)


def heard(
    of: Iterable[list[MemberRun]], listener: Listener, before: int = 0
) -> Iterator[tuple[list[MemberRun], Listener]]:
    """Yield each batch with a listener that adds the rounds `before` the batch to the rounds of the batch."""
    for batch in of:
        yield batch, partial(_hear, listener, before, len(batch))
        before += batch[0][0].spec.run.rounds * len(batch)


def _hear(listener: Listener, before: int, size: int, done: int, row: Values | None) -> None:
    listener(before + done * size, row)


def _together(batch: Sequence[MemberRun], listener: Listener) -> Iterator[Values]:
    """Yield the records of a batch; the record of a run that diverges says so, and the other runs continue."""
    interrupt = GracefulInterrupt()

    def all_of(runs: Sequence[Run]) -> list[Result]:
        try:
            return together(runs, listener, interrupt)
        except Interrupted as stop:
            raise Interrupted(f"{stop} of a batch of {len(runs)}; run the same command again to go on") from None

    for member, found in settled(batch, all_of):
        if isinstance(found, Diverged):
            yield diverged(member, found)
        else:
            yield record_of(member, found.summary, found.rounds)
    if interrupt.asked:  # the signal came in the last round: this batch is done, and no other batch begins
        raise Interrupted("stopped; run the same command again to go on")


def diverged(member: Member, lost: Diverged) -> Values:
    """Return the record of a run that diverged."""
    return record.sealed(
        {"name": member.name, **member.varied, "diverged": str(lost), "spec": member.spec.toml()}
    )


def batches(members: Sequence[Member], load: Load, start: Start) -> Iterator[list[MemberRun]]:
    """Yield batches of runs over the same data, of one length and at the same round, of a size that one pass serves."""
    by_data = itertools.groupby(sorted(members, key=data_key), key=data_key)
    for _, same_data in by_data:
        group = list(same_data)
        federation = load(group[0].spec)
        yield from in_lockstep((member, start(member, federation)) for member in group)


def in_lockstep(lanes: Iterable[tuple[K, Run]]) -> Iterator[list[tuple[K, Run]]]:
    """Yield runs over the same data in batches that one engine can serve together."""
    alike: dict[str, list[tuple[K, Run]]] = {}
    for n, (key, run) in enumerate(lanes):
        alike.setdefault(_lockstep_key(run) or f"alone {n}", []).append((key, run))
    for _, same in sorted(alike.items()):
        size = at_once(same[0][1])
        yield from (same[i : i + size] for i in range(0, len(same), size))


def at_once(run: Run) -> int:
    """Return how many runs like this run an engine serves well together."""
    model = run.federation.n_features * run.federation.n_classes
    agents = run.federation.n_agents * model
    if run.setup.agents:  # float32; z and dual of every agent
        return max(1, min(LANES, int(MODEL_BYTES // (4 * model)), int(STATE_BYTES // (8 * agents))))
    return max(1, min(LANES, int(STATE_BYTES // (64 * agents))))  # about eight arrays of float64


def fresh(member: Member, federation: Federation) -> Run:
    """Return a new run that writes nothing to disk."""
    return Run(member.spec, federation, build.setup(member.spec, federation))


def _start(out: Path, member: Member, federation: Federation) -> Run:
    directory = _directory(out / member.name, member.spec)
    spec = directory.spec() if directory else deploy.named(member.spec)
    return Run(spec, federation, build.setup(spec, federation), directory)


def _directory(path: Path, spec: Spec) -> RunDirectory | None:
    """Return the directory of a run that was started, or None; refuse a directory with another spec."""
    if not (path / "spec.toml").exists():
        return None
    directory = RunDirectory.open(path)
    held = directory.spec()
    if spec.privacy.ledger:  # `deploy.named` chose the path and the name of the run at the start
        spec = spec.with_values({"run.name": held.run.name, "privacy.ledger": held.privacy.ledger})
    if held.privacy.noise == spec.privacy.noise == "exact":  # earlier versions noted a seed here, which means nothing
        spec = spec.with_values({"run.seed": held.run.seed})
    if held != spec:
        raise RunDirectoryError(f"{path} holds a run of another specification: name another --out, or remove it.")
    file = spec.problem.domain_file
    if file and directory.finished and directory.result().get("domain_sha256") != domain_digest(spec):
        raise RunDirectoryError(f"{path} was run with another {file}: restore the file, or remove the run.")
    return directory


def taken(held: RunDirectory, member: Member) -> Values:
    """Return the record of a finished run."""
    return record_of(member, held.result(), held.rows())


def data_key(member: Member) -> str:
    """Return a key that is equal for runs over the same data."""
    spread = member.spec.run.engine == "mpi"  # agents over ranks
    return repr((member.spec.data, member.spec.features, spread))


def _lockstep_key(run: Run) -> str | None:
    """Return a key that is equal for runs that an engine can serve together; None for a run that goes alone."""
    own, setup = run.spec.run, run.setup
    saved = run.directory.saved() if run.directory is not None else None
    alike = (own.rounds, own.record_every, own.engine, own.device, int(saved["t"]) if saved else 0)
    if not setup.agents:
        return repr((*alike, run.spec.algorithm.name))
    agent = setup.agents[0]
    alone = not fusable(agent) or setup.in_sum is not None  # no shared pass
    if alone or deploy.wanted(run.spec):  # or all ledgers open at once
        return None
    # a declared bound is not measured, so it goes with runs that measure in any norm
    norms = sorted(norm.value for norm in measured_norms([agent.variant.bound])) or ["l1"]
    return repr((*alike, type(agent.problem.loss).__name__, norms))


def record_of(member: Member, summary: Values, rows: list[Values], curves: Sequence[str] = CURVES) -> Values:
    """Return the record of one run: its varied values, its result, and its curves, thinned to at most CURVE points."""
    thin = rows[: -1 : -(-len(rows) // CURVE)] + rows[-1:]
    # rows that an earlier version wrote may lack a quantity
    curve = {key: [_short(row.get(key)) for row in thin] for key in curves if key in rows[-1]}
    told = {key: value for key, value in summary.items() if key not in LONG}
    return record.sealed({"name": member.name, **member.varied, **told, "curve": curve, "spec": member.spec.toml()})


def _short(value: Any) -> Any:
    """Round a number to six digits, which are enough for a plotted curve."""
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _name(varied: Values) -> str:
    """Return a file name made of the values that differ, such as objt-epsilon0.05-seed0."""
    parts = []
    for key, value in varied.items():
        short = key.partition(".")[2]
        text = re.sub(r"[^\w.+-]", "_", str(value))
        parts.append(text if key in ("algorithm.name", "run.preset") else f"{short}{text}")
    return "-".join(parts) or "run"
