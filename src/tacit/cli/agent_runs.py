"""tacit agent status and close: the runs of a site, and the budget that they hold."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from tacit import jsontext
from tacit.cli.folding import say
from tacit.cli.ledger import close_run, in_words
from tacit.cli.options import finish
from tacit.errors import DataError
from tacit.jsontext import Values

if TYPE_CHECKING:
    from tacit.federation.site import Site, SiteAgent


def add_actions(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the two actions."""
    status = actions.add_parser("status", help="list the runs of each agent, the budget they hold, and what is left")
    close = actions.add_parser("close", help="end a run at this site, and free the budget that it holds")
    for action, run in ((status, run_status), (close, run_close)):
        action.add_argument("file", metavar="SITE.toml", help="the site file")
        finish(action, run.__doc__, run)
    close.add_argument("name", metavar="RUN", help="the name of the run (tacit agent status lists them)")


def run_status(options: argparse.Namespace) -> int:
    """List what each agent of a site has spent, what its open runs hold, and what is left of its limit. The service may
    run meanwhile.

    A run holds budget for all releases of its terms: for one hour from its join, and for 30 days from each answer. It
    frees the budget after its last round, and when its coordinator or its owner closes it.
    """
    from tacit.federation.site import read
    from tacit.privacy.budget import upward
    from tacit.privacy.history import RunState

    site = read(options.file, with_data=False)
    found = {one.name: _account(site, one) for one in site.agents}
    if options.json:
        print(jsontext.dumps({"site": site.name, "limit": asdict(site.limit), "agents": found}))
        return 0
    say(f"site        {site.name}")
    say(f"limit       {site.limit} over all runs on the same data")
    for name, one in found.items():
        say(
            f"agent       {name}: spent {upward(one['spent'])}, with open runs {upward(one['held'])}, "
            f"left {one['left']:.3g}; entries {one['entries']}, head {one['head']}"
        )
        for run in one["runs"]:
            say(f"run         {run['run']}: {in_words(RunState(**run))}")
    return 0


def _account(site: Site, agent: SiteAgent) -> Values:
    """Return the account of an agent: `held` is the total once its open runs have made all their releases."""
    from tacit.federation.ledger_files import beside

    with beside(site, agent) as ledger:
        (entries, head), runs = ledger.history().tip, ledger.runs()
        spent, held = ledger.totals(agent.data_id, site.limit.dp_delta)
    return {
        "data_id": agent.data_id,
        "entries": entries,
        "head": head,
        "spent": spent,
        "held": held,
        "left": max(0.0, site.limit.epsilon - held),
        "runs": [asdict(run) for run in runs if run.data_id == agent.data_id],
    }


def run_close(options: argparse.Namespace) -> int:
    """End a run at all agents of a site that have joined it: they answer no later question of it, and the budget that
    it holds is free. What was released stays spent. The service may run meanwhile; the coordinator sees refusals.
    """
    from tacit.federation.ledger_files import beside
    from tacit.federation.site import read

    site = read(options.file, with_data=False)
    closed, errors = [], []
    for one in site.agents:
        with beside(site, one, changes=True) as ledger:
            try:
                close_run(ledger, options.name)
                closed.append(one.name)
            except DataError as error:
                errors.append(error)
    if not closed:
        raise errors[0]
    if any(site.ledger.glob("*.runkey")):
        from tacit.agent.masks import files  # needs the extra `secure`, which drew them

        files.forget_run(site.ledger, options.name)
    told = f"closed      run {options.name} at {', '.join(closed)}"
    print(jsontext.dumps({"closed": closed}) if options.json else told)
    return 0
