"""tacit agent: an institution's own service, which answers for its records under its own account."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from tacit import jsontext
from tacit.cli.options import add_actions, finish

if TYPE_CHECKING:
    from tacit.federation.site import Site


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the actions of `tacit agent`."""
    actions = add_actions(parser, "Answer for the records of an institution, within what its site file agrees to.")
    serve = actions.add_parser("serve", help="answer on the socket of a site until SIGTERM")
    serve.add_argument("--log-json", action="store_true", help="log JSON lines in place of sentences")
    check = actions.add_parser("check", help="load everything, say what would be answered, and touch nothing")
    for action, run in ((serve, run_serve), (check, run_check)):
        action.add_argument("file", metavar="SITE.toml", help="the site file")
        finish(action, run.__doc__, run)


def run_serve(options: argparse.Namespace) -> int:
    """Load the records of a site file, open the ledgers of its agents, and answer the accounts that the file names.
    The log goes to stderr: it says why something was refused, and the caller is not told.
    """
    from tacit.federation import log
    from tacit.federation.listen import serve
    from tacit.federation.site import read

    serve(read(options.file), log.to(sys.stderr, as_json=options.log_json))
    return 0


def run_check(options: argparse.Namespace) -> int:
    """Load everything that a site file names, and say what a coordinator would be told and what a run may ask. Nothing
    is made or changed.
    """
    from tacit.federation import facts
    from tacit.federation.agreement import AT_MOST, DEFAULTS
    from tacit.federation.listen import users
    from tacit.federation.site import load, read

    site = read(options.file)
    federation, allowed = load(site), users(site)
    public = json.loads(facts.public(federation))
    agents = {name: len(shard) for name, shard in zip(federation.agents, federation.shards, strict=True)}
    spent = {one.name: _spent(site, one.name) for one in site.agents}
    agree = {
        key: ("at most " if key in AT_MOST else "") + ", ".join(map(str, some))
        for key, some in {**DEFAULTS, **site.agree.values}.items()
    }
    found = {"site": site.name, "agents": agents, "spent": spent, "public": public, "agree": agree}
    if options.json:
        print(jsontext.dumps(found | {"limit": asdict(site.limit), "callers": sorted(allowed)}))
        return 0
    print(f"site        {site.name}, at {site.socket}, for {', '.join(site.callers) or 'its own account'}")
    print(f"limit       {site.limit} over all runs on the same data")
    for name, count in agents.items():
        print(f"agent       {name}: {count} records, {spent[name]}")
    told = f"{public['n_features']} features, {public['n_classes']} classes" if not public["target"] else "a number"
    print(f"public      {told}; a coordinator is told this, the names of columns and classes, and how many records")
    for key, value in agree.items():
        print(f"agree       {key}: {value}")
    print("agree       every other key: as in the preset")
    return 0


def _spent(site: Site, agent: str) -> str:
    """What the ledger of an agent has given away, as a few words; a ledger that is not there is not made."""
    from tacit.privacy.budget import upward
    from tacit.privacy.ledger import Ledger
    from tacit.run.deploy import file_of, price

    file = site.ledger / file_of(agent)
    if not file.exists():
        return "no ledger yet"
    with Ledger.open(file, price, site.limit, create=False) as ledger:
        spent = [f"{one.data_id!r} spent {upward(one.epsilon)}" for one in ledger.show()]
    return ", ".join(spent) or "nothing released"
