"""What shows, outside the folder of a ledger, how far the ledger has come: its witness, and receipts of its answers.

A witness is a small file. It holds the agent, the hash of the ledger's first entry, the number
of entries, the last hash (the head) and, since version 0.2.0, the head after the last answer, which is on the last
receipt. It is written after each commit and before the answer leaves. So a ledger that does not have that head at that
entry is another ledger or an older copy: answers have left that it does not know. A ledger that has more entries than
its witness is normal: the process was stopped between the commit and the witness.

A witness does not help if somebody puts back ledger and witness together. Receipts do: every answer carries the
position of its entry and a tag, an HMAC-SHA256 of that position under a key that stays at the site. A coordinator keeps
the last receipt of each agent and shows it when the agent joins the next run.

* A valid receipt of an entry that the ledger does not have proves that an older copy of the ledger was put back:
  answers have left that this copy does not count.
* A tag that is not valid proves nothing. So a coordinator cannot stop a site with receipts that it invents.
* A ledger is not proved complete: a coordinator may show an earlier receipt, or none.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from tacit.errors import LedgerCorrupt, LedgerMissing, Refused
from tacit.jsontext import canonical
from tacit.machine import write_whole

_HEAD_DIGITS = 64
KEY_BYTES = 32  # of the key of receipts
_LABEL = "tacit receipt 1"  # the key tags nothing else


@dataclass(frozen=True)
class Position:
    """How far the ledger of an agent has come."""

    agent: str
    first: str  # the hash of the first entry, which no other ledger has
    entries: int
    head: str  # the hash of the last entry
    answered: str = ""  # the head after the last answer, if there was one


class Witness:
    """The file of one agent. Only the process that holds the ledger's folder `writes` it; others compare with it."""

    def __init__(self, path: Path, agent: str, writes: bool = True) -> None:
        self.path, self.agent, self.writes = path, agent, writes
        self._written: Position | None = None

    def read(self) -> Position:
        """Return what the file says."""
        try:
            found = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise LedgerMissing(
                f"the witness of agent {self.agent} is not at {self.path}, so that nothing shows whether its ledger is "
                "complete. Put the file back. If the ledger is of an earlier version of tacit, or if you vouch for it, "
                "tacit agent init SITE.toml makes a witness."
            ) from None
        except (OSError, ValueError) as error:
            raise self._damaged(str(error)) from None
        kinds = {"agent": str, "first": str, "entries": int, "head": str, "answered": str}
        kinds_found = {key: type(value) for key, value in found.items()} if isinstance(found, dict) else {}
        if kinds != {"answered": str} | kinds_found:
            raise self._damaged("it needs agent, first, entries and head")
        position = Position(**found)
        if position.agent != self.agent:
            raise self._damaged(f"it is the witness of agent {position.agent!r}")
        if position.entries < 1 or len(position.head) != _HEAD_DIGITS:
            raise self._damaged("its numbers cannot be those of a ledger")
        self._written = position
        return position

    def write(self, position: Position) -> None:
        """Replace the file: it is on disk when this returns. Raise Refused if that fails."""
        if position == self._written or not self.writes:
            return
        text = json.dumps(asdict(position), indent=1) + "\n"
        try:
            write_whole(self.path, lambda file: file.write(text.encode()))
        except OSError as error:
            raise Refused(
                f"the witness {self.path} cannot be written ({os.strerror(error.errno or 0)}), so that nothing leaves. "
                "What was answered is on record: it is sent when it is asked for again."
            ) from None
        self._written = position

    def _damaged(self, why: str) -> LedgerCorrupt:
        return LedgerCorrupt(
            f"the witness {self.path} of agent {self.agent} cannot be used ({why}). Put it back, or make it anew with "
            "tacit agent restore SITE.toml BACKUP, which keeps a ledger that is newer than the backup."
        )

@dataclass(frozen=True)
class Receipt:
    """The position of an answer's entry in the ledger of an agent, and its tag: 64 hexadecimal digits."""

    agent: str
    first: str
    entries: int
    head: str
    tag: str

    @property
    def position(self) -> Position:
        """What the tag vouches for."""
        return Position(self.agent, self.first, self.entries, self.head)


class ReceiptKey:
    """The key of a site, with which it makes receipts and recognises its own."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def receipt(self, position: Position) -> Receipt:
        """Return the receipt of a position."""
        return Receipt(position.agent, position.first, position.entries, position.head, self._tag(position))

    def made(self, receipt: Receipt) -> bool:
        """Return whether this key has made a receipt. The time that it takes does not depend on the tag."""
        return hmac.compare_digest(self._tag(receipt.position), receipt.tag)

    def _tag(self, position: Position) -> str:
        text = canonical([_LABEL, position.agent, position.first, position.entries, position.head])
        return hmac.new(self._secret, text.encode(), hashlib.sha256).hexdigest()
