"""Receipts: how far an agent's ledger had come when an answer left, with a tag that only the agent's site can make.

Every answer carries the position of its entry in the ledger and a tag, an HMAC-SHA256 of that position under a key that
stays at the site. A coordinator keeps the last receipt of each agent and shows it when the agent joins the next run.

* A valid receipt of an entry that the ledger does not have proves that an older copy of the ledger was put back:
  answers have left that this copy does not count. A witness cannot show that if it was put back as well.
* A tag that is not valid proves nothing. So a coordinator cannot stop a site with receipts that it invents.
* A ledger is not proved complete: a coordinator may show an earlier receipt, or none.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass

from tacit.jsontext import canonical
from tacit.privacy.witness import Position

KEY_BYTES = 32
_LABEL = "tacit receipt 1"  # the key tags nothing else


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
