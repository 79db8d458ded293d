"""Where the ledgers of a run are on disk: their directory, the file of each agent, and how many may be open at once."""

from __future__ import annotations

import hashlib
from pathlib import Path
from urllib.parse import quote

from tacit.errors import IncompatibleError
from tacit.machine import open_files
from tacit.run.spec import Spec

FILES_PER_LEDGER = 3  # the database, its log and the log's index
OTHER_FILES = 100
OWN_LEDGERS = 1000  # agents at most whose ledgers a run keeps unasked: more would need more open files than is usual


def place_of(spec: Spec, own: Path | None, started: bool, n_agents: int) -> Path | None:
    """Return where the ledgers of a run are: where the spec says, else in its `own` directory; None for no ledgers.

    A run that was `started` without ledgers (by an earlier version, or with too many agents) has none.
    """
    if spec.privacy.noise != "exact":
        return None
    if spec.privacy.ledger or own is None:
        return Path(spec.privacy.ledger) if spec.privacy.ledger else None
    place = own / "ledgers"
    return place if (place.is_dir() if started else n_agents <= OWN_LEDGERS) else None


def file_of(agent: str) -> str:
    """Return a file name that no other agent has: the quoted name of the agent, or its digest where that is long."""
    quoted = quote(agent, safe="")
    return f"{quoted if len(quoted) <= 100 else hashlib.sha256(agent.encode()).hexdigest()}.ledger"


def allow_files(ledgers: int) -> None:
    """Allow as many open files as the ledgers of a run need, all at once; refuse the run if the system does not."""
    count = FILES_PER_LEDGER * ledgers + OTHER_FILES
    allowed = open_files(count)
    if allowed < count:
        raise IncompatibleError(
            f"the ledgers of this run need {count} open files, and the system allows {allowed}: raise the hard limit "
            "(ulimit -Hn), or train fewer agents in one process."
        )
