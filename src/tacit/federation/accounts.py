"""Accounts of this machine: which of them may connect to an agent service, and whose a folder is.

A SuperNode runs code that the coordinator ships. Under the account of the agent service, that code can read records,
ledgers and keys; under an account of its own, it can open the socket of the service and nothing else.
"""

from __future__ import annotations

import os
import shlex
import socket
import sysconfig
from collections.abc import Iterator
from pathlib import Path

try:
    import grp
    import pwd
except ImportError:  # not on Windows, where no service runs
    grp = pwd = None  # type: ignore[assignment]

from tacit.errors import IncompatibleError, SpecError
from tacit.federation.site import Site

ONE = (
    "WARNING: {why}, so the SuperNode may run under the account of this service: code that the coordinator ships could "
    "then read the records, ledgers and keys. Except for a trial, give the node an account of its own (README.md of "
    "the site)."
)


def users(site: Site) -> set[int]:
    """Return the numbers of the accounts that may connect; refuse accounts that this machine does not have."""
    if not hasattr(socket, "SO_PEERCRED"):
        raise IncompatibleError("this system does not say who connects to a socket: run the service on Linux.")
    return {_user(site, name) for name in site.callers} or {os.getuid()}


def group(site: Site) -> int | None:
    """Return the number of the group of the socket; None if the site file names none."""
    if site.group is None:
        return None
    try:
        return grp.getgrnam(site.group).gr_gid
    except KeyError:
        if (number := _number(site.group)) is not None:
            return number
    raise SpecError(f"site.group: this machine has no group {site.group!r}: {_ways_out(site)}")


def warnings(site: Site) -> Iterator[str]:
    """Yield what is dangerous or will not work: a node under the account of the service, or kept from its socket."""
    allowed, own = users(site), os.geteuid()
    if own in allowed:
        yield ONE.format(why=f"site.callers {'names the account of this service' if site.callers else 'is not set'}")
    of_socket = group(site)
    of_socket = os.getegid() if of_socket is None else of_socket
    for name in site.callers:
        if _user(site, name) not in (0, own) and _is_known(name) and of_socket not in _groups(name):
            told = shlex.quote(name_of_group(of_socket))
            yield (
                f"WARNING: account {name} is not in the group {told} of the socket, and cannot open it unless its unit "
                f"adds that group: name a group of both in site.group, and usermod -aG {told} {shlex.quote(name)}."
            )


def check_owner(folder: Path, action: str) -> None:
    """Refuse to work in a folder of another account: what one of the two writes there, the other cannot use."""
    if pwd is None or (owner := folder.stat().st_uid) == os.geteuid():
        return
    scripts = Path(sysconfig.get_path("scripts")) / "tacit"
    words = [str(scripts) if scripts.exists() else "tacit", "federate", action, str(folder.absolute())]
    raise IncompatibleError(
        f"{folder} belongs to account {name_of(owner)}, and this process runs as {name_of(os.geteuid())}: what one of "
        f"them writes there, the other cannot use. Run it as its owner: sudo -u {_for_sudo(owner)} {shlex.join(words)}"
    )


def name_of(user: int) -> str:
    """Return the name of an account; its number, if it has no name here."""
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)


def _for_sudo(user: int) -> str:
    name = name_of(user)
    return f"'#{user}'" if name == str(user) else shlex.quote(name)


def _user(site: Site, name: str) -> int:
    """Return the number of an account; a container may know an account by its number alone."""
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        if (number := _number(name)) is not None:
            return number
    raise SpecError(f"site.callers: this machine has no account {name!r}: {_ways_out(site)}")


def _ways_out(site: Site) -> str:
    """What to do about an account or a group that is missing, as commands."""
    missing, of_socket = [name for name in site.callers if not _is_known(name)], shlex.quote(site.group or "")
    commands = [f"useradd --system {shlex.quote(name)}" for name in missing if _number(name) is None]
    if site.group is not None and _number(site.group) is None:
        commands.append(f"groupadd --force {of_socket}")
        own = [name_of(os.geteuid())] if os.geteuid() else []
        commands += [f"usermod -aG {of_socket} {shlex.quote(name)}" for name in (*site.callers, *own)]
    return (
        f"make it ({'; '.join(commands)}; README.md of the site has all commands). Or, only for a trial of all parties "
        "on one machine under one account, remove the lines callers and group (as tacit federate init --one-account "
        "writes the file)."
    )


def _number(name: str) -> int | None:
    return int(name) if name.isascii() and name.isdecimal() else None


def _is_known(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def _groups(name: str) -> list[int]:
    return os.getgrouplist(name, pwd.getpwnam(name).pw_gid)


def name_of_group(number: int) -> str:
    """Return the name of a group; its number, if it has no name here."""
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)
