"""The file of a ledger: its chain of entries read as a history, complete on disk before an answer leaves.

With a witness (tacit.privacy.witness), the file must contain the entry that the witness holds. Otherwise it is an older
copy or another ledger, and no answer leaves. tacit.privacy.ledger decides what is entered.
"""

from __future__ import annotations

import hashlib
import json
import threading
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tacit.errors import Refused, SpecError
from tacit.privacy.chain import Chain, ChainEntry
from tacit.privacy.history import Answer, History
from tacit.privacy.terms import Key
from tacit.privacy.witness import Position, Witness


@dataclass(frozen=True)
class Verified:
    """What was found in a ledger that is whole. The head is worth noting elsewhere."""

    entries: int
    head: str
    releases: int
    forgotten: int


class LedgerFile:
    """The open file of one ledger, with its witness if it has one.

    After every `settled_every` commits, the file is complete without its log, and the witness knows of all of them.
    """

    def __init__(self, chain: Chain, witness: Witness | None, settled_every: int) -> None:
        self._chain, self._witness = chain, witness
        self._settled_every, self._commits = settled_every, 0
        self._settling, self._counting = threading.Lock(), threading.Lock()
        self._history, self._version = History(), -1  # as of this version of the file
        noted = None if witness is None else witness.read()
        self._seen = (0, "") if noted is None else (noted.entries, noted.head)  # the chain goes through it, for good

    @property
    def head(self) -> str:
        """The last hash: it covers everything on record."""
        with self._chain.transaction():
            return self._chain.tip()[1]

    def entries(self) -> list[ChainEntry]:
        """Return all entries."""
        with self._chain.transaction():
            return list(self._chain.entries())

    def history(self) -> History:
        """A copy of everything on record, to look at."""
        with self._chain.transaction():
            return self._read()

    def verify(self, head: str | None = None) -> Verified:
        """Read everything again, stored answers included; a `head` noted earlier must still be in the chain."""
        with self._chain.transaction():
            self._chain.check_storage()
            self._version = -1  # whatever was read before
            history = self._current()
            held = sum(self._stored(answer) is not None for answer in history.answers.values())
            if held != self._chain.count_payloads():
                raise self._chain.corrupt("it stores an answer that no entry speaks of")
            if head is not None and head.lower() not in {entry.hash for entry in self._chain.entries()}:
                raise self._chain.corrupt(f"it does not go through {head[:12]}..., the head noted earlier")
        return Verified(*history.tip, len(history.answers), len(history.answers) - held)

    def position_after(self, agent: str, key: Key) -> Position:
        """Return the position of the agent's ledger when an answer was its last entry."""
        with self._chain.transaction():
            answer = self._current().answers[key]
            return Position(agent, self._history.first, answer.n, answer.head)

    def confront(self, shown: Position) -> None:
        """Compare the ledger with the position of an answer that has left; raise LedgerCorrupt if it is unknown.

        It is known if the ledger has that entry, or if a restore mark lists the head. Otherwise the witness takes that
        position, so that nothing leaves after a restart either, until the owner restores.
        """
        with self._settling:
            with self._chain.transaction():
                if self._current().had(shown.head):
                    return
                self._seen, self._version = (shown.entries, shown.head), -1
            if self._witness is not None:
                self._witness.write(replace(shown, answered=shown.head))
        raise self._chain.corrupt(
            f"a coordinator has a valid receipt of entry {shown.entries}, which this ledger does not have. It is an "
            "older copy or another ledger, and answers have left that it does not count"
        )

    def attest(self, witness: Witness) -> None:
        """Write a witness of this ledger as it is now, wherever an earlier one was, and keep it from now on."""
        self._witness = witness
        self.settle()

    def backup(self, to: Path) -> None:
        """Write a copy of the ledger as it is now into a new file."""
        self._chain.backup(to)

    def forget(self, run: str, before: int) -> int:
        """Drop the stored answers of a run to rounds < before, which can then never be sent again, and count them."""
        with self._chain.transaction():
            return self._forget(run, before)

    def settle(self) -> None:
        """Complete the file, so that a copy of it alone holds every entry, and then its witness; or raise Refused."""
        with self._settling:  # a witness never goes back
            with self._counting:
                committed = self._commits
            with self._chain.transaction():
                history, agent = self._current(), "" if self._witness is None else self._witness.agent
                position = Position(agent, history.first, *history.tip, history.answered)
            self._chain.checkpoint()
            if self._witness is not None:
                self._witness.write(position)
            with self._counting:
                self._commits -= committed

    def close(self) -> None:
        """Settle what was committed, and release the file."""
        with suppress(Refused):  # it is on record all the same
            if self._commits:
                self.settle()
        self._chain.close()

    def _committed(self, leaves: bool = False) -> None:
        """Settle after enough commits. If that fails, nothing may leave; other entries are settled with the next."""
        with self._counting:
            self._commits += 1
            due = self._commits >= self._settled_every
        if due:
            with nullcontext() if leaves else suppress(Refused):
                self.settle()

    def _forget(self, run: str, before: int) -> int:
        dropped = 0
        for n, key in self._chain.kept():
            _, its_run, its_round, _ = json.loads(key)
            dropped += self._chain.forget(n) if its_run == run and its_round < before else 0
        return dropped

    def _current(self) -> History:
        """The history; read again from the first entry where anything but this object has written."""
        version = self._chain.changed_by_others()
        if version != self._version or self._history.tip != self._chain.tip():
            self._history, self._version = self._read(), version
        self._seen = self._history.tip
        return self._history

    def _read(self) -> History:
        """Read the chain, which must go through the last entry that was seen of it, here or by the witness."""
        history, (n, head) = History(), self._seen
        goes_through = not n
        for entry in self._chain.entries():
            try:
                history.add(entry)
            except (KeyError, TypeError, ValueError, SpecError) as error:
                raise self._chain.corrupt(f"entry {entry.n} is of no kind this version of tacit knows") from error
            goes_through |= (entry.n, entry.hash) == (n, head)
        if not goes_through:
            seen_by = "when it was last read" if self._witness is None else f"when {self._witness.path} was written"
            raise self._chain.corrupt(
                f"it does not have the entry {n} that it had {seen_by}. It is an older copy or another ledger, and "
                "answers have left that it does not count"
            )
        return history

    def _stored(self, answer: Answer) -> bytes | None:
        payload = self._chain.payload(answer.n)
        if payload is not None and digest(payload) != answer.payload:
            raise self._chain.corrupt(f"the answer stored with entry {answer.n} was altered")
        return payload


def digest(payload: bytes) -> str:
    """Return the hash of a stored answer, as an entry has it."""
    return hashlib.sha256(payload).hexdigest()
