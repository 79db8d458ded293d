"""Find out why the node of a site would not work, before Flower's SuperNode starts and ends without a reason."""

from __future__ import annotations

import grp
import os
import pwd
import socket
import stat
from pathlib import Path

from tacit.federation import wire
from tacit.federation.messages import Hello, written

SECONDS = 10.0  # that a service has to say who it is
_LARGEST = 1 << 20  # bytes of its introduction


def socket_problem(path: Path) -> str | None:
    """Say why this account cannot ask the agent service behind a socket, and what to do; None if it can.

    The service is asked to introduce itself, because it lets everybody connect who may open the file and then hears
    only the accounts that site.callers names.
    """
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stream:
            stream.settimeout(SECONDS)
            stream.connect(str(path))
            return _hearing_problem(stream, path)
    except FileNotFoundError:
        return _missing(path)
    except PermissionError:
        return _closed(path)
    except ConnectionRefusedError:
        return f"nobody listens at {path}: start the agent service (tacit agent serve agent/site.toml)."
    except (TimeoutError, BlockingIOError):
        return f"the agent service at {path} did not answer within {SECONDS:g} s: see its log, or start it again."
    except OSError as error:
        return f"cannot connect to {path} ({error.strerror or error}): correct node.socket in node.toml."


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


def _missing(path: Path) -> str:
    if not path.parent.is_dir():
        return f"the folder {path.parent} of the socket is missing: make it, or correct node.socket in node.toml."
    return f"no socket at {path} yet: start the agent service first (tacit agent serve agent/site.toml)."


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
    group = _group(found.st_gid)
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
    return f"{path} (owner {_name(found.st_uid)}, group {_group(found.st_gid)}, mode {stat.S_IMODE(found.st_mode):o})"


def _account() -> str:
    return _name(os.geteuid())


def _name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:  # a container may know an account by its number alone
        return str(user)


def _group(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)


def _members(number: int) -> list[str]:
    try:
        return grp.getgrgid(number).gr_mem
    except KeyError:
        return []
