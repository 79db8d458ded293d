"""tacit agent: an institution's own service, which answers for its records under its own account."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING

from tacit import jsontext
from tacit.cli import agent_files, agent_runs
from tacit.cli.folding import say
from tacit.cli.options import add_actions, finish
from tacit.jsontext import Values

NOT_RESTARTED = 78  # the units that tacit writes do not start a service again that exits with this code

if TYPE_CHECKING:
    from tacit.agent.agreement import Agreement
    from tacit.federation.headroom import AgreedRun, Headroom
    from tacit.federation.site import Site, SiteAgent
    from tacit.privacy.ledger import Ledger
    from tacit.types import Federation


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the actions of `tacit agent`."""
    actions = add_actions(parser, "Answer for the records of an institution, within what its site file agrees to.")
    serve = actions.add_parser("serve", help="answer on the socket of a site until SIGTERM")
    serve.add_argument("--log-json", action="store_true", help="log JSON lines in place of sentences")
    check = actions.add_parser("check", help="load everything, say what would be answered, and touch nothing")
    key = actions.add_parser("key", help="draw the signing keys of the agents, for secure sums, where they are missing")
    key.add_argument("--forget-runs", action="store_true", help="delete the keys of all runs instead (see below)")
    agent_files.add_actions(actions)
    agent_runs.add_actions(actions)
    for action, run in ((serve, run_serve), (check, run_check), (key, run_key)):
        action.add_argument("file", metavar="SITE.toml", help="the site file")
        finish(action, run.__doc__, run)


def run_serve(options: argparse.Namespace) -> int:
    """Load the records of a site file, open the ledgers of its agents, and answer the accounts that the file names.
    The log goes to stderr: it says why something was refused, and the caller is not told.

    The service makes no ledger. If a ledger or its witness is missing, if they do not agree, or if the ledger knows the
    records by another data_id, it exits with code 78, after which its unit does not start it again: a person has to
    decide.
    """
    from tacit.errors import DataRenamed, LedgerCorrupt, LedgerMissing
    from tacit.federation import log
    from tacit.federation.listen import serve
    from tacit.federation.site import read

    try:
        serve(read(options.file), log.to(sys.stderr, as_json=options.log_json))
    except (LedgerMissing, LedgerCorrupt, DataRenamed) as error:
        say(f"tacit: {error}", file=sys.stderr)
        return NOT_RESTARTED
    return 0


def run_check(options: argparse.Namespace) -> int:
    """Load everything that a site file names, and say what a coordinator would be told, what a run may ask, and whether
    the largest run that is agreed to fits under the limit. Nothing is made or changed.
    """
    from tacit.federation import accounts, facts
    from tacit.federation.site import load, read
    from tacit.federation.site_policy import AT_MOST, DEFAULTS
    from tacit.machine import name_conflict

    site, conflict = read(options.file), name_conflict()
    allowed, warnings = accounts.users(site), list(accounts.warnings(site))
    federation = load(site)
    public = json.loads(facts.public(federation))
    agents = {name: len(shard) for name, shard in zip(federation.agents, federation.shards, strict=True)}
    spent, rooms, run = _accounts(site, federation)
    asked = [] if isinstance(run, str) else _asked(run.deployment.first_agreement)
    agree = {
        key: ("at most " if key in AT_MOST else "") + ", ".join(map(str, some))
        for key, some in {**DEFAULTS, **site.agree.values}.items()
    } | site.agree.restrictions
    sums = _sums(site)
    found = {"site": site.name, "agents": agents, "spent": spent, "public": public, "agree": agree, "sum": sums}
    found["queries"] = asked
    found["headroom"] = {name: {**asdict(one), "left": one.left, "fits": not one.why} for name, one in rooms.items()}
    if options.json:
        found |= {"limit": asdict(site.limit), "callers": sorted(allowed), "warnings": warnings, "conflict": conflict}
        print(jsontext.dumps(found))
        return 0
    say(f"site        {site.name}, at {site.socket}, for {', '.join(site.callers) or 'its own account'}")
    say(f"limit       {site.limit} over all runs on the same data")
    for name, count in agents.items():
        room = f", {rooms[name]}" if name in rooms else ""
        say(f"agent       {name}: {count} records, {spent[name]}{room}")
    told = f"{public['n_features']} features, {public['n_classes']} classes" if not public["target"] else "a number"
    say(f"public      {told}; a coordinator is told this, the names of columns and classes, and how many records")
    for key, value in agree.items():
        say(f"agree       {key}: {value}")
    say("agree       every other key: as in the preset")
    if isinstance(run, str):
        say(f"agree       none of these runs can be run on these records: {run}")
    for one in asked:
        say(
            f"asked       {one['query']}: at most {one['answers']} answers of {one['numbers']} numbers in the largest "
            f"run, with {one['law']} noise of {one['multiplier']:.4g} sensitivities in {one['norm']}"
        )
    for line in _lines_of_sums(sums) if sums else ():
        say(f"sum         {line}")
    for warning in warnings:
        say(f"accounts    {warning}")
    if conflict:
        say(f"conflict    {conflict}")
    return 0


