"""Train: the loop around the rounds of a run, which measures, writes records, and can stop and resume."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, TypeVar

from tacit.admm import compatible
from tacit.arguments import path_text
from tacit.data.spec import GIVEN
from tacit.engine.registry import ENGINES
from tacit.errors import Diverged, Implausible, InputError, Interrupted, Refused, RunDirectoryError
from tacit.lock import StopRequests
from tacit.rounds import rounds
from tacit.run import build, deploy, guarantee, ranks
from tacit.run.asking import AskingEngine
from tacit.run.directory import RunDirectory
from tacit.run.hosted import Hosted, SpreadHosted
from tacit.run.model import Model
from tacit.run.noise import with_noise
from tacit.run.presets import fitted_to
from tacit.run.result import Result
from tacit.run.run import Run
from tacit.run.spec import Spec
from tacit.types import Federation

CHECKPOINT_SECONDS = 15.0
KEPT_ROUNDS = 10  # of which ledgers keep the answers: then a checkpoint is written, and they may go

K = TypeVar("K")
R = TypeVar("R")

Listener = Callable[[int, dict[str, Any] | None], None]  # (rounds done, a row if one was recorded)
Host = Callable[[Sequence[Run], ExitStack], Any]  # who builds the engine of some runs


def nobody(_done: int, _row: dict[str, Any] | None) -> None: ...


class GracefulInterrupt:
    """Context manager: the first SIGINT or SIGTERM only sets `asked`, the second one ends the process at once."""

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> GracefulInterrupt:
        if threading.current_thread() is threading.main_thread():  # Python lets only the main thread handle signals
            self._before = {number: signal.signal(number, self._hear) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _hear(self, _number: int, _frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


def train(
    spec: Spec, federation: Federation | None = None, out: Path | str | None = None, listener: Listener = nobody
) -> Result:
    """Train from the start; if `out` is given, write every record into that directory as the run goes on.

    Under the sound preset, a spec without a seed asks for exact noise of the operating system (tacit.run.noise).
    """
    spec = with_noise(spec.checked())
    if federation is not None:
        spec = spec.with_values({"data.source": GIVEN + federation.name})
    federation = ranks.federation(spec) if federation is None else build.transformed(spec, federation)
    spec = deploy.named(fitted_to(federation, spec))
    run = Run(spec, federation, build.setup(spec, federation))
    if out is None:
        return together([run], listener)[0]
    run.directory = RunDirectory.create(Path(out), spec)
    try:
        return _alone(run, run.directory, listener)
    except InputError:
        run.directory.discard()  # the run was refused before its first round, so the directory holds nothing to keep
        raise


def resume(path: Path | str, federation: Federation | None = None, listener: Listener = nobody) -> Result:
    """Continue a run that was stopped; the result is the result of the uninterrupted run."""
    directory = RunDirectory.open(Path(path_text("path", path, "the directory of a run")))
    spec = directory.spec()
    if directory.finished:
        # a process that ended between its result and its keys has left some
        deploy.forget_keys(spec, Path(spec.privacy.ledger) if spec.privacy.ledger else directory.path / "ledgers")
        return _read(directory)
    if federation is None and spec.data.source.startswith(GIVEN):
        raise RunDirectoryError(f"{path} was trained on data given in Python: resume it there, with that federation.")
    federation = ranks.federation(spec) if federation is None else build.transformed(spec, federation)
    return _alone(Run(spec, federation, build.setup(spec, federation), directory), directory, listener)


def _read(directory: RunDirectory) -> Result:
    model = Model.read(directory.path)
    return Result(directory.result(), directory.rows(), model.w, model.w_average, model)


def _alone(run: Run, directory: RunDirectory, listener: Listener) -> Result:
    """Compute one run; if the run is stopped, the error says how to continue it, or that nobody can."""
    ranks.advise(directory.path)
    try:
        return together([run], listener)[0]
    except Interrupted as stop:
        if deploy.wanted(run.spec) and run.ledgers is None:
            todo = "it kept no ledger, so it cannot go on: start a new run, with --ledger"
        else:
            todo = f"continue with: tacit train --resume {directory.path}"
        raise Interrupted(f"{stop}; {todo}") from None


def engine_for(runs: Sequence[Run], open_files: ExitStack) -> Any:
    """Return the engine that answers these runs: deployed agents, an ADMM engine, or the host of other methods."""
    first, setups = runs[0], [run.setup for run in runs]
    exact = deploy.wanted(first.spec)
    if first.setup.hosted is not None and not exact:
        return SpreadHosted(runs) if ranks.is_spread(first.federation) else Hosted(runs)
    if exact:
        for run, setup in zip(runs, setups, strict=True):
            run.check_not_released()
            run.check_data()  # before an agent is asked to join again
            run.deployed = deploy.deployed(
                run.spec, setup, run.federation, run.ledgers, run.started, open_files
            )
    if exact or first.setup.in_sum is not None:
        lanes = [deploy.lane(run.spec, run.setup, run.federation, run.deployed) for run in runs]
        engine = AskingEngine(lanes)
        open_files.callback(engine.close)  # before the ledgers, which were opened before
        return engine
    if ranks.is_spread(first.federation):
        return ranks.engine([run.spec for run in runs], setups, first.federation)
    own = first.spec.run
    return ENGINES[own.engine]([setup.agents for setup in setups], first.setup.shape, own.device)


def together(
    runs: Sequence[Run],
    listener: Listener = nobody,
    stop: GracefulInterrupt | None = None,
    host: Host = engine_for,
    save_every_round: bool = False,
) -> list[Result]:
    """Compute runs of equal length over the same shards in lockstep on one engine; a single run is a batch of one.

    The directories of the runs are locked meanwhile; a run that another process has finished is read, and not run
    again. `stop` tells afterwards of a signal that came in the last round, when there was nothing left to stop. `host`
    builds the engine, when the directories are locked. With `save_every_round`, no question leaves before the round
    before it is on disk.
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
            guarantee.warn(run.spec, run.federation, run.setup)
            if run.setup.agents:
                compatible.warn(run.setup.agents, run.setup.rho, run.spec.run.rounds)
        if left:
            engine, stop = host(left, open_files), stop or GracefulInterrupt()
            with stop:  # before the first file changes: a signal then waits for the end of a round
                try:
                    results = _lockstep(left, engine, listener, stop, save_every_round)
                except Diverged as lost:
                    for run in left:
                        if run is lost.run:
                            deploy.end(run.spec, run.deployed, "it diverged")
                    raise
                except Implausible:  # of a deployed agent: such runs are in no batch
                    for run in left:
                        deploy.end(run.spec, run.deployed, "an answer was not plausible")
                    raise
            done |= zip(left, results, strict=True)
        return [done[run] for run in runs]


