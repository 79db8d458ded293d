"""The files of a site that must not be lost: the ledgers of its agents, their witnesses and signing keys.

    init      makes those that are not there yet; it is the only command that makes a ledger for a service
    opened    opens the ledger of an agent for the service; LedgerMissing if it or its witness is not there
    backup    copies ledgers and signing keys while the service may run; never a run's mask keys
    restore   puts back ledgers from a backup, and counts their runs as answered to the end of their terms

Mask keys of runs are not backed up, and `restore` deletes them. A mask that was used in a round would show the
difference of two noise shares if the same round were answered again.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from tacit import toml
from tacit.errors import DataError, DataRenamed, IncompatibleError, LedgerCorrupt, LedgerMissing
from tacit.federation.site import Holding, Site
from tacit.lock import locked
from tacit.machine import sync_folder
from tacit.privacy.history import History
from tacit.privacy.ledger import Ledger, Verified
from tacit.privacy.release import Release
from tacit.privacy.witness import Witness
from tacit.run import deploy
from tacit.run.ledgers import file_of

_AFTER_LOSS = (
    "put it back, or restore a backup (tacit agent restore SITE.toml BACKUP). If no agent has ever answered from it, "
    "make it with tacit agent init SITE.toml."
)
KEYS = "keys"  # the directory of the signing keys in a backup


@dataclass(frozen=True)
class Done:
    """What was done with the files of one agent, in words, and the ledger as it is now."""

    agent: str
    what: str
    ledger: Verified | None = None


def ledger_file(site: Site, agent: str) -> Path:
    """Return the path of an agent's ledger."""
    return site.ledger / file_of(agent)


def witness_of(site: Site, agent: str) -> Witness:
    """Return the witness of an agent's ledger."""
    return Witness(site.witness / f"{Path(file_of(agent)).stem}.witness", agent)


def opened(site: Site, holding: Holding) -> Ledger:
    """Open an agent's ledger, with its witness; refuse one that knows the records by another name."""
    file = ledger_file(site, holding.name)
    if not file.is_file():
        raise LedgerMissing(
            f"the ledger of agent {holding.name} is not at {file}. It counts what was released before, so that no new "
            f"one is made here: {_AFTER_LOSS}"
        )
    ledger = Ledger.open(file, deploy.price, site.limit, create=False, witness=witness_of(site, holding.name))
    try:
        check_data_id(holding, ledger.history())
        ledger.settle()  # after a crash, the witness may be behind
    except BaseException:
        ledger.close()
        raise
    return ledger


def check_data_id(holding: Holding, history: History) -> None:
    """Refuse a data_id without releases beside others that have some: the same records would have a second budget."""
    others = sorted(set(history.spent) - {holding.data_id, *holding.apart})
    if others and holding.data_id not in history.spent:
        known = ", ".join(map(repr, others))
        listed = toml.literal([*holding.apart, *others])
        raise DataRenamed(
            f"the ledger of agent {holding.name} has answered for {known}, and the site file has data_id = "
            f"{toml.literal(holding.data_id)}, which would start with the whole limit. If any record is in both, write "
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


def _make_directories(site: Site) -> None:
    for folder in (site.ledger, site.witness):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)


def init(site: Site) -> list[Done]:
    """Make the ledger, the witness and the signing key of each agent that has none; check those that are there."""
    _make_directories(site)
    with alone(site):
        done = [_begun(site, one) for one in site.agents]
    if site.sum is not None:
        from tacit.guarded.masks import files  # needs the extra `secure`

        for one in site.agents:
            if not (path := site.sum.key_file(one.name)).exists():
                files.new_signing_key(path)
                done.append(Done(one.name, f"new signing key {path}"))
    return done


def _begun(site: Site, one: Holding) -> Done:
    file, witness = ledger_file(site, one.name), witness_of(site, one.name)
    new, unwitnessed = not file.exists(), not witness.path.exists()
    if new and not unwitnessed:
        raise LedgerMissing(
            f"{witness.path} is the witness of a ledger of agent {one.name} that is not at {file}. A new ledger would "
            "not count what that one has released: put it back, or restore a backup (tacit agent restore)."
        )
    held = None if unwitnessed else witness
    with Ledger.open(file, deploy.price, site.limit, create=new, witness=held) as ledger:
        found = ledger.verify()
        if unwitnessed:
            ledger.attest(witness)
    made = "new ledger and witness" if new else "ledger as before, new witness" if unwitnessed else "ledger as before"
    return Done(one.name, f"{made}: {file}", found)