def _asked(agreement: Agreement) -> list[Values]:
    """The list that an agent agrees to: each query with its noise and the number of its answers."""
    from tacit.query.query import described
    from tacit.query.registry import name_of

    return [
        {
            "query": name_of(one.query), "answers": one.answers, "numbers": one.query.size, "law": one.noise.law.value,
            "multiplier": one.noise.multiplier, "norm": one.noise.norm.value, "described": described(one.query),
        }
        for one in agreement.queries
    ]  # fmt: skip


def run_key(options: argparse.Namespace) -> int:
    """Draw a signing key for each agent of a site file that has none, and print the public halves as lines for the
    section [sum.peers] of the site files of all other institutions. A key that is there is never replaced.

    Show the lines to the other institutions yourself, by a way that the coordinator cannot change: whoever replaces
    a key on its way can take the place of the agent.

    --forget-runs deletes the run keys beside the ledgers, which a coordinator that never ended its runs has left
    behind (tacit agent check counts them). Stop the service first: a run that is under way cannot go on here.
    """
    from tacit.errors import SpecError
    from tacit.federation.log import counted
    from tacit.federation.site import read

    site = read(options.file, with_data=False)
    if site.sum is None:
        raise SpecError(f"{options.file} has no section [sum], which says where keys are: add it, with a threshold.")
    from tacit.agent.masks import files  # needs the extra `secure`

    if options.forget_runs:
        deleted = files.forget_run_keys(site.ledger)
        print(jsontext.dumps({"deleted": deleted}) if options.json else f"deleted {counted(deleted, 'run key')}")
        return 0
    for one in site.agents:
        path = site.sum.key_file(one.name)
        if not path.exists():
            files.new_signing_key(path)
            say(f"drew {path}: back it up, and show it to nobody", file=sys.stderr)
    own = {name: key.public for name, key in site.sum.signing_keys(one.name for one in site.agents).items()}
    site.sum.pinned(own)  # which refuses a peer with the key of one of these agents
    if options.json:
        print(jsontext.dumps({name: key.hex() for name, key in own.items()}))
        return 0
    for name, key in own.items():
        print(_pin(name, key.hex()))
    return 0


def _pin(name: str, key: str) -> str:
    """A line of [sum.peers]."""
    return f"{json.dumps(name, ensure_ascii=False)} = {json.dumps(key)}"


def _sums(site: Site) -> Values:
    """What a site file says of secure sums, and whose keys it has; a key file that others may read is an error."""
    from tacit.federation.site_policy import USUAL_REPEATED

    config = site.sum
    if config is None:
        return {}
    there = [one.name for one in site.agents if config.key_file(one.name).exists()]
    own = {name: key.public for name, key in config.signing_keys(there).items()}
    peers = {name: key for name, key in config.pinned(own).items() if name not in own}
    return {
        "threshold": config.threshold,
        "colluding": config.colluding,
        "agreed": "sum" in site.agree.values.get("privacy.trust", ()),
        "rounds_for_each_repetition": None if "privacy.repetitions" in site.agree.values else USUAL_REPEATED,
        "own": {one.name: own[one.name].hex() if one.name in own else None for one in site.agents},
        "files": {name: str(config.key_file(name)) for name in there},
        "peers": {name: key.hex() for name, key in peers.items()},
        "run_keys": _run_keys(site),
    }


