"""Run experiments: the loop around a round that measures, records and survives."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from tacit.admm import compatible
from tacit.engine.plain import PlainEngine
from tacit.engine.registry import ENGINES
from tacit.errors import Diverged, InputError, Interrupted, Refused, RunDirectoryError
from tacit.guarded.agent import Guarded
from tacit.rounds import Info, State, rounds
from tacit.run import build, deploy, notices
from tacit.run.compose import AdmmSetup
from tacit.run.directory import Layout, RunDirectory
from tacit.run.hosted import Hosted
from tacit.run.interrupt import Patience
from tacit.run.metrics import Clock, measure
from tacit.run.model import Model
from tacit.run.result import Result, summarize
from tacit.run.sources import GIVEN
from tacit.run.spec import Spec
from tacit.types import Array, Federation

CHECKPOINT_SECONDS = 15.0

K = TypeVar("K")
R = TypeVar("R")

Listener = Callable[[int, dict[str, Any] | None], None]  # (rounds done, a row if one was recorded)


def nobody(_done: int, _row: dict[str, Any] | None) -> None: ...


def train(
    spec: Spec, federation: Federation | None = None, out: Path | str | None = None, listener: Listener = nobody
) -> Result:
    """Train from the start; with `out`, everything is written there as it happens."""
    if federation is not None:
        spec = spec.with_values({"data.source": GIVEN + federation.name})
    spec = deploy.named(spec)
    over = build.federation(spec.checked()) if federation is None else build.transformed(spec, federation)
    run = Run(spec, over, build.setup(spec, over))
    if out is None:
        return together([run], listener)[0]
    run.directory = RunDirectory.create(Path(out), spec)
    try:
        return _alone(run, run.directory, listener)
    except InputError:
        run.directory.discard()  # refused before the first round: nothing was done, so nothing stays
        raise


def resume(path: Path | str, federation: Federation | None = None, listener: Listener = nobody) -> Result:
    """Continue a run that was stopped; it ends where the uninterrupted run would."""
    directory = RunDirectory.open(Path(path))
    spec = directory.spec()
    if directory.finished:
        return _read(directory)
    if federation is None and spec.data.source.startswith(GIVEN):
        raise RunDirectoryError(f"{path} was trained on data given in Python: resume it there, with that federation.")
    over = build.federation(spec) if federation is None else build.transformed(spec, federation)
    return _alone(Run(spec, over, build.setup(spec, over), directory), directory, listener)


def _read(directory: RunDirectory) -> Result:
    """The result of a finished run."""
    model = Model.read(directory.path)
    return Result(directory.result(), directory.rows(), model.w, model.w_average)


def _alone(run: Run, directory: RunDirectory, listener: Listener) -> Result:
    """A run by itself; one that is stopped says how it goes on."""
    try:
        return together([run], listener)[0]
    except Interrupted as stop:
        raise Interrupted(f"{stop}; continue with: tacit train --resume {directory.path}") from None


class Run:
    """One run on its way: what the loop changes, and where it writes."""

    def __init__(
        self, spec: Spec, over: Federation, setup: build.Setup, directory: RunDirectory | None = None
    ) -> None:
        deploy.check(spec, setup)
        self.spec, self.over, self.setup, self.directory = spec, over, setup, directory
        self.state, self.clock, self.seconds, self.sent = setup.server.start(), Clock({}), 0.0, 0.0
        self.rows: list[dict[str, Any]] = []
        self.guarded: list[Guarded] = []
        self.every = spec.run.record_every or max(1, spec.run.rounds // 100)

    def again(self) -> Run:
        """The same run from its last checkpoint, or from the start."""
        return Run(self.spec, self.over, self.setup, self.directory)

    @property
    def started(self) -> bool:
        """Whether rounds were run before, by a process that is gone."""
        return self.directory is not None and (self.directory.path / "rounds.jsonl").exists()

    def check_not_released(self) -> None:
        """Refuse to repeat rounds whose exact noise no ledger kept."""
        if self.directory is not None and self.started and not self.spec.privacy.ledger:
            raise RunDirectoryError(
                f"{self.directory.path} drew exact noise and kept no ledger: what it released is lost, and would be "
                "released again. Start a new run elsewhere, with a ledger."
            )

    def restore(self, engine: dict[str, Array]) -> dict[str, Array] | None:
        """Take up the last checkpoint, if its arrays have the shapes of these; returns what the engine kept in it."""
        arrays = self._arrays(engine)
        layout: dict[str, Layout] = {name: (array.dtype.kind, array.shape) for name, array in arrays.items()}
        layout |= {"t": ("iu", ()), "clock_names": ("U", (None,)), "clock_seconds": ("f", (None,))}
        self.check_data()
        saved = self.directory.restore(layout) if self.directory is not None else None
        if self.directory is None or saved is None:
            return None
        own = {name: saved[f"server_{name}"] for name in self.state.own}
        self.state = State(int(saved["t"]), saved["w"], saved["average"], own)
        self.seconds, self.sent = float(saved["seconds"]), float(saved["sent"])
        names, spent = map(str, saved["clock_names"]), map(float, saved["clock_seconds"])
        self.clock = Clock(dict(zip(names, spent, strict=True)))
        self.rows = self.directory.rows()
        return {name[7:]: array for name, array in saved.items() if name.startswith("engine_")}

    @property
    def fingerprint(self) -> str:
        """Enough of the data and the spec to tell that a run is resumed on the same."""
        told = repr((sorted(self.spec.values().items()), self.over.agents, self.over.checksum))
        return hashlib.sha256(told.encode()).hexdigest()

    def check_data(self) -> None:
        """Refuse to go on with a run on other records, or by another spec."""
        saved = self.directory.saved() if self.directory is not None else None
        if self.directory is not None and saved is not None and str(saved.get("data")) != self.fingerprint:
            raise RunDirectoryError(
                f"{self.directory.path} was started on other data, by another spec.toml or another version of tacit: "
                "restore them, or start again."
            )

    def checkpoint(self, engine: dict[str, Array]) -> None:
        """Save all that the next round needs."""
        if self.directory is not None:
            self.directory.checkpoint(self._arrays(engine))

    def _arrays(self, engine: dict[str, Array]) -> dict[str, Array]:
        """The content of a checkpoint."""
        return {
            "t": np.array(self.state.t),
            "data": np.array(self.fingerprint),
            "w": self.state.w,
            "average": self.state.average,
            "seconds": np.array(self.seconds),
            "sent": np.array(self.sent),
            "clock_names": np.array(list(self.clock.seconds), dtype=str),
            "clock_seconds": np.array(list(self.clock.seconds.values()), dtype=float),
            **{f"server_{name}": array for name, array in self.state.own.items()},
            **{f"engine_{name}": array for name, array in engine.items()},
        }

    def hear(self, state: State, info: Info) -> dict[str, Any] | None:
        """Take one more round; the row of the round, if its turn to be measured and written has come."""
        self.state = state
        self.sent += info.sent
        self.clock.add(info)
        check_finite(self, info)
        if self.state.t % self.every and self.state.t not in (1, self.spec.run.rounds):
            return None
        row = measure(self.state, info, self.setup, self.over, self.clock)
        self.rows.append(row)
        if self.directory is not None:
            self.directory.append(row)
        return row

    def finish(self, path: str) -> Result:
        """The result, on disk if the run has a directory."""
        w, average = (self.setup.problem.domain.project(u) for u in (self.state.w, self.state.average))
        summary = summarize(self.spec, self.over, self.setup, self.rows[-1], self.seconds, path)
        summary |= {"sent_bytes": self.sent, "ledger_heads": deploy.heads(self.spec, self.guarded)}
        if self.directory is not None:
            over = self.over
            model = Model(w, average, over.classes, over.features, over.features[-1:] == ("intercept",), over.schema)
            summary = self.directory.finish(model.arrays(), summary)
        return Result(summary, self.rows, w, average)


def engine_for(runs: Sequence[Run], open_files: ExitStack) -> Any:
    """Who answers these runs: deployed agents, an engine of the ADMM family, or the host of other methods."""
    first, setups = runs[0], [run.setup for run in runs if isinstance(run.setup, AdmmSetup)]
    if not setups:
        return Hosted(runs)
    if deploy.wanted(first.spec):
        for run, setup in zip(runs, setups, strict=True):
            run.check_not_released()
            run.check_data()  # before an agent is asked to join again
            run.guarded = deploy.guarded(run.spec, setup, run.over, run.started, open_files)
        asked = [deploy.addressed(run.spec, own, run.guarded) for run, own in zip(runs, setups, strict=True)]
        return PlainEngine(asked, first.setup.shape)
    own = first.spec.run
    return ENGINES[own.engine]([setup.agents for setup in setups], first.setup.shape, own.device)


def together(runs: Sequence[Run], listener: Listener = nobody, stop: Patience | None = None) -> list[Result]:
    """Runs of equal length over the same shards, in lockstep on one engine; a single run is a batch of one.

    Their directories are locked meanwhile; a run that another process has finished is read, and not run again.
    `stop` tells afterwards of a signal that came in the last round, when there was nothing left to stop.
    """
    with ExitStack() as open_files:
        done: dict[Run, Result] = {}
        for run in runs:
            if run.directory is not None:
                open_files.enter_context(run.directory.alone())
                if run.directory.finished:
                    done[run] = _read(run.directory)
        left = [run for run in runs if run not in done]
        for run in left:
            notices.warn(run.spec, run.over, run.setup)
            if isinstance(run.setup, AdmmSetup):
                compatible.warn(run.setup.agents, run.setup.rho, run.spec.run.rounds)
        if left:
            results = _lockstep(left, engine_for(left, open_files), listener, stop or Patience())
            done |= zip(left, results, strict=True)
        return [done[run] for run in runs]


def settled(
    lanes: Sequence[tuple[K, Run]], run_all: Callable[[Sequence[Run]], Sequence[R]]
) -> Iterator[tuple[K, R | Diverged]]:
    """The outcome of every run of a batch, by its key; where one diverges, the others go on without it."""
    while lanes:
        try:
            results = run_all([run for _, run in lanes])
        except Diverged as lost:
            yield next(key for key, run in lanes if run is lost.run), lost
            lanes = [(key, run.again()) for key, run in lanes if run is not lost.run]
        else:
            yield from zip((key for key, _ in lanes), results, strict=True)
            return


def check_finite(run: Run, info: Info) -> None:
    """End a run whose model is no longer finite."""
    if not math.isfinite(info.step):
        raise Diverged(f"diverged in round {info.t}: w is not finite. Raise rho, or lower the step.", run)


def _lockstep(runs: Sequence[Run], engine: Any, listener: Listener, stop: Patience) -> list[Result]:
    first = runs[0]
    for r, run in enumerate(runs):
        saved = run.restore(engine.save(r))
        if saved is not None:
            engine.load(r, saved)
    if any(run.state.t != first.state.t for run in runs):
        raise RunDirectoryError("another process went on meanwhile with one of the runs: give the same command again.")

    def save() -> None:
        for r, run in enumerate(runs):
            run.checkpoint(engine.save(r))

    if first.state.t == 0 and deploy.wanted(first.spec):
        save()  # so that rounds the ledgers hold are resumed on the same records alone
    last = first.spec.run.rounds
    going = rounds([run.setup.server for run in runs], [run.state for run in runs], engine.exchange_all)
    tick = saved_at = time.monotonic()
    pause = CHECKPOINT_SECONDS
    with stop:
        while first.state.t < last:
            try:
                ended = next(going)
            except Refused:
                save()
                raise
            row = None
            for run, (state, info) in zip(runs, ended, strict=True):
                row = run.hear(state, info) or row
            now = time.monotonic()
            for run in runs:
                run.seconds += (now - tick) / len(runs)
            tick = now
            try:
                listener(first.state.t, row)
            except KeyboardInterrupt:
                stop.asked = True
            if stop.asked and first.state.t < last:
                save()
                raise Interrupted(f"stopped after {first.state.t} of {last} rounds")
            if now - saved_at > pause:
                save()
                saved_at = time.monotonic()
                pause = max(CHECKPOINT_SECONDS, 20 * (saved_at - now))  # at most a twentieth of the time is for saving
        return [run.finish(engine.path) for run in runs]
