"""The files of a site that must not be lost: the ledgers of its agents, their witnesses, and keys.

    init      makes those that are not there yet; it is the only command that makes a ledger for a service
    opened    opens the ledger of an agent for the service; LedgerMissing if it or its witness is not there
    beside    opens it for another command, while the service may run
    backup    copies ledgers and keys while the service may run; never a run's mask keys

tacit.federation.restore puts back what was lost.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tacit import toml
from tacit.errors import DataError, DataRenamed, IncompatibleError, LedgerCorrupt, LedgerMissing
from tacit.federation.site import Site, SiteAgent
from tacit.lock import locked
from tacit.machine import sync_folder
from tacit.privacy.history import History
from tacit.privacy.ledger import Ledger
from tacit.privacy.ledger_file import Verified
from tacit.privacy.witness import KEY_BYTES, ReceiptKey, Witness
from tacit.run import deployment
from tacit.run.deployment import ledger_file_name

_AFTER_LOSS = (
    "put it back, or restore a backup (tacit agent restore SITE.toml BACKUP). If no agent has ever answered from it, "
    "make it with tacit agent init SITE.toml."
)
KEYS = "keys"  # the directory of the signing keys in a backup
RECEIPT_KEY = "receipts.key"  # beside the ledgers, and in a backup


@dataclass(frozen=True)
class LedgerReport:
    """What was done with the files of one agent or of the whole site, in words, and the ledger as it is now."""

    agent: str
    what: str
    ledger: Verified | None = None


def ledger_file(site: Site, agent: str) -> Path:
    """Return the path of an agent's ledger."""
    return site.ledger / ledger_file_name(agent)


def witness_of(site: Site, agent: str, writes: bool = True) -> Witness:
    """Return the witness of an agent's ledger."""
    return Witness(site.witness / f"{Path(ledger_file_name(agent)).stem}.witness", agent, writes)


def receipt_key(site: Site) -> ReceiptKey:
    """Return the key with which the site makes receipts; LedgerMissing if it has none."""
    path = site.ledger / RECEIPT_KEY
    try:
        secret = bytes.fromhex(path.read_text(encoding="ascii").strip())
    except FileNotFoundError:
        raise LedgerMissing(
            f"the key of receipts is not at {path}. Without it, the receipts that coordinators keep prove nothing. Put "
            "it back (tacit agent restore SITE.toml BACKUP). If the site never had one, or if it is lost, tacit agent "
            "init SITE.toml makes one."
        ) from None
    except (OSError, ValueError) as error:
        raise _damaged(path, str(error)) from None
    if len(secret) != KEY_BYTES:
        raise _damaged(path, f"it has {len(secret)} bytes, and a key has {KEY_BYTES}")
    return ReceiptKey(secret)


def _damaged(key: Path, why: str) -> LedgerCorrupt:
    return LedgerCorrupt(
        f"the key of receipts {key} is damaged ({why}): move it away, and put it back from a backup (tacit agent "
        "restore)."
    )


def opened(site: Site, agent: SiteAgent) -> Ledger:
    """Open an agent's ledger, with its witness; refuse one that knows the records by another name."""
    file = ledger_file(site, agent.name)
    if not file.is_file():
        raise LedgerMissing(
            f"the ledger of agent {agent.name} is not at {file}. It counts what was released before, so that no new "
            f"one is made here: {_AFTER_LOSS}"
        )
    ledger = Ledger.open(file, deployment.price, site.limit, create=False, witness=witness_of(site, agent.name))
    try:
        check_data_id(agent, ledger.history())
        ledger.settle()  # after a crash, the witness may be behind
    except BaseException:
        ledger.close()
        raise
    return ledger


@contextmanager
def beside(site: Site, agent: SiteAgent, changes: bool = False) -> Iterator[Ledger]:
    """Open an agent's ledger for a command beside the service, compared with the witness.

    The witness is written only by a command that `changes` the ledger while no service runs.
    """
    file = ledger_file(site, agent.name)
    if not file.is_file():
        raise LedgerMissing(f"the ledger of agent {agent.name} is not at {file}: {_AFTER_LOSS}")
    with ExitStack() as held:
        ours = changes and held.enter_context(locked(site.ledger, wait=False))
        witness = witness_of(site, agent.name, writes=ours)
        yield held.enter_context(Ledger.open(file, deployment.price, create=False, witness=witness))


def check_data_id(agent: SiteAgent, history: History) -> None:
    """Refuse a data_id without releases beside others that have some: the same records would have a second budget."""
    others = sorted(set(history.spent) - {agent.data_id, *agent.apart})
    if others and agent.data_id not in history.spent:
        known = ", ".join(map(repr, others))
        listed = toml.literal([*agent.apart, *others])
        raise DataRenamed(
            f"the ledger of agent {agent.name} has answered for {known}, and the site file has data_id = "
            f"{toml.literal(agent.data_id)}, which would start with the whole limit. If any record is in both, write "
            f"the earlier data_id again. If none is, say so in its [[agent]]: shares_no_record_with = {listed}"
        )