def _run_keys(site: Site) -> Values:
    """How many run keys there are, and of which runs, as far as ledgers know them: the last round that was answered."""
    from tacit.agent.masks import files

    runs = {}
    for one in site.agents:
        with ExitStack() as opened:
            ledger = _ledger(site, one, opened)
            for (data_id, run), place in ledger.history().places.items() if ledger else ():
                if data_id != one.data_id or not place.terms or ledger is None:
                    continue
                if files.has_run_key(site.ledger, run, one.name, ledger.budget(data_id)):
                    runs[run] = {"answered": place.last[0], "rounds": place.terms.rounds}
    return {"count": files.run_keys(site.ledger), "runs": runs}


def _lines_of_sums(sums: Values) -> Iterator[str]:
    from tacit.federation.log import counted
    from tacit.federation.sum_files import may_be_missing

    known = sum(key is not None for key in sums["own"].values()) + len(sums["peers"])
    few = "" if known >= sums["threshold"] else f"; {counted(known, 'key')} known, so that no run can be joined"
    yield f"no sum over fewer than {sums['threshold']} agents{few}"
    if not few:
        yield may_be_missing(sums["threshold"], known)
    yield f"a run expects at least {counted(sums['colluding'], 'agent')} to collude"
    if not sums["agreed"]:
        yield 'no run is agreed to: [agree] would have to list "privacy.trust" = "sum"'
    if sums["rounds_for_each_repetition"]:
        yield f"repetitions: at most one for every {sums['rounds_for_each_repetition']} rounds of a run, rounded up"
    for name, key in sums["own"].items():
        if key is None:
            yield f"own agent {name} has no key yet: tacit agent key draws it"
        else:
            yield f"own key {_pin(name, key)}, in {sums['files'][name]}, which nobody else may read"
    for name, key in sums["peers"].items():
        yield f"pinned {_pin(name, key)}"
    for run, at in sums["run_keys"]["runs"].items():
        yield f"run key of run {run}, answered to round {at['answered']} of {at['rounds']}"
    if n := sums["run_keys"]["count"]:
        yield f"{counted(n, 'run key')} in all; where no run is under way, delete them: tacit agent key --forget-runs"


def _accounts(site: Site, own: Federation) -> tuple[dict[str, str], dict[str, Headroom], AgreedRun | str]:
    """Return what each ledger has released, in words, what it leaves for the largest agreed run, and that run.

    If no agreed run can be run, return why instead of the run.

    A ledger that is not there is not made. One that knows the records by another name is an error, as for the service.
    """
    from tacit.errors import InputError
    from tacit.federation.headroom import headrooms, largest
    from tacit.federation.ledger_files import check_data_id, receipt_key
    from tacit.privacy.budget import upward

    with ExitStack() as opened:
        ledgers = {one.name: _ledger(site, one, opened) for one in site.agents}
        if any(ledgers.values()):
            receipt_key(site)  # which is missing if tacit agent init has not been run since an update
        spent = dict.fromkeys(ledgers, "no ledger yet (tacit agent init makes it)")
        for one in site.agents:
            if (ledger := ledgers[one.name]) is not None:
                check_data_id(one, ledger.history())
                told = [f"{found.data_id!r} spent {upward(found.epsilon)}" for found in ledger.show()]
                spent[one.name] = ", ".join(told) or "nothing released"
        try:
            run = largest(site, own)
            return spent, headrooms(site, own, ledgers, run), run
        except InputError as error:
            return spent, {}, str(error)


def _ledger(site: Site, agent: SiteAgent, opened: ExitStack) -> Ledger | None:
    """Return the ledger of an agent, until `opened` ends; None if neither it nor its witness has been made."""
    from tacit.federation.ledger_files import beside, ledger_file, witness_of

    if not ledger_file(site, agent.name).exists() and not witness_of(site, agent.name).path.exists():
        return None
    ledger = opened.enter_context(beside(site, agent))
    ledger.check_limit(site.limit)
    return ledger
