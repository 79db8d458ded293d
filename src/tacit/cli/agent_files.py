"""tacit agent init, backup and restore: the files of a site that must not be lost."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from tacit import jsontext
from tacit.cli.folding import say
from tacit.cli.ledger import add_law
from tacit.cli.options import finish

if TYPE_CHECKING:
    from tacit.federation.ledger_files import LedgerReport


def add_actions(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the three actions."""
    init = actions.add_parser("init", help="make the ledger, the witness and the signing key of each agent")
    backup = actions.add_parser("backup", help="copy ledgers and signing keys, while the service may run")
    restore = actions.add_parser("restore", help="put back lost ledgers, and count their open runs as spent")
    for action in (init, backup, restore):
        action.add_argument("file", metavar="SITE.toml", help="the site file")
    backup.add_argument("to", type=Path, metavar="DIR", help="a new directory, on another disk if there is one")
    restore.add_argument("source", type=Path, metavar="DIR", help="a directory that tacit agent backup has written")
    restore.add_argument("--agent", metavar="AGENT", help="this agent only (default: all whose ledger is lost)")
    restore.add_argument(
        "--lost", nargs=2, type=float, action="append", default=[], metavar=("EPSILON", "DELTA"),
        help="a run that was joined after the backup was made, at what it was agreed to cost; may be repeated",
    )  # fmt: skip
    add_law(restore)
    for action, run in ((init, run_init), (backup, run_backup), (restore, run_restore)):
        finish(action, run.__doc__, run)


def run_init(options: argparse.Namespace) -> int:
    """Make the ledger, the witness and (for secure sums) the signing key of each agent that has none, and check those
    that are there. Make the key of receipts if the site has none. The service never makes a ledger: a new one has a
    full budget.
    """
    from tacit.federation import ledger_files
    from tacit.federation.site import read

    _show(ledger_files.init(read(options.file, with_data=False)), options.json)
    return 0


def run_backup(options: argparse.Namespace) -> int:
    """Copy the ledgers and keys of a site into a new directory. The service may run meanwhile. Mask keys of runs are
    left out: a run does not go on after its ledger was restored.
    """
    from tacit.federation import ledger_files
    from tacit.federation.site import read

    _show(ledger_files.backup(read(options.file, with_data=False), options.to), options.json)
    return 0


def run_restore(options: argparse.Namespace) -> int:
    """Put back the ledgers that are missing, damaged or older than their witness. Stop the service first.

    The backup does not know what was released after it was made. So every run that it had joined counts as answered to
    the end of its terms, and has ended; the mask keys of all runs are deleted. Runs that were joined after the backup
    are in no ledger: enter each with --lost EPSILON DELTA, as agreed (the logs of the service list them), and with
    --law gaussian if they drew Gaussian noise. Then the witness is written anew, and the site can join new runs.
    """
    from tacit.federation.restore import restore
    from tacit.federation.site import read
    from tacit.privacy.history import lost_run
    from tacit.run.deployment import price

    site = read(options.file, with_data=False)
    delta_of_limit = site.limit.dp_delta
    lost = [lost_run(epsilon, delta, options.law, price, delta_of_limit) for epsilon, delta in options.lost]
    _show(restore(site, options.source, lost, options.agent), options.json)
    if not options.json and not lost:
        say("Were runs joined after this backup? Enter each now: tacit ledger charge FILE --epsilon E --dp-delta D.")
    return 0


def _show(done: Sequence[LedgerReport], as_json: bool) -> None:
    if as_json:
        print(jsontext.dumps([asdict(one) for one in done]))
        return
    for one in done:
        entries = f" ({one.ledger.entries} entries, head {one.ledger.head})" if one.ledger else ""
        say(f"{one.agent}: {one.what}{entries}")
