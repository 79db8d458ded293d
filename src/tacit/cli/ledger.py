"""tacit ledger: what an agent has given away, and whether its record is whole."""

from __future__ import annotations

import argparse
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from tacit import jsontext
from tacit.cli.folding import say
from tacit.cli.options import add_actions, finish
from tacit.cli.table import table
from tacit.errors import DataError, SpecError

if TYPE_CHECKING:
    from tacit.privacy.history import Account, History
    from tacit.privacy.ledger import Ledger
    from tacit.privacy.risk import Risk


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the actions of `tacit ledger`."""
    actions = add_actions(parser, "Look at the file in which an agent records every release before it leaves.")
    show = actions.add_parser("show", help="print what each data set has spent, run by run")
    show.add_argument("--dp-delta", type=float, metavar="D", help="delta of the totals (default: the limit's, or 1e-6)")
    verify = actions.add_parser("verify", help="check every entry and stored answer")
    noted = verify.add_mutually_exclusive_group()
    noted.add_argument("--head", metavar="HASH", help="a head noted earlier, which the ledger must go through")
    noted.add_argument("--run", type=Path, dest="noted_by", metavar="DIR", help="a run that noted the head")
    limit = actions.add_parser("limit", help="put another limit in force")
    limit.add_argument("--epsilon", type=float, required=True, metavar="E", help="the new limit; inf for none")
    limit.add_argument("--dp-delta", type=float, default=1e-6, metavar="D", help="its delta (default 1e-6)")
    for action, run in ((show, run_show), (verify, run_verify), (limit, run_limit)):
        action.add_argument("file", metavar="FILE", help="the ledger of an agent")
        finish(action, run.__doc__, run)


def run_show(options: argparse.Namespace) -> int:
    """Print the composed total of each data set, its runs, the limit and what remains of it."""
    if options.dp_delta is not None and not 0 <= options.dp_delta < 1:
        raise SpecError(f"--dp-delta is a probability below 1, got {options.dp_delta}: 1e-6 is usual.")
    with _open(options.file) as ledger:
        accounts, history = ledger.show(options.dp_delta), ledger.history()
    limit, risks = history.limit, [_risk(account, history) for account in accounts]
    if options.json:
        told = [asdict(account) | {"best_guess": found.guess} for account, found in zip(accounts, risks, strict=True)]
        print(jsontext.dumps({"limit": None if limit is None else asdict(limit), "data": told}))
        return 0
    own = f"{limit} over all runs on the same data" if limit else "none: a run gets what it agreed on"
    say(f"limit       {own}")
    for account, found in zip(accounts, risks, strict=True):
        _say(account)
        say("\n".join([f"risk: {found}", *filter(None, [found.verdict])]))
    if not accounts:
        say("nothing has been released")
    return 0


def run_verify(options: argparse.Namespace) -> int:
    """Check every entry and stored answer, and print the head. The file alone shows damage and partial edits; a file
    that was rewritten from end to end, or put back from an old copy, shows only beside a head that was noted elsewhere:
    give one to --head, or to --run the directory of a run, whose result holds the heads of its agents. Exit code 1 if
    the ledger is not whole.
    """
    head = _noted(options.noted_by, options.file) if options.noted_by else options.head
    with _open(options.file) as ledger:
        found = ledger.verify(head)
    if options.json:
        print(jsontext.dumps({"whole": True, "compared_with": head, **asdict(found)}))
        return 0
    say(f"unbroken    {found.entries} entries, {found.releases} releases, {found.forgotten} answers forgotten")
    say(f"head        {found.head}")
    if head:
        say(f"compared    it goes through the head noted elsewhere, {head[:12]}...")
    else:
        say("compared    with nothing: a file rewritten as a whole looks the same (give --run or --head)")
    return 0


def _noted(run: Path, file: str) -> str:
    """The head that the result of a run holds for the agent of a ledger."""
    from tacit.run.directory import RunDirectory
    from tacit.run.ledgers import file_of

    heads = RunDirectory.open(run).result().get("ledger_heads") or {}
    for agent, head in heads.items():
        if file_of(agent) == Path(file).name:
            return str(head)
    raise DataError(f"the result of {run} notes no head of {Path(file).name}: name a run of this agent with ledgers.")


def run_limit(options: argparse.Namespace) -> int:
    """Change how much the agent gives away over all runs on the same data; the change is an entry."""
    from tacit.privacy.history import Limit

    new = None if math.isinf(options.epsilon) else Limit(options.epsilon, options.dp_delta)
    with _open(options.file) as ledger:
        ledger.set_limit(new)
        head = ledger.verify().head
    told = {"limit": None if new is None else asdict(new), "head": head}
    if options.json:
        print(jsontext.dumps(told))
    else:
        say(f"limit       {new or 'none'}\nhead        {head}")
    return 0


def _open(file: str) -> Ledger:
    from tacit.privacy.ledger import Ledger
    from tacit.run.deploy import price

    return Ledger.open(file, price, create=False)


def _risk(account: Account, history: History) -> Risk:
    """Return what all runs on a data set together mean for one record."""
    from tacit.privacy.budget import best_guess, total
    from tacit.privacy.risk import stated
    from tacit.run.compose import kept_delta

    accounted = kept_delta(account.dp_delta, discrete=True)
    spent = total(tuple(history.spent[account.data_id].items()), accounted)
    guess = best_guess(spent, account.dp_delta, account.dp_delta - accounted)
    return stated(asdict(account) | {"best_guess": guess})


def _say(account: Account) -> None:
    from tacit.privacy.budget import upward

    rows = [
        (run.run, str(run.rounds), str(run.releases), upward(run.epsilon), "; ".join(run.mechanisms))
        for run in account.runs
    ]
    rows.append(("all runs", "", str(account.releases), upward(account.epsilon), "composed, not added"))
    total = f"({upward(account.epsilon)}, {account.dp_delta:g})"
    left = "" if account.remaining is None else f" of ({account.limit:g}, {account.dp_delta:g})"
    say(f"\n{account.data_id}: spent {total}{left}, {account.adjacency}")
    print(table(("run", "rounds", "releases", "epsilon", "mechanism"), rows))