@contextmanager
def alone(site: Site) -> Iterator[None]:
    """Hold the directory of the ledgers; refuse if a service holds it, or if it is of another account."""
    if not site.ledger.is_dir():
        raise LedgerMissing(f"the directory of the ledgers is not at {site.ledger}: {_AFTER_LOSS}")
    if (owner := site.ledger.stat().st_uid) != os.geteuid():
        raise IncompatibleError(
            f"{site.ledger} belongs to account {owner}, and this process runs as {os.geteuid()}: run it under the "
            f"account of the service (sudo -u '#{owner}' tacit agent ...)."
        )
    with locked(site.ledger, wait=False) as ours:
        if not ours:
            raise IncompatibleError(f"another service holds {site.ledger}: stop it first.")
        yield


def make_directories(site: Site) -> None:
    for folder in (site.ledger, site.witness):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)


def init(site: Site) -> list[LedgerReport]:
    """Make the ledger, the witness and the signing key of each agent that has none; check those that are there.

    Make the site's key of receipts if there is none.
    """
    make_directories(site)
    with alone(site):
        done = [_begun(site, one) for one in site.agents]
        if not (key := site.ledger / RECEIPT_KEY).exists():
            write_secret(key, secrets.token_hex(KEY_BYTES).encode() + b"\n")
            done.append(LedgerReport(site.name, f"new key of receipts {key}"))
        receipt_key(site)  # which refuses a damaged one
    if site.sum is not None:
        from tacit.agent.masks import files  # needs the extra `secure`

        for one in site.agents:
            if not (path := site.sum.key_file(one.name)).exists():
                files.new_signing_key(path)
                done.append(LedgerReport(one.name, f"new signing key {path}"))
    return done


def _begun(site: Site, one: SiteAgent) -> LedgerReport:
    file, witness = ledger_file(site, one.name), witness_of(site, one.name)
    new, unwitnessed = not file.exists(), not witness.path.exists()
    if new and not unwitnessed:
        raise LedgerMissing(
            f"{witness.path} is the witness of a ledger of agent {one.name} that is not at {file}. A new ledger would "
            "not count what that one has released: put it back, or restore a backup (tacit agent restore)."
        )
    if new:
        _check_unused(site, one)
    held = None if unwitnessed else witness
    with Ledger.open(file, deployment.price, site.limit, create=new, witness=held) as ledger:
        found = ledger.verify()
        if unwitnessed:
            ledger.attest(witness)
    made = "new ledger and witness" if new else "ledger as before, new witness" if unwitnessed else "ledger as before"
    return LedgerReport(one.name, f"{made}: {file}", found)


def _check_unused(site: Site, one: SiteAgent) -> None:
    """Refuse a new ledger for data that another ledger of the site has counted: its limit would be spent twice."""
    for file in sorted(site.ledger.glob("*.ledger")):
        with Ledger.open(file, deployment.price, create=False) as ledger:
            history = ledger.history()
        if one.data_id in history.spent or one.data_id in {data_id for data_id, _ in history.places}:
            raise DataRenamed(
                f"{file} counts what data_id = {toml.literal(one.data_id)} has released, and agent {one.name} would "
                "have a new ledger with the whole limit. Write the earlier name of the agent again, or another data_id "
                "if no record is in both."
            )


def backup(site: Site, to: Path) -> list[LedgerReport]:
    """Copy ledgers and keys into a new directory, which appears whole or not at all."""
    if to.exists():
        raise DataError(f"{to} exists already: name a new directory for the backup.")
    if to.resolve().is_relative_to(site.ledger.resolve()):
        raise DataError(f"{to} is in the directory of the ledgers: name one elsewhere, on another disk if you can.")
    to.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{to.name}-", dir=to.parent))  # mode 0700
    try:
        done = [_copied(site, one, draft) for one in site.agents]
        if (key := site.ledger / RECEIPT_KEY).exists():  # a site of an earlier version has none
            copy_secret(key, draft / key.name)
            done.append(LedgerReport(site.name, f"key of receipts {key.name}"))
        if site.sum is not None:
            (draft / KEYS).mkdir(mode=0o700)
            for one in site.agents:
                if (path := site.sum.key_file(one.name)).exists():
                    copy_secret(path, draft / KEYS / path.name)
                    done.append(LedgerReport(one.name, f"signing key {path.name}"))
        os.rename(draft, to)
        sync_folder(to.parent)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return done


def _copied(site: Site, one: SiteAgent, to: Path) -> LedgerReport:
    """Copy one ledger by SQLite's backup interface, and check the copy. The service may write meanwhile."""
    copy = to / ledger_file_name(one.name)
    with beside(site, one) as ledger:
        ledger.backup(copy)
    with Ledger.open(copy, deployment.price, create=False) as found:
        return LedgerReport(one.name, f"ledger {copy.name}", found.verify())


def copy_secret(path: Path, to: Path) -> None:
    """Copy a key into a new file of mode 0600, to the disk."""
    write_secret(to, path.read_bytes())


def write_secret(to: Path, secret: bytes) -> None:
    """Write a new file of mode 0600, to the disk. It appears whole or not at all."""
    draft = to.with_name(f".{to.name}.draft")
    draft.unlink(missing_ok=True)  # of a process that was killed here
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(secret)
        file.flush()
        os.fsync(file.fileno())
    os.link(draft, to)
    draft.unlink()
    sync_folder(to.parent)
