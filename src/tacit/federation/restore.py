"""Put back the ledgers of a site after a loss, without counting any release as free.

A backup does not know what was released after it was made. So every run that the restored ledger had joined counts as
answered to the end of its terms, and has ended. Mask keys of runs are deleted: a mask that was used in a round would
show the difference of two noise shares if the same round were answered again.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

from tacit.errors import DataError, LedgerCorrupt, LedgerMissing
from tacit.federation.ledger_files import (
    KEYS,
    RECEIPT_KEY,
    LedgerReport,
    alone,
    copy_secret,
    ledger_file,
    make_directories,
    opened,
    witness_of,
)
from tacit.federation.site import Site, SiteAgent
from tacit.machine import sync_folder
from tacit.privacy.ledger import Ledger
from tacit.privacy.release import Release
from tacit.run import deployment


def restore(site: Site, source: Path, lost: Sequence[Release] = (), agent: str | None = None) -> list[LedgerReport]:
    """Put back the ledgers that are missing, damaged or older than their witness, and missing keys.

    A ledger that has all entries of the backup is kept: only its witness was lost. In both cases, every run that the
    ledger had joined counts as answered to the end of its terms, and has ended. `lost` are releases that the owner
    knows of and the ledger does not count.
    """
    chosen = [one for one in site.agents if agent in (None, one.name)]
    if not chosen:
        raise DataError(f"the site has no agent {agent!r}: it has {', '.join(one.name for one in site.agents)}.")
    make_directories(site)
    with alone(site):
        broken = [one for one in chosen if not _is_whole(site, one)]
        if not broken:
            if done := _restored_keys(site, source):
                return done
            raise DataError(
                "all ledgers are whole and go through their witnesses, so that nothing is to be restored: a backup "
                "would only be older. To charge a run that is not in a ledger: tacit ledger charge FILE."
            )
        try:
            taken = [_draft(site, one, source, lost) for one in broken]  # before anything is changed
        except BaseException:
            for one in broken:
                _clear(_draft_of(site, one))
            raise
        _forget_run_keys(site)
        done = [_restored(site, one, what) for one, what in zip(broken, taken, strict=True)]
        return done + _restored_keys(site, source)


def _is_whole(site: Site, one: SiteAgent) -> bool:
    try:
        opened(site, one).close()
    except (LedgerMissing, LedgerCorrupt, DataError):
        return False
    return True


def _draft_of(site: Site, one: SiteAgent) -> Path:
    file = ledger_file(site, one.name)
    return file.with_name(f".{file.name}.restored")


def _clear(draft: Path) -> None:
    for end in ("", "-wal", "-shm"):
        Path(f"{draft}{end}").unlink(missing_ok=True)


def _draft(site: Site, one: SiteAgent, source: Path, lost: Sequence[Release]) -> str:
    """Write the restored ledger beside the present one; return what was taken for it, in words."""
    file, draft = ledger_file(site, one.name), _draft_of(site, one)
    _clear(draft)  # of a process that was killed here
    if not (source / file.name).is_file():
        raise DataError(f"{source / file.name} does not exist: name a directory that tacit agent backup has written.")
    copy_secret(source / file.name, draft)  # a backup may be on a disk that cannot be written
    taken = "from the backup"
    with Ledger.open(draft, deployment.price, create=False) as ledger:
        theirs = ledger.verify()
        if (present := _present(file)) is not None:
            ours, heads = present
            if theirs.head in heads:
                taken = "as it was, with a new witness"
            elif ours not in {entry.hash for entry in ledger.entries()}:
                raise DataError(
                    f"{file} and {source / file.name} have gone different ways, so that each has releases that the "
                    f"other does not count. Decide which one to keep. To keep the backup, move {file} away, enter what "
                    "it has released with --lost, and give the command again."
                )
    if taken != "from the backup":
        _clear(draft)
        with Ledger.open(file, deployment.price, create=False) as ledger:
            ledger.backup(draft)
    with Ledger.open(draft, deployment.price, create=False) as ledger:
        ledger.mark_restored(one.data_id, lost, _witnessed(site, one))
    return taken


def _witnessed(site: Site, one: SiteAgent) -> list[str]:
    """Return heads that the ledger is known to have had; none if its witness is missing or damaged."""
    try:
        position = witness_of(site, one.name).read()
    except (LedgerMissing, LedgerCorrupt):
        return []
    return sorted({position.head, position.answered} - {""})


def _present(file: Path) -> tuple[str, set[str]] | None:
    """Return the head of the present ledger, and all its earlier heads; None if it is missing or damaged."""
    try:
        with Ledger.open(file, deployment.price, create=False) as ledger:
            return ledger.verify().head, {entry.hash for entry in ledger.entries()}
    except (LedgerCorrupt, DataError):
        return None


def _restored(site: Site, one: SiteAgent, taken: str) -> LedgerReport:
    file = ledger_file(site, one.name)
    set_aside = _set_aside(file)
    os.rename(_draft_of(site, one), file)
    sync_folder(file.parent)
    with Ledger.open(file, deployment.price, create=False) as ledger:
        ledger.attest(witness_of(site, one.name))
        kept = f"; what was there is now {set_aside.name}" if set_aside else ""
        return LedgerReport(one.name, f"restored {file} {taken}{kept}", ledger.verify())


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


def _restored_keys(site: Site, source: Path) -> list[LedgerReport]:
    """Put back the keys that are missing and in the backup."""
    keys = [(site.name, "key of receipts", source / RECEIPT_KEY, site.ledger / RECEIPT_KEY)]
    for one in site.agents if site.sum is not None else ():
        assert site.sum is not None
        path = site.sum.key_file(one.name)
        keys.append((one.name, "signing key", source / KEYS / path.name, path))
    done = []
    for whose, kind, kept, path in keys:
        if not path.exists() and kept.is_file():
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            copy_secret(kept, path)
            done.append(LedgerReport(whose, f"restored {kind} {path}"))
    return done
