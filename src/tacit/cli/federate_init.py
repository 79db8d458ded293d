"""tacit federate init: the folders of a federation, and what each party does with its own."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tacit import jsontext
from tacit.cli.folding import say
from tacit.cli.options import finish
from tacit.errors import SpecError

if TYPE_CHECKING:
    from tacit.federation.folders import FolderLayout


def add_action(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the action."""
    init = actions.add_parser("init", help="write the folders of the coordinator and of each site")
    init.add_argument("folder", type=Path, metavar="DIR", help="a new folder")
    init.add_argument("--sites", required=True, metavar="A,B,...", help="names of the institutions")
    init.add_argument("--agents", metavar="A=X,Y;...", help="agents of a site (default: one, of the site's name)")
    init.add_argument("--config", type=Path, metavar="FILE", help="the run: a TOML file of keys of tacit train")
    add_trust(init)
    init.add_argument("--colluding", type=int, metavar="C", help="agents that may collude (default: those of one site)")
    init.add_argument("--name", metavar="NAME", help="of the federation (default: the name of DIR)")
    init.add_argument("--address", default="localhost", metavar="HOST", help="where sites reach the coordinator")
    init.add_argument("--port", type=int, metavar="PORT", help="its one port that sites reach (default 9092)")
    init.add_argument("--control", type=int, metavar="PORT", help="its port that nobody else may reach (default 8000)")
    init.add_argument("--one-account", action="store_true", help="all parties on one machine, for a trial (see below)")
    finish(init, run_init.__doc__, run_init)


def add_trust(action: argparse.ArgumentParser) -> None:
    """Add --trust."""
    action.add_argument("--trust", metavar="WHOM", help="nobody (default) or sum: what an agent adds is hidden")


def port(flag: str, given: int | None, usual: int) -> int:
    """Return the port of a flag, or the usual one; refuse what is no port."""
    if given is not None and not 0 < given < 2**16:
        raise SpecError(f"{flag} takes a port from 1 to 65535, got {given}.")
    return usual if given is None else given


def run_init(options: argparse.Namespace) -> int:
    """Write a folder for the coordinator and one for each site: configs, certificates, node keys, units, a README.

    A site runs its agent service and its SuperNode under two accounts: site.toml names that of the node (callers)
    and a group of both (group), and README.md has the commands that make them. With --one-account, site.toml names
    none, and each node has its own port, so that a trial on one machine needs no root. Code that the coordinator
    ships can then read the records.
    """
    from tacit import toml
    from tacit.federation import folders, sum_files

    values = toml.read(options.config) if options.config else {}
    given = {"privacy.trust": options.trust, "privacy.colluding": options.colluding}
    values |= {key: value for key, value in given.items() if value is not None}
    base = options.config.parent if options.config else Path()
    layout = folders.FolderLayout(
        options.name or options.folder.absolute().name, folders.parsed_sites(options.sites, options.agents),
        options.address, port("--port", options.port, folders.PORT),
        port("--control", options.control, folders.CONTROL), values, base, options.one_account,
    )  # fmt: skip
    folders.make(options.folder, layout)
    made = [folders.COORDINATOR, *layout.sites]
    if options.json:
        print(jsontext.dumps({"folder": str(options.folder), "made": made}))
        return 0
    say(f"{options.folder}: {', '.join(made)}. Each has a README.md with its steps.")
    say("Send each site its own folder and nothing else. It holds the private key of its node.")
    if values.get("privacy.trust") == "sum":
        say(sum_files.needs(values, layout.sites))
    for line in _steps(layout, values.get("privacy.trust") == "sum"):
        say(line)
    return 0


def _steps(layout: FolderLayout, sums: bool) -> Iterator[str]:
    """What each party does next, in order."""
    yield "The order of the start, each party in its own folder:"
    steps = [(who, f"tacit federate {what} .") for who, what in
             (("coordinator", "link"), ("coordinator", "door"), ("coordinator", "register"))]  # fmt: skip
    if not layout.one_account:
        steps.append(("each site", "make the two accounts that README.md names"))
    steps.append(("each site", "put the records where agent/site.toml says, and read [limit] and [agree] there"))
    if sums:
        steps.append(("each site", "tacit agent key agent/site.toml: it draws the signing keys of its agents itself"))
        steps.append(("each site", "pin the keys of the others in [sum.peers], as their owners show them"))
    steps += [("each site", f"tacit agent {what} agent/site.toml") for what in ("init", "check", "serve")]
    steps += [("each site", "tacit federate node node"), ("coordinator", "tacit federate run .")]
    for n, (who, what) in enumerate(steps, start=1):
        yield f"  {n:2}  {who:<11}  {what}"
