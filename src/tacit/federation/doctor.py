"""Find out why the node of a site would not work, before Flower's SuperNode starts and ends without a reason.

`examine` is for `tacit federate doctor`; `await_ready` is the same, before `tacit federate node` turns into Flower.
"""

from __future__ import annotations

import grp
import os
import socket
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tacit.errors import SpecError, TacitError
from tacit.federation import accounts, certificates, commands, wire
from tacit.federation.messages import Hello, written
from tacit.federation.reach import NOTE, OK, PROBLEM, SKIPPED, STEPS, CheckResult, steps

SECONDS = 10.0  # that a service has to say who it is
PAUSE = 5.0  # seconds between two looks for what may come by itself
REMINDER = 60.0  # seconds between two lines that say the same
_LARGEST = 1 << 20  # bytes of an introduction


class NotReady(TacitError):
    """The node would end at once, or do nothing, and waiting does not help."""


def node_folder(folder: Path) -> Path:
    """The folder of a node, given itself or the folder of its site."""
    for one in (folder / "node", folder):
        if (one / commands.NODE).is_file():
            return one
    raise SpecError(f"{folder} is no node's folder (no {commands.NODE}): name SITE/node of what the coordinator sent.")


def examine(folder: Path, starting: bool = False) -> Iterator[CheckResult]:
    """Check all that a node needs. What its own machine lacks comes first; it is found without asking anybody."""
    node = commands.node(folder)
    mine = _key(folder)
    yield mine
    found = _heard(node.socket)
    told = f"{node.socket} answers account {_account()}" if found is None else found[0]
    yield CheckResult("socket", OK if found is None else PROBLEM, told, waits=found is not None and found[1])
    yield _port(node.port, starting)
    seen = set()
    if mine.state != PROBLEM:
        for one in steps(node.superlink, folder / "ca.pem", folder / "node.key", starting):
            seen.add(one.name)
            yield one
    for name in STEPS:
        if name not in seen:
            yield CheckResult(name, SKIPPED, "what stands above has to be right first")


def await_ready(folder: Path, show: Callable[[str], None], pause: float = PAUSE) -> None:
    """Return when the node can start. Wait for what may come by itself, and say so; NotReady for all else."""
    said, when = "", 0.0
    while (found := _hindrance(folder, show)) is not None:
        if not found.waits:
            raise NotReady(f"{found.name}: {found.text}")
        if found.text != said or time.monotonic() - when >= REMINDER:
            said, when = found.text, time.monotonic()
            show(f"waiting: {said}")
        time.sleep(pause)


def _hindrance(folder: Path, show: Callable[[str], None]) -> CheckResult | None:
    """The first thing that keeps a node from working; what does not is shown in passing."""
    notes = []
    for one in examine(folder, starting=True):
        if one.state == PROBLEM and one.name != "version":  # the coordinator says itself what it does not understand
            return one
        notes += [f"{one.name}: {one.text}"] if one.state in (NOTE, PROBLEM) else []
    for note in notes:
        show(note)
    return None


def _key(folder: Path) -> CheckResult:
    path = folder / "node.key"
    try:
        mark = certificates.fingerprint(path)
    except SpecError as error:
        return CheckResult("node.key", PROBLEM, str(error))
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        return CheckResult("node.key", NOTE, f"{_described(path)}: others may read it; chmod 600 it.")
    return CheckResult("node.key", OK, f"{mark}")


def _port(port: int, starting: bool) -> CheckResult:
    """Check that Flower can listen on its port of loopback."""
    try:
        with socket.create_server((commands.LOOPBACK, port)):
            return CheckResult("port", OK, f"{port} of {commands.LOOPBACK} is free")
    except OSError as error:
        text = f"{port} of {commands.LOOPBACK} cannot be taken ({os.strerror(error.errno or 0)})"
    if starting:
        text += ": another node may run on this machine; give each its own node.port in node.toml."
        return CheckResult("port", PROBLEM, text)
    text += ": that is well if the node of this folder is running; else change node.port in node.toml."
    return CheckResult("port", NOTE, text)


def socket_problem(path: Path) -> str | None:
    """Say why this account cannot ask the agent service behind a socket, and what to do; None if it can."""
    found = _heard(path)
    return None if found is None else found[0]


def _heard(path: Path) -> tuple[str, bool] | None:
    """Return what is wrong with a socket, and whether it may be well later, when the service has started.

    The service is asked to introduce itself, because it lets everybody connect who may open the file and then hears
    only the accounts that site.callers names.
    """
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stream:
            stream.settimeout(SECONDS)
            stream.connect(str(path))
            problem = _hearing_problem(stream, path)
            return None if problem is None else (problem, False)
    except FileNotFoundError:
        return _missing(path)
    except PermissionError:
        return _closed(path), False
    except ConnectionRefusedError:
        return f"nobody listens at {path}: start the agent service (tacit agent serve agent/site.toml).", True
    except (TimeoutError, BlockingIOError):
        return f"the agent service at {path} did not answer within {SECONDS:g} s: see its log, or start it again.", True
    except OSError as error:
        return f"cannot connect to {path} ({error.strerror or error}): correct node.socket in node.toml.", False


def _hearing_problem(stream: socket.socket, path: Path) -> str | None:
    try:
        wire.send(stream, *written(Hello()))
        stream.shutdown(socket.SHUT_WR)
        found, _ = wire.receive(stream, _LARGEST, SECONDS)
    except (ConnectionResetError, BrokenPipeError, wire.Malformed):
        return (
            f"the agent service at {path} does not answer account {_account()}: name it in agent/site.toml "
            f'(callers = ["{_account()}"]), and start the service again. Its log says whom it turned away.'
        )
    if found.get("kind") != "introduction":
        return f"what answers at {path} does not introduce itself: install the same version of tacit at both."
    return None


def _missing(path: Path) -> tuple[str, bool]:
    if not path.parent.is_dir():
        told = f"the folder {path.parent} of the socket is missing: make it, or correct node.socket in node.toml."
        return told, False
    return f"no socket at {path} yet: start the agent service first (tacit agent serve agent/site.toml).", True


def _closed(path: Path) -> str:
    """Name what is closed to this account, a folder above the socket or the socket, and what would open it."""
    for folder in reversed(path.parents):
        if not os.access(folder, os.X_OK, effective_ids=True):
            return f"account {_account()} may not enter {_described(folder)}: {_join(folder.stat())}."
    return (
        f'account {_account()} may not open {_described(path)}: set callers = ["{_account()}"] and group = "GROUP" in '
        "agent/site.toml, where GROUP is a group of both accounts, and start the service again."
    )


def _join(found: os.stat_result) -> str:
    """Say how an account gets into a folder that its group may enter."""
    group = accounts.name_of_group(found.st_gid)
    if not found.st_mode & stat.S_IXGRP:
        return "give it a group of both accounts (chgrp GROUP) and the mode 750"
    if _account() in _members(found.st_gid):
        return f"it joined the group {group} after this process began, so log in again or restart the unit"
    return f"add the account to the group {group} (usermod -aG {group} {_account()}), and log in again"


def _described(path: Path) -> str:
    try:
        found = path.stat()
    except OSError:  # it has gone since
        return str(path)
    owner, group = accounts.name_of(found.st_uid), accounts.name_of_group(found.st_gid)
    return f"{path} (owner {owner}, group {group}, mode {stat.S_IMODE(found.st_mode):o})"


def _account() -> str:
    return accounts.name_of(os.geteuid())


def _members(number: int) -> list[str]:
    try:
        return grp.getgrgid(number).gr_mem
    except KeyError:
        return []
