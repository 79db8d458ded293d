"""What a coordinator does through Flower's own command line: start a run, and see it through.

The ServerApp (tacit.federation.flower) runs in a process that the SuperLink starts. It says how it is doing in a file
beside a lock that the system frees however that process ends, so whoever watches knows a run that goes on from one
whose process was killed, minutes before Flower does, and starts it again: it continues from its checkpoint.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit import jsontext
from tacit.errors import InputError, Interrupted, RunDirectoryError, TacitError
from tacit.federation import folders, nodes, status
from tacit.federation.accounts import name_of
from tacit.federation.asked import read_run
from tacit.federation.coordinator import RUNS, check_unused, next_run, unfinished
from tacit.federation.log import REMIND_EVERY
from tacit.federation.nodes import LINK, Declined, Unreachable, flwr, register
from tacit.federation.plan import read_plan
from tacit.jsontext import Values
from tacit.lock import locked
from tacit.machine import write_whole
from tacit.run.directory import RunDirectory

LOG = "log.jsonl"
STATE, LOCK = "app.json", "app.lock"
RUNNING, FINISHED, STOPPED = "running", "finished", "stopped"
PATIENCE = 300.0  # seconds that the SuperLink may be away
STARTING = 120.0  # seconds from Flower's "started" to our process
ASKING = 2.0  # seconds between two questions to Flower meanwhile: each is a command of a second
FAILED = "finished:failed"  # what Flower calls a run whose process raised an error
PAUSE = 0.5
IN_VAIN = 5  # starts in a row after which no round was done

Show = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class ServerAppState:
    """How the ServerApp of a run of Flower's is doing."""

    flower: str
    state: str
    text: str = ""
    wrong: bool = False  # the input is at fault
    pid: int | None = None

    def write(self, folder: Path) -> None:
        text = jsontext.dumps(vars(self))
        write_whole(folder / "flower" / STATE, lambda file: file.write(text.encode()))


def state_of(folder: Path) -> ServerAppState | None:
    """What the last ServerApp said; None where there was none."""
    try:
        return ServerAppState(**json.loads((folder / "flower" / STATE).read_text()))
    except (OSError, ValueError, TypeError):
        return None


@contextmanager
def working(folder: Path, seconds: float) -> Iterator[bool]:
    """Hold the lock of the process that runs the loop; False where another one holds it for so many seconds."""
    path = folder / "flower" / LOCK
    path.parent.mkdir(exist_ok=True)
    path.touch()
    end = time.monotonic() + seconds
    while True:
        with locked(path, wait=False) as ours:
            if ours or time.monotonic() >= end:
                yield ours
                return
        time.sleep(0.1)


def is_working(folder: Path) -> bool:
    """Whether a ServerApp runs now. Nothing is made: a file of another account than the ServerApp's would stop it."""
    try:
        with locked(folder / "flower" / LOCK, wait=False) as ours:
            return not ours
    except FileNotFoundError:
        return False


def standing(folder: Path) -> Values:
    """Return what the coordinator's file says, whether its process runs, and why it stopped if it does not."""
    with _one_account(folder):
        said, working = state_of(folder), is_working(folder)
    why = said.text if said is not None and said.state == STOPPED else ""
    try:
        found = status.read(folder)
    except RunDirectoryError:
        if not why:
            raise
        found = {"federation": read_plan(folder).name}  # its process ended before it could wait for anybody
    found["process"] = "running" if working else "not running"
    if not working and why:
        found |= {"state": status.STOPPED, "reason": why}
    elif not working and found["state"] not in (status.FINISHED, status.STOPPED):
        found |= {"state": status.INTERRUPTED, "reason": "its process ended without a word; tacit federate run goes on"}
    return found


@contextmanager
def _one_account(folder: Path) -> Iterator[None]:
    """Say what to do about a file that another account has made."""
    try:
        yield
    except PermissionError as error:
        raise RunDirectoryError(
            f"{error.filename} is closed to this account: another one has made it. One account owns {folder} and runs "
            f"all commands there: as root, chown -R {name_of(folder.stat().st_uid)}: {folder}"
        ) from None


def run(folder: Path, show: Show, control: int | None = None) -> Path:
    """See one run through, and return its directory. A run whose process ended is started again, and goes on."""
    with _one_account(folder):
        return _run(folder, show, control)