def settled(
    lanes: Sequence[tuple[K, Run]], run_all: Callable[[Sequence[Run]], Sequence[R]]
) -> Iterator[tuple[K, R | Diverged]]:
    """Yield the key and the outcome of every run of a batch; if a run diverges, the other runs continue without it."""
    while lanes:
        try:
            results = run_all([run for _, run in lanes])
        except Diverged as lost:
            yield next(key for key, run in lanes if run is lost.run), lost
            lanes = [(key, run.again()) for key, run in lanes if run is not lost.run]
        else:
            yield from zip((key for key, _ in lanes), results, strict=True)
            return


def _lockstep(
    runs: Sequence[Run], engine: Any, listener: Listener, stop: GracefulInterrupt, save_every_round: bool = False
) -> list[Result]:
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
            if run.directory is not None:  # else nothing was saved, and the run may begin again
                deploy.forget(run.spec, run.deployed, run.state.t)

    if first.state.t == 0 and deploy.wanted(first.spec):
        save()  # rounds that the ledgers hold can then be resumed on the same records only
    last = first.spec.run.rounds
    requests = StopRequests([run.directory.path for run in runs if run.directory is not None])
    going = rounds([run.setup.server for run in runs], [run.state for run in runs], engine.exchange_all)
    tick = saved_at = time.monotonic()
    pause = CHECKPOINT_SECONDS
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
        if requests.found(now):
            stop.asked = True
        if stop.asked and first.state.t < last:
            save()
            requests.forget()
            raise Interrupted(f"stopped after {first.state.t} of {last} rounds")
        full = first.ledgers and first.state.t % KEPT_ROUNDS == 0
        if (now - saved_at > pause or full or save_every_round) and first.state.t < last:
            save()
            saved_at = time.monotonic()
            pause = max(CHECKPOINT_SECONDS, 20 * (saved_at - now))  # at most a twentieth of the time is for saving
    requests.forget()
    return [run.finish(engine.path) for run in runs]
