"""The processes of a federation as commands: stock Flower, the door before it, and the agent service of a site.

    coordinator's folder   flower.toml   [flower] address and port that sites reach, control: the SuperLink's own port,
                                         per_address: connections of one address (optional)
    node's folder          node.toml     [node] superlink (host:port), socket of the agent service, port: on loopback
"""

from __future__ import annotations

import os
import shlex
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tacit import toml
from tacit.errors import MissingDependency, SpecError, missing_extra

FLOWER, NODE = "flower.toml", "node.toml"
DATABASE = "link.db"
LOOPBACK = "127.0.0.1"
PER_ADDRESS = 64  # connections that an address may hold at the door: a node has up to four, and sites may share one
FOLDER = "TACIT_FEDERATION"
_QUIET = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}  # no word to Flower's makers
_POLL = "0.1"  # seconds between two looks of Flower's for a message to carry; its own default is 1


@dataclass(frozen=True)
class Command:
    """A command, and what it adds to the environment."""

    words: list[str]
    environment: dict[str, str] = field(default_factory=dict)

    def shell(self) -> str:
        """The command as a shell takes it."""
        given = [f"{name}={shlex.quote(value)}" for name, value in self.environment.items()]
        return " ".join([*given, shlex.join(self.words)])

    def surroundings(self) -> dict[str, str]:
        """The whole environment. Flower looks for its own commands on the path, so they are there."""
        path = f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ.get('PATH', '')}"
        return os.environ | {"PATH": path} | self.environment

    def run_here(self) -> None:
        """Become the command; there is no way back."""
        sys.stdout.flush()
        try:
            os.execvpe(self.words[0], self.words, self.surroundings())
        except FileNotFoundError:
            raise missing(self.words[0]) from None


def missing(command: str) -> MissingDependency:
    """The error for a command of Flower's that is not installed."""
    return missing_extra(f"{command} is not installed", "flower")


@dataclass(frozen=True)
class Ports:
    """Where a coordinator listens: `address` and `port` for sites, `control` on its own machine alone.

    `per_address` is how many connections one address may hold.
    """

    address: str
    port: int
    control: int
    per_address: int = PER_ADDRESS


def ports(folder: Path) -> Ports:
    """What flower.toml of a coordinator's folder says."""
    kinds = {"address": str, "port": int, "control": int, "per_address": int}
    return Ports(**_section(folder / FLOWER, "flower", kinds, {"per_address": PER_ADDRESS}))


@dataclass(frozen=True)
class Node:
    """What a node is told: the address of the door, the socket of the agent service, its own port on loopback."""

    superlink: str
    socket: Path
    port: int


def node(folder: Path) -> Node:
    """What node.toml of a node's folder says."""
    found = _section(folder / NODE, "node", {"superlink": str, "socket": str, "port": int})
    return Node(found["superlink"], Path(os.path.normpath(folder.absolute() / found["socket"])), found["port"])


def superlink(folder: Path, control: int | None = None) -> Command:
    """Flower's SuperLink: it listens on this machine alone, keeps its state on disk, and knows nodes by their keys."""
    folder = folder.absolute()
    words = ["flower-superlink", "--host", LOOPBACK, "--port", str(control or ports(folder).control)]
    words += ["--ssl-ca-certfile", str(folder / "ca.pem"), "--ssl-certfile", str(folder / "server.pem")]
    words += ["--ssl-keyfile", str(folder / "server.key"), "--enable-supernode-auth"]
    words += ["--database", str(folder / DATABASE), "--disable-runtime-dependency-installation"]
    return Command(words, home(folder) | {FOLDER: str(folder), "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": _POLL})


def door(folder: Path, host: str = "0.0.0.0", port: int | None = None, control: int | None = None) -> Command:
    """The door before the SuperLink."""
    words = [sys.executable, "-m", "tacit", "federate", "door", str(folder.absolute()), "--host", host]
    for flag, value in (("--port", port), ("--control", control)):
        words += [flag, str(value)] if value else []
    return Command(words)


def supernode(folder: Path, link: str | None = None, port: int | None = None) -> Command:
    """Flower's SuperNode of a site: it runs the courier, and calls out; nobody calls in."""
    folder = folder.absolute()
    found = node(folder)
    words = ["flower-supernode", "--superlink", link or found.superlink]
    words += ["--root-certificates", str(folder / "ca.pem"), "--auth-supernode-private-key", str(folder / "node.key")]
    words += ["--host", LOOPBACK, "--port", str(port or found.port), "--node-config", f'socket="{found.socket}"']
    return Command(words, home(folder) | {"FLWR_SUPEREXEC_TASK_POLL_INTERVAL": _POLL})


def service(folder: Path) -> Command:
    """The agent service of a site; `folder` holds its site.toml."""
    return Command([sys.executable, "-m", "tacit", "agent", "serve", str(folder.absolute() / "site.toml")])


def home(folder: Path) -> dict[str, str]:
    """Flower's own files stand in the folder, and no telemetry leaves."""
    return _QUIET | {"FLWR_HOME": str(folder.absolute() / "flower")}


def _section(
    path: Path, section: str, kinds: dict[str, type], usual: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any]:
    """The values of a section, each of its kind; `usual` has those of keys that may be missing."""
    found = toml.parsed(toml.text_of(path), str(path))
    values: dict[str, Any] = {}
    for name, kind in kinds.items():
        value: Any = found.pop(f"{section}.{name}", usual.get(name))
        if type(value) is not kind or (type(value) is int and not 0 < value < 2**16):
            takes = "a number from 1 to 65535" if kind is int else "a text"
            raise SpecError(f"{path}: {section}.{name} takes {takes}, got {value!r}.")
        values[name] = value
    if found:
        raise SpecError(f"{path} has no key {next(iter(found))}: it takes {section}.{', '.join(kinds)}.")
    return values
