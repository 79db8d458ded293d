"""tacit ledger: what an agent has given away, and whether its record is whole."""

from __future__ import annotations

import argparse
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tacit import jsontext
from tacit.cli.folding import say
from tacit.cli.options import add_actions, finish
from tacit.cli.table import table
from tacit.errors import DataError, LedgerCorrupt, SpecError
from tacit.federation.log import counted

if TYPE_CHECKING:
    from tacit.privacy.history import Account, History, RunState
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
    close = actions.add_parser("close", help="end a run, and free the budget that it holds")
    charge = actions.add_parser("charge", help="count a run that the ledger does not have")
    charge.add_argument("--epsilon", type=float, required=True, metavar="E", help="what the run was agreed to cost")
    charge.add_argument("--dp-delta", type=float, default=1e-6, metavar="D", help="its delta (default 1e-6)")
    add_law(charge)
    charge.add_argument("--data-id", metavar="NAME", help="the data set (default: the one that the ledger has)")
    for action, run in ((show, run_show), (verify, run_verify), (limit, run_limit), (close, run_close),
                        (charge, run_charge)):  # fmt: skip
        action.add_argument("file", metavar="FILE", help="the ledger of an agent")
        finish(action, run.__doc__, run)
    close.add_argument("name", metavar="RUN", help="the name of the run (tacit ledger show lists open runs)")


def add_law(action: argparse.ArgumentParser) -> None:
    """Add --law."""
    action.add_argument(
        "--law", choices=("gaussian", "any"),
        help="the noise of a lost run: gaussian (under sound, all methods but objt-laplace), or any",
    )  # fmt: skip


def run_show(options: argparse.Namespace) -> int:
    """Print the composed total of each data set, its runs, the limit and what remains of it."""
    if options.dp_delta is not None and not 0 <= options.dp_delta < 1:
        raise SpecError(f"--dp-delta is a probability below 1, got {options.dp_delta}: 1e-6 is usual.")
    with _open(options.file) as ledger:
        accounts, history = ledger.show(options.dp_delta), ledger.history()
        open_runs = [run for run in ledger.runs() if not run.is_over]
    limit, risks = history.limit, [_risk(account, history) for account in accounts]
    if options.json:
        told = [asdict(account) | {"best_guess": found.guess} for account, found in zip(accounts, risks, strict=True)]
        shown = {"limit": None if limit is None else asdict(limit), "data": told}
        print(jsontext.dumps(shown | {"open_runs": [asdict(run) for run in open_runs]}))
        return 0
    own = f"{limit} over all runs on the same data" if limit else "none: a run gets what it agreed on"
    say(f"limit       {own}")
    for account, found in zip(accounts, risks, strict=True):
        _say(account)
        say("\n".join([f"risk: {found}", *filter(None, [found.verdict])]))
    for run in open_runs:
        say(f"open        run {run.run} of {run.data_id}: {in_words(run)}")
    if not accounts:
        say("nothing has been released")
    return 0


def run_verify(options: argparse.Namespace) -> int:
    """Check every entry and stored answer, and print the head. The file alone shows damage and partial edits; a file
    that was rewritten from end to end, or put back from an old copy, shows only beside a head that was noted elsewhere:
    give one to --head, or to --run the directory of a run, whose result holds the heads of its agents and how often
    each was asked and has answered. Exit code 1 if the ledger is not whole, or has other numbers.
    """
    noted = _noted(options.noted_by, options.file) if options.noted_by else None
    head = noted.head if noted else options.head
    with _open(options.file) as ledger:
        found = ledger.verify(head)
        of_run = noted.compared(ledger.history(), options.file) if noted else None
    if options.json:
        print(jsontext.dumps({"whole": True, "compared_with": head, "releases_of_run": of_run, **asdict(found)}))
        return 0
    say(f"unbroken    {found.entries} entries, {found.releases} releases, {found.forgotten} answers forgotten")
    say(f"head        {found.head}")
    if head:
        say(f"compared    it goes through the head noted elsewhere, {head[:12]}...")
        if noted:
            say(f"            {counted(of_run or 0, 'release')} of run {noted.run!r}: {noted.said}")
    else:
        say("compared    with nothing: a file rewritten as a whole looks the same (give --run or --head)")
    return 0