def backup(site: Site, to: Path) -> list[Done]:
    """Copy ledgers and signing keys into a new directory, which appears whole or not at all."""
    if to.exists():
        raise DataError(f"{to} exists already: name a new directory for the backup.")
    if to.resolve().is_relative_to(site.ledger.resolve()):
        raise DataError(f"{to} is in the directory of the ledgers: name one elsewhere, on another disk if you can.")
    to.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{to.name}-", dir=to.parent))  # mode 0700
    try:
        done = [_copied(site, one, draft) for one in site.agents]
        if site.sum is not None:
            (draft / KEYS).mkdir(mode=0o700)
            for one in site.agents:
                if (path := site.sum.key_file(one.name)).exists():
                    _copy_secret(path, draft / KEYS / path.name)
                    done.append(Done(one.name, f"signing key {path.name}"))
        os.rename(draft, to)
        sync_folder(to.parent)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return done


def _copied(site: Site, one: Holding, to: Path) -> Done:
    """Copy one ledger by SQLite's backup interface, and check the copy. The service may write meanwhile."""
    file = ledger_file(site, one.name)
    if not file.is_file():
        raise LedgerMissing(f"the ledger of agent {one.name} is not at {file}: there is nothing to back up.")
    with Ledger.open(file, deploy.price, create=False) as ledger:
        ledger.backup(to / file.name)
    with Ledger.open(to / file.name, deploy.price, create=False) as copy:
        return Done(one.name, f"ledger {file.name}", copy.verify())


def restore(site: Site, source: Path, lost: Sequence[Release] = (), agent: str | None = None) -> list[Done]:
    """Put back the ledgers that are missing or older than their witness from a backup, and the signing keys.

    Every run that a restored ledger had joined counts as answered to the end of its terms, and has ended. `lost` are
    releases that the owner knows of and the backup does not count. A ledger that is whole is kept.
    """
    chosen = [one for one in site.agents if agent in (None, one.name)]
    if not chosen:
        raise DataError(f"the site has no agent {agent!r}: it has {', '.join(one.name for one in site.agents)}.")
    _make_directories(site)
    with alone(site):
        broken = [one for one in chosen if not _is_whole(site, one)]
        if not broken:
            raise DataError(
                "all ledgers are whole and go through their witnesses, so that nothing is to be restored: a backup "
                "would only be older. To charge a run that is not in a ledger: tacit ledger charge FILE."
            )
        for one in broken:
            _check_backup(site, one, source)
        _forget_run_keys(site)
        done = [_restored(site, one, source, lost) for one in broken]
        return done + _restored_keys(site, source)


def _is_whole(site: Site, one: Holding) -> bool:
    try:
        opened(site, one).close()
    except (LedgerMissing, LedgerCorrupt, DataError):
        return False
    return True


def _check_backup(site: Site, one: Holding, source: Path) -> None:
    """Check the backup of an agent before anything is changed."""
    file = source / file_of(one.name)
    with Ledger.open(file, deploy.price, site.limit, create=False) as ledger:
        ledger.verify()


def _restored(site: Site, one: Holding, source: Path, lost: Sequence[Release]) -> Done:
    file, witness = ledger_file(site, one.name), witness_of(site, one.name)
    draft = file.with_name(f".{file.name}.restored")
    for end in ("", "-wal", "-shm"):  # of a process that was killed here
        Path(f"{draft}{end}").unlink(missing_ok=True)
    with Ledger.open(source / file.name, deploy.price, create=False) as ledger:
        ledger.backup(draft)
    with Ledger.open(draft, deploy.price, site.limit, create=False) as ledger:
        ledger.mark_restored(one.data_id, lost)
    set_aside = _set_aside(file)
    os.rename(draft, file)
    sync_folder(file.parent)
    with Ledger.open(file, deploy.price, site.limit, create=False) as ledger:
        ledger.attest(witness)
        kept = f"; what was there is now {set_aside.name}" if set_aside else ""
        return Done(one.name, f"restored {file}{kept}", ledger.verify())


def _set_aside(file: Path) -> Path | None:
    """Rename a damaged or old ledger with its log, and return its new name; None if there is none."""
    at = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%S")
    moved = None
    for end in ("-shm", "-wal", ""):
        if (old := Path(f"{file}{end}")).exists():
            moved = Path(f"{file}.replaced-{at}{end}")
            os.rename(old, moved)
    return moved


def _forget_run_keys(site: Site) -> None:
    for path in site.ledger.glob("*.runkey"):
        path.unlink(missing_ok=True)


def _restored_keys(site: Site, source: Path) -> list[Done]:
    done = []
    for one in site.agents if site.sum is not None else ():
        assert site.sum is not None
        path = site.sum.key_file(one.name)
        if not path.exists() and (source / KEYS / path.name).is_file():
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            _copy_secret(source / KEYS / path.name, path)
            done.append(Done(one.name, f"restored signing key {path}"))
    return done


def _copy_secret(path: Path, to: Path) -> None:
    """Copy a key into a new file of mode 0600, to the disk."""
    with open(os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(path.read_bytes())
        file.flush()
        os.fsync(file.fileno())
    sync_folder(to.parent)