def _run(folder: Path, show: Show, control: int | None) -> Path:
    going, lines = unfinished(folder), _Lines(folder / LOG)
    if going is None:
        check_unused(folder, read_run(folder))
    target = going.path if going else folder / RUNS / next_name(folder)
    state = state_of(folder) if is_working(folder) else None
    flower, vain, failed = state.flower if state else "", 0, ""
    while True:
        before = _rounds(target)
        if not flower:
            flower = _started(folder, target.name, show, control)
        ended = _watched(folder, flower, lambda: lines.show(show), show, control)
        lines.show(show)
        if RunDirectory(target).finished:
            return target
        if ended is not None and ended.state == STOPPED:
            raise (InputError if ended.wrong else Interrupted)(ended.text)
        vain = 0 if _rounds(target) > before else vain + 1
        why = ended.text if ended is not None else _failure(folder, flower, control)
        if vain >= IN_VAIN or (vain > 1 and why and why == failed):  # the same twice: it would not end
            raise _in_vain(folder, flower, vain, why)
        failed = why
        said = f" ({why})" if why else ""
        show({"text": f"the process of the run ended{said}: starting it again, from its last round"})
        with _forgiven():
            flwr(folder, "stop", flower, LINK, control=control)
        flower = ""


def next_name(folder: Path) -> str:
    """The name of the next run."""
    return next_run(folder, read_plan(folder).name).name


def _started(folder: Path, name: str, show: Show, control: int | None) -> str:
    """Start a run of Flower's; wait for the SuperLink where it is away."""
    end, told = time.monotonic() + PATIENCE, False
    folders.ship(folder / "app")  # of this version
    while True:
        try:
            register(folder, control=control)
            app, config = str((folder / "app").absolute()), f'run="{name}"'
            number = str(flwr(folder, "run", app, LINK, "-c", config, control=control)["run-id"])
            show({"text": f"run {name}: Flower starts its process, which takes some seconds"})
            return number
        except Unreachable as error:
            if time.monotonic() > end:
                raise TacitError(f"the SuperLink is not there ({error}): start it with tacit federate link.") from None
            if not told:
                show({"text": "waiting for the SuperLink"})
            told = True
            time.sleep(PAUSE)


def _failure(folder: Path, flower: str, control: int | None) -> str:
    """Return why Flower says that a run has failed; nothing if it does not say so."""
    try:
        status, details = nodes.status(folder, flower, control)
    except Declined:
        return ""
    return details if status == FAILED else ""


def _in_vain(folder: Path, flower: str, times: int, why: str) -> TacitError:
    """The error after so many starts without a round; the reason stays beside the run, for its status."""
    text = (
        f"the process of the run ended {times} times before a round was done{f': {why}' if why else ''}. Nothing was "
        f"lost; see to it, and give the same command again. The SuperLink and this command run under the account that "
        f"owns {folder}. More is in {folder / LOG}, and said by: {nodes.log_command(folder, flower)}"
    )
    with suppress(OSError):  # the folder may be what is wrong
        ServerAppState(flower, STOPPED, text).write(folder)
    return RunDirectoryError(text)


def _watched(
    folder: Path, flower: str, look: Callable[[], None], show: Show, control: int | None
) -> ServerAppState | None:  # fmt: skip
    """Wait until the ServerApp of a run has ended; None where it ended without a word, or never began.

    Before it has said anything, Flower is asked: a process that fails at once says why to nobody else.
    """
    began = asked = told = time.monotonic()
    end = began + STARTING
    while True:
        look()
        working = is_working(folder)
        state = state_of(folder)
        ours = state is not None and state.flower == flower
        if ours and state is not None and state.state != RUNNING:
            return state
        now = time.monotonic()
        if (ours and not working) or now > end:
            return None
        if not ours and now >= asked + ASKING:
            if why := _failure(folder, flower, control):
                return ServerAppState(flower, FAILED, why)
            asked = time.monotonic()
        if not ours and now >= told + REMIND_EVERY:
            show({"text": f"waiting for Flower to start the process of the run, for {now - began:.0f} s"})
            told = now
        if ours:
            end = time.monotonic() + STARTING
        time.sleep(PAUSE)


class _Lines:
    """The lines that a log gains."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.at = path.stat().st_size if path.exists() else 0

    def show(self, show: Show) -> None:
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(self.at)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self.at += len(line)
                with _forgiven():
                    show(json.loads(line))


@contextmanager
def _forgiven() -> Iterator[None]:
    """Go on where a courtesy fails: stop what may be over, show what may be half a line."""
    with suppress(Declined, ValueError):
        yield


def _rounds(path: Path) -> int:
    return len(RunDirectory(path).rows()) if path.exists() else 0