@dataclass(frozen=True)
class _Noted:
    """What the result of a run says of the ledger of one of its agents."""

    head: str
    run: str
    released: int  # answers that the server has
    asked: int  # questions: the agent has answered no more

    @property
    def said(self) -> str:
        return f"the server has {self.released}, and asked for at most {self.asked}"

    def compared(self, history: History, file: str) -> int:
        """Return the releases of the run on record; raise LedgerCorrupt if the server has more, or asked for fewer.

        Releases that a restored ledger counts for the run need no answer on record.
        """
        made = sum(key.run == self.run for key in history.answers)
        charged = sum(one.count for one in history.charges if one.run == self.run)
        if not self.released <= made + charged or not made <= self.asked:
            raise LedgerCorrupt(
                f"{file} has {counted(made, 'release')} of run {self.run!r}, but {self.said}. If the ledger has too "
                "few, it is an older copy: restore it (tacit agent restore). If it has too many, somebody else asked "
                "under the name of this run, or the result is of another run."
            )
        return made


def _noted(path: Path, file: str) -> _Noted:
    """Return what the result of a run says of the agent of a ledger."""
    from tacit.run.deployment import ledger_file_name, run_name
    from tacit.run.directory import RunDirectory

    directory = RunDirectory.open(path)
    result, spec = directory.result(), directory.spec()
    for agent, head in (result.get("ledger_heads") or {}).items():
        if ledger_file_name(agent) == Path(file).name:
            rounds = int(result["rounds"])  # in one process every agent answers every round
            took = (result.get("took_part") or {}).get(agent) or {}
            most = rounds + (spec.privacy.repetitions or 0)
            return _Noted(str(head), run_name(spec), int(took.get("released", rounds)), int(took.get("asked", most)))
    raise DataError(f"the result of {path} notes no head of {Path(file).name}: name a run of this agent with ledgers.")


def run_charge(options: argparse.Namespace) -> int:
    """Count a run as spent that the ledger does not have, because it was joined after the backup that the ledger was
    restored from. The charge is an entry. It is made even if it passes the limit: then nothing more is released. With
    --law gaussian, it counts as Gaussian noise, and otherwise as the worst noise of this epsilon and delta.
    """
    from tacit.privacy.history import lost_run
    from tacit.run.deployment import price

    with _open(options.file) as ledger:
        history = ledger.history()
        known = sorted({*history.spent, *(data_id for data_id, _ in history.places)})
        data_id = options.data_id or (known[0] if len(known) == 1 else None)
        if data_id is None or (known and data_id not in known):
            held = ", ".join(map(repr, known)) or "none"
            raise SpecError(f"{options.file} has the data sets {held}: name the one of the run with --data-id.")
        delta_of_limit = history.limit.dp_delta if history.limit else 1e-6
        lost = lost_run(options.epsilon, options.dp_delta, options.law, price, delta_of_limit)
        ledger.charge(data_id, [lost], "entered by the owner")
        head = ledger.verify().head
    if options.json:
        print(jsontext.dumps({"charged": data_id, "head": head}))
    else:
        say(f"charged     ({options.epsilon:g}, {options.dp_delta:g}) to {data_id}\nhead        {head}")
    return 0


def run_close(options: argparse.Namespace) -> int:
    """End a run in a ledger: it answers no later question of the run, and the budget that the run holds is free. What
    was released stays spent. The file may be in use; the coordinator of the run is not told.
    """
    with _open(options.file) as ledger:
        closed = close_run(ledger, options.name)
        head = ledger.verify().head
    if options.json:
        print(jsontext.dumps({"closed": closed, "head": head}))
    else:
        say(f"closed      run {options.name} on {', '.join(closed)}\nhead        {head}")
    return 0


def in_words(run: RunState) -> str:
    """Return the state of a run in words."""
    at = f"round {run.round} of {run.rounds}, {counted(run.releases, 'release')}"
    if run.state == "ended":
        return f"ended ({run.why}) after {at}"
    if run.state == "finished":
        return f"finished, {at}"
    holds = {
        "open": f"holds budget for {run.remaining} more until {run.held_until}, and longer with each answer",
        "lapsed": f"silent until {run.held_until}: {run.remaining} more hold no budget, and need room at the next one",
        "unreserved": f"joined with an earlier version: {run.remaining} more hold no budget",
    }
    return f"{run.state}, {at}; {holds[run.state]}"


def close_run(ledger: Ledger, run: str) -> list[str]:
    """End a run on all data sets of a ledger, and return these; DataError if it is open on none."""
    runs = ledger.runs()
    closed = [one.data_id for one in runs if one.run == run and ledger.end(one.data_id, run, "its owner has closed it")]
    if not closed:
        states = [f"is {one.state}" for one in runs if one.run == run] or ["was never joined"]
        open_runs = ", ".join(one.run for one in runs if not one.is_over) or "none"
        raise DataError(f"run {run!r} {states[0]}, so that there is nothing to close. Open runs: {open_runs}.")
    return closed


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
    from tacit.run.deployment import price

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
