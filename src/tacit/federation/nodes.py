"""The nodes of a federation, through Flower's own command line: which keys are known, and for which sites."""

from __future__ import annotations

import json
import socket
import subprocess
from pathlib import Path
from typing import Any

from tacit.errors import SpecError, TacitError
from tacit.federation import certificates, commands, folders
from tacit.federation.log import LONGEST_REASON
from tacit.federation.plan import FEDERATION, read_plan
from tacit.machine import write_whole

LINK = "coordinator"  # the name of the connection in Flower's config


def flwr(folder: Path, *words: str, control: int | None = None) -> dict[str, Any]:
    """Run a command of Flower's against the SuperLink of this machine, and return what it says."""
    _connect(folder, control)
    command = commands.Command(["flwr", *words, "--format", "json"], commands.home(folder))
    try:
        done = subprocess.run(command.words, env=command.surroundings(), capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise commands.missing("flwr") from None
    try:
        told = json.loads(done.stdout)
    except ValueError:
        told = {}
    if done.returncode or not isinstance(told, dict) or not told.get("success"):
        said = told.get("error-message") if isinstance(told, dict) else ""
        text = " ".join(str(said or done.stderr or done.stdout).split())[-500:]
        away = not listens(control or commands.ports(folder).control)
        raise (Unreachable if away else Declined)(f"flwr {words[0]}: {text}")
    return told


class Declined(TacitError):
    """Flower does not do what it was asked."""


class Unreachable(Declined):
    """The SuperLink is not there."""


def register(folder: Path, site: str | None = None, key: Path | None = None, control: int | None = None) -> list[str]:
    """Register the keys of nodes that have no id yet, or another key for one site; write their ids."""
    plan = read_plan(folder)
    if site is not None and site not in {one.name for one in plan.sites}:
        raise SpecError(f"{site!r} is no site of {folder / FEDERATION}.")
    if key is not None and site is None:
        raise SpecError("--key is the key of one site: name it with --site.")
    nodes = {one.name: one.node for one in plan.sites if one.node is not None}
    new = [one.name for one in plan.sites if one.name == site or (site is None and one.node is None)]
    for name in new:
        file = key or folder / "nodes" / f"{name}.pub"
        if not file.is_file():
            raise SpecError(f"the public key of site {name} is not at {file}: ask the site for its node.pub.")
        text = certificates.check_node(file)  # before the old key is given up
        if name in nodes:  # the old key opens nothing from now on
            flwr(folder, "supernode", "unregister", str(nodes[name]), LINK, control=control)
        nodes[name] = _registered(folder, name, file, control)
        (folder / "nodes" / f"{name}.pub").write_bytes(text)
        _write_nodes(folder, nodes)
    return new


def _registered(folder: Path, site: str, key: Path, control: int | None) -> int:
    try:
        told = flwr(folder, "supernode", "register", str(key.absolute()), LINK, "--name", site[:32], control=control)
    except Declined as error:
        if "already in use" not in str(error):
            raise
        raise SpecError(
            f"Flower has seen the key of site {site} before, and takes no key twice, revoked ones least of all: ask "
            f"for a new one (tacit federate register {folder} --site {site} --key FILE), or remove the site "
            f"from {FEDERATION}."
        ) from None
    return int(told["node-id"])


def revoke(folder: Path, site: str, control: int | None = None) -> None:
    """Let the node of a site in no more, and forget its id."""
    nodes = {one.name: one.node for one in read_plan(folder).sites if one.node is not None}
    if site not in nodes:
        raise SpecError(f"{site!r} is no site with a node in {folder / FEDERATION}.")
    flwr(folder, "supernode", "unregister", str(nodes.pop(site)), LINK, control=control)
    _write_nodes(folder, nodes)


def status(folder: Path, run: str, control: int | None = None) -> tuple[str, str]:
    """Return the status of a run of Flower's, such as running or finished:failed, and its details."""
    told = flwr(folder, "list", LINK, "--run-id", run, control=control)
    try:
        (found,) = told["runs"]
        return str(found["status"]), _printable(str(found["status-details"]))
    except (KeyError, TypeError, ValueError):
        raise Declined("flwr list: it does not say how the run is: check that flwr is of version 1.41.") from None


def _printable(text: str) -> str:
    """Return the text of an error on one line; what a site has put into it cannot move anybody's cursor."""
    return "".join(letter if letter.isprintable() else "?" for letter in " ".join(text.split()))[:LONGEST_REASON]


def log_command(folder: Path, run: str) -> str:
    """Return the command that shows what Flower has kept of the words of a run's process."""
    home = {"FLWR_HOME": commands.home(folder)["FLWR_HOME"]}
    return commands.Command(["flwr", "log", run, LINK, "--show"], home).shell()


def listens(port: int) -> bool:
    """Whether somebody listens on a port of this machine."""
    try:
        with socket.create_connection((commands.LOOPBACK, port), 1.0):
            return True
    except OSError:
        return False


def _connect(folder: Path, control: int | None) -> None:
    """Write Flower's config: how its command line reaches the SuperLink of this machine."""
    at = f"{commands.LOOPBACK}:{control or commands.ports(folder).control}"
    ca = json.dumps(str((folder / "ca.pem").absolute()))
    text = f'[superlink]\ndefault = "{LINK}"\n\n[superlink.{LINK}]\naddress = "{at}"\nroot-certificates = {ca}\n'
    (folder / "flower").mkdir(exist_ok=True)
    write_whole(folder / "flower" / "config.toml", lambda file: file.write(text.encode()))


def _write_nodes(folder: Path, nodes: dict[str, int]) -> None:
    plan, path = read_plan(folder), folder / FEDERATION
    kept = path.read_text().partition("[[site]]")[0]
    text = folders.plan_text(plan.name, {one.name: one.agents for one in plan.sites}, nodes, kept)
    write_whole(path, lambda file: file.write(text.encode()))
