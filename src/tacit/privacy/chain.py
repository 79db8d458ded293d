"""An append-only file of entries, each sealed by a hash over itself and all before it.

    hash_n = sha256(hash_{n-1} + body_n),   hash_0 = 0

One SQLite file: WAL, synchronous=FULL (a commit returns after fsync), readable by its owner alone. A body is canonical
JSON; its payload (what the entry is about, by sha256) stands beside it and may be forgotten without breaking the
chain. The number of entries and the last hash are kept too, so a missing tail shows.

The hashes carry no secret: they reveal an accident, a partial edit or a stale index, not an owner who rewrites the
whole file, deletes it or puts an old copy back. For that the head must stand elsewhere: the results of runs hold it,
and so does the witness of an agent service (tacit.privacy.witness).

A commit is in the log (FILE-wal) first. `checkpoint` moves the log into the file. A copy of the file alone then holds
every entry so far.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.errors import DataError, LedgerCorrupt, Refused
from tacit.jsontext import Values, canonical
from tacit.machine import sync_folder

_APPLICATION = 0x7AC17  # marks the file as ours
_FORMAT = 1
_TABLES = (
    "CREATE TABLE entry (n INTEGER PRIMARY KEY, key TEXT UNIQUE NOT NULL, body TEXT NOT NULL, hash TEXT NOT NULL)",
    "CREATE TABLE payload (n INTEGER PRIMARY KEY REFERENCES entry, data BLOB NOT NULL)",
    "CREATE TABLE tip (one INTEGER PRIMARY KEY CHECK (one = 1), n INTEGER NOT NULL, hash TEXT NOT NULL)",
)
# A commit waits for one fsync, of the log; a checkpoint waits for two more. SQLite makes one by itself whenever the log
# has this many pages, and when the last process that has the ledger open closes it.
_LOG_PAGES = 256  # of 4 KB: a dozen answers of the size of MNIST's model
_SETTINGS = f"PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = {_LOG_PAGES}"
_PATIENCE = 60.0  # seconds that a process waits for the others
_BUSY = 10.0  # seconds for which a checkpoint is tried again while another process reads the file
_MOMENT = 0.005  # seconds between two tries
START = "0" * 64
STILL_BUSY = (
    "another process has been reading {} for {:g} s, so that its newest entries are not in the file yet. They are on "
    "record: an answer is sent when it is asked for again."
)


@dataclass(frozen=True)
class ChainEntry:
    """The n-th entry, n = 1, 2, ..."""

    n: int
    body: Values
    hash: str


def link(before: str, key: str, body: str) -> str:
    """hash_n, from hash_{n-1} and the text of entry n."""
    return hashlib.sha256(f"{before}\n{canonical(key)}\n{body}".encode()).hexdigest()


class Chain:
    """The file, open. Entries are read and written inside `transaction()` only."""

    def __init__(self, path: Path, first: tuple[str, Values] | None) -> None:
        """Open the file; create it with a first entry, its key and body, if it is absent and one is given."""
        self.path = path
        self._lock = threading.RLock()  # asking from inside an answer is then an error of SQLite, not a deadlock
        self._process = os.getpid()
        if not path.exists():
            if first is None:
                raise DataError(f"{path} does not exist: name the ledger file of an agent.")
            try:
                _create(path, *first)
            except (OSError, sqlite3.Error) as error:
                raise DataError(f"cannot create the ledger {path} ({error}): name a place you own.") from error
        if not path.is_file():
            raise DataError(f"{path} is no file: name the ledger file of an agent.")
        with self._explained():
            self._connection = _connect(path)
            try:
                self._connection.executescript(_SETTINGS)
                self._check_kind()
                os.chmod(path, 0o600)  # only now that it is known to be a ledger
                self._identity, self._size = _identity(path)
                self._log: tuple[int, int] | None = None  # of the file that SQLite writes to first, once there is one
            except BaseException:
                self._connection.close()
                raise

    def close(self) -> None:
        """Release the file."""
        if os.getpid() == self._process:  # SQLite must not be touched after a fork, closing included
            self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Keep all others out of the file. At the end all that was written is on disk; after an error nothing is."""
        if os.getpid() != self._process:
            raise Refused(f"{self.path} was opened before a fork: open the ledger again in each process.")
        with self._lock, self._explained():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._check_in_place()
                yield
                self._check_in_place()
                self._connection.execute("COMMIT")
                self._size = max(self._size, _identity(self.path)[1])
                self._log = self._log or self._log_identity()
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def checkpoint(self) -> None:
        """Move all that was committed into the file, so that a copy of the file alone holds every entry.

        SQLite gives up at once if another connection is moving the log: then try again, and raise Refused at last.
        """
        with self._lock, self._explained():
            end = time.monotonic() + _BUSY
            self._connection.execute(f"PRAGMA busy_timeout = {round(1000 * _BUSY)}")
            try:
                while not self._is_moved():
                    if time.monotonic() >= end:
                        raise Refused(STILL_BUSY.format(self.path, _BUSY))
                    time.sleep(_MOMENT)
            finally:
                self._connection.execute(f"PRAGMA busy_timeout = {round(1000 * _PATIENCE)}")
            self._check_in_place()
            self._size = max(self._size, _identity(self.path)[1])

    def _is_moved(self) -> bool:
        busy, logged, moved = self._connection.execute("PRAGMA wal_checkpoint(FULL)").fetchone()
        return not busy and bool(moved == logged)

    def backup(self, to: Path) -> None:
        """Write a copy of the file as it is now, whether others use it or not. `to` is a new file of mode 0600."""
        with self._lock, self._explained():
            os.close(os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            with closing(_connect(to)) as copy:
                self._connection.backup(copy)
            with to.open("rb") as file:
                os.fsync(file.fileno())
            sync_folder(to.parent)

    def _check_in_place(self) -> None:
        """Refuse to go on where the file at the path is not the file that is open: an entry would be lost with it."""
        which, size = _identity(self.path)
        if which != self._identity or size < self._size:
            raise self.corrupt("the file was moved, removed, cut or replaced while it was open")
        if self._log is not None and self._log_identity() != self._log:
            raise self.corrupt("its log (the same name, -wal) was moved, removed or replaced while it was open")

    def _log_identity(self) -> tuple[int, int] | None:
        return _identity(Path(f"{self.path}-wal"))[0]

    def changed_by_others(self) -> int:
        """A number that changes when another connection has written."""
        return int(self._value("PRAGMA data_version"))

    def tip(self) -> tuple[int, str]:
        """The number of entries, and the last hash."""
        rows = self._connection.execute("SELECT one, n, hash FROM tip").fetchall()
        if len(rows) != 1:
            raise self.corrupt("the record of its last entry is missing")
        return rows[0][1], rows[0][2]

    def entries(self) -> Iterator[ChainEntry]:
        """Every entry in order, its hash checked against all before it; at the end the tip must agree."""
        n, before = 0, START
        for row in self._connection.execute("SELECT n, key, body, hash FROM entry ORDER BY n"):
            n += 1
            if row[0] != n:
                raise self.corrupt(f"entry {n} is missing")
            if not all(isinstance(text, str) for text in row[1:]) or link(before, row[1], row[2]) != row[3]:
                raise self.corrupt(f"entry {n} was altered")
            before = row[3]
            yield ChainEntry(n, json.loads(row[2]), before)
        if (n, before) != self.tip():
            raise self.corrupt(f"entries after the {n}-th are missing")

    def append(self, key: str, body: Values, payload: bytes | None = None) -> ChainEntry:
        """Write one more entry at the end; the body should hold the digest of its payload."""
        n, before = self.tip()
        entry = _written(self._connection, n + 1, before, key, body)
        if payload is not None:
            self._connection.execute("INSERT INTO payload VALUES (?, ?)", (entry.n, payload))
        return entry

    def payload(self, n: int) -> bytes | None:
        """The payload of entry n; None where it was forgotten."""
        row = self._connection.execute("SELECT data FROM payload WHERE n = ?", (n,)).fetchone()
        if row is not None and not isinstance(row[0], bytes):
            raise self.corrupt(f"the payload of entry {n} was altered")
        return None if row is None else row[0]

    def count_payloads(self) -> int:
        """How many payloads are stored."""
        return int(self._value("SELECT COUNT(*) FROM payload"))

    def kept(self) -> list[tuple[int, str]]:
        """The numbers and keys of all entries whose payload is stored."""
        return self._connection.execute("SELECT n, key FROM payload JOIN entry USING (n)").fetchall()

    def forget(self, n: int) -> int:
        """Drop the payload of entry n, and keep the entry; how many payloads that were, 0 or 1."""
        return self._connection.execute("DELETE FROM payload WHERE n = ?", (n,)).rowcount

    def check_storage(self) -> None:
        """Refuse a file whose pages or indexes SQLite finds damaged."""
        found = self._value("PRAGMA integrity_check(1)")
        if found != "ok":
            raise self.corrupt(f"its storage is damaged ({found})")

    def corrupt(self, what: str) -> LedgerCorrupt:
        """Make the error for a file that cannot be trusted."""
        return LedgerCorrupt(
            f"{self.path} cannot be trusted: {what}. Nothing is released from it: restore the newest copy (at a site: "
            "tacit agent restore), or count the budget of these data as spent."
        )

    def _check_kind(self) -> None:
        if (self._value("PRAGMA application_id"), self._value("PRAGMA user_version")) != (_APPLICATION, _FORMAT):
            raise self.corrupt(f"it is not a ledger of format {_FORMAT}")
        found = {sql for (sql,) in self._connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
        if found != set(_TABLES):
            raise self.corrupt("its tables are not those of a ledger")

    def _value(self, question: str) -> Any:
        return self._connection.execute(question).fetchone()[0]

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn errors of SQLite and of decoding into errors that say what to do."""
        try:
            yield
        except sqlite3.OperationalError as error:  # locked for too long, a full disk, a missing right
            raise Refused(f"{self.path} cannot be used now ({error}): nothing was released; try again.") from error
        except (sqlite3.Error, json.JSONDecodeError, UnicodeDecodeError) as error:
            raise self.corrupt(f"SQLite cannot read it ({error})") from error


def _identity(path: Path) -> tuple[tuple[int, int] | None, int]:
    """The device and inode of the file at a path, None where there is none, and its size. A ledger never shrinks."""
    try:
        found = path.stat()
    except OSError:
        return None, 0
    return (found.st_dev, found.st_ino), found.st_size


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)


def _written(connection: sqlite3.Connection, n: int, before: str, key: str, body: Values) -> ChainEntry:
    """Write entry n, after the entry whose hash is `before`, and move the tip to it."""
    text = canonical(body)
    entry = ChainEntry(n, body, link(before, key, text))
    connection.execute("INSERT INTO entry VALUES (?, ?, ?, ?)", (n, key, text, entry.hash))
    connection.execute("INSERT OR REPLACE INTO tip VALUES (1, ?, ?)", (n, entry.hash))
    return entry


def _create(path: Path, key: str, body: Values) -> None:
    """Create the file: it appears whole or not at all, and never in place of another."""
    left = [Path(f"{path}{end}") for end in ("-wal", "-shm") if Path(f"{path}{end}").exists()]
    if left and not path.exists():  # else another process has just made the ledger
        raise DataError(
            f"{left[0]} is left of a ledger that is gone: put that ledger back beside it, or remove {left[0].name} if "
            "its budget is counted elsewhere."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    number, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)  # mode 0600
    os.close(number)
    draft = Path(name)
    try:
        with closing(_connect(draft)) as connection:
            connection.executescript(_SETTINGS)
            for statement in ("PRAGMA journal_mode = WAL", "BEGIN IMMEDIATE", *_TABLES):
                connection.execute(statement)
            _written(connection, 1, START, key, body)
            for mark in (f"application_id = {_APPLICATION}", f"user_version = {_FORMAT}"):
                connection.execute(f"PRAGMA {mark}")
            connection.execute("COMMIT")
        with suppress(FileExistsError):  # another process was first: its ledger is the ledger
            os.link(draft, path)
        sync_folder(path.parent)
    finally:
        draft.unlink()
