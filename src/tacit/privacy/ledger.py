"""On-disk privacy ledger: records every release of an agent, and refuses what would exceed its limit.

A release is asked for by key (data, run, round, attempt) and question. One transaction looks the key up, composes all
releases ever made from the same data, compares with the agent's own limit, computes the answer, and writes the
answer together with its price. The answer leaves after the commit is on disk, in the ledger's file and in its witness
if it has one. So

* no release leaves without an entry, and no entry is free;
* killed before the commit, nothing has left, nothing is charged, and the noise drawn is lost with the memory;
  killed after it, the answer is stored, and asking again sends it again: the same numbers, at no new cost;
* a key answered once is never answered with other noise, nor for another question (another w), and not at all once
  its answer was forgotten: the entry, its hash and its price stay for good;
* transactions exclude one another, so processes that share the file cannot spend the same budget twice.

`data_id` names the data set for good: a hash of its records would start a new budget whenever one of them changes.
The total is over everything the file has seen of that name. What is stored is what the server has seen, or follows from
that, such as the dual of an agent; records never enter the file.
"""

from __future__ import annotations

import io
import secrets
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path

import numpy as np

from tacit.errors import IncompatibleError
from tacit.jsontext import Values, canonical
from tacit.privacy.admission import Admission
from tacit.privacy.chain import Chain
from tacit.privacy.history import Account, Charge, Limit, Price, RunState
from tacit.privacy.ledger_file import LedgerFile, digest
from tacit.privacy.release import Release, describe
from tacit.privacy.terms import HELD_BY_JOIN, ZERO_OUT, Key, Terms, sent_again
from tacit.privacy.witness import Witness
from tacit.types import Array


class Ledger(LedgerFile):
    """The open ledger of one agent. `price` composes releases into an epsilon at a dp_delta."""

    def __init__(
        self, chain: Chain, price: Price, witness: Witness | None = None, settled_every: int = 1
    ) -> None:
        super().__init__(chain, witness, settled_every)
        self._price, self._admission = price, Admission(chain.path, price)
        self._due: dict[str, int] = {}  # by run: the next release deletes stored answers to rounds before this one

    @classmethod
    def open(
        cls,
        path: str | Path,
        price: Price,
        limit: Limit | None = None,
        create: bool = True,
        witness: Witness | None = None,
        settled_every: int = 1,
    ) -> Ledger:
        """Open and check the ledger at `path`; make a new one, with this limit, if there is none and `create`.

        With a `witness`, the ledger must have the entry that the witness holds.
        """
        chain = Chain(Path(path), ("limit 0", _limit_body(limit)) if create else None)
        try:
            ledger = cls(chain, price, witness, settled_every)
            ledger.verify()
            if limit is not None:
                ledger.check_limit(limit)
        except BaseException:
            chain.close()
            raise
        return ledger

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def budget(self, data_id: str) -> str:
        """The name of the budget of one data set in this ledger: no other ledger has it, not even a new one here."""
        with self._chain.transaction():
            return canonical([self._current().first, data_id])

    def check_limit(self, limit: Limit) -> None:
        """Refuse a limit that is not in force."""
        if limit != (held := self.history().limit):
            path = self._chain.path
            raise IncompatibleError(
                f"{path} holds the limit {held or 'none'} and {limit} was given: give the one that it holds, or put "
                f"the other in force: tacit ledger limit {path} --epsilon {limit.epsilon} --dp-delta {limit.dp_delta}"
            )

    def set_limit(self, limit: Limit | None) -> None:
        """Put another limit in force; the change is an entry like any other."""
        with self._chain.transaction():
            history = self._current()
            history.add(self._chain.append(f"limit {history.tip[0]}", _limit_body(limit)))
        self._committed()

    def join(self, data_id: str, terms: Terms) -> None:
        """Agree on a run: from now on it gets what the terms say and no more, and holds budget for all of it.

        The whole run must fit under the limit, beside what was spent and what other open runs hold, or it is refused
        before anything is spent. The same terms again add an entry only if the reservation has lapsed; other terms for
        the same run are refused.
        """
        with self._chain.transaction():
            if not self._agreed(data_id, terms):
                now, name = _now(), f"run {canonical([data_id, terms.run])}"
                again = "" if self._history.place(data_id, terms.run).terms is None else f" {self._history.tip[0]}"
                body = {
                    "kind": "run", "data": data_id, "terms": terms.described(), "at": _text(now),
                    "held_until": _text(now + HELD_BY_JOIN),
                }  # fmt: skip
                self._history.add(self._chain.append(f"{name}{again}", body))
        self._committed()

    def check_terms(self, data_id: str, terms: Terms) -> None:
        """Refuse what `join` would refuse, and write nothing."""
        with self._chain.transaction():
            self._agreed(data_id, terms)

    def _agreed(self, data_id: str, terms: Terms) -> bool:
        """Return whether the terms are in force, with their budget held; raise Refused if they cannot be."""
        history = self._current()
        history.check_adjacency(data_id, terms.adjacency)
        place, now = history.place(data_id, terms.run), _now()
        if place.agreed(terms):
            if not place.reserves or place.is_held(now):
                return True
            count = place.remaining
        else:
            count = max(terms.releases - place.releases, 0)
        self._admission.check_run(history, data_id, terms.run, terms.release, count, now)
        return False

    def totals(self, data_id: str, dp_delta: float) -> tuple[float, float]:
        """Return what a data set has spent, and what it will have spent once open runs have made all their releases."""
        with self._chain.transaction():
            history = self._current()
            spent = Counter(history.spent.get(data_id, Counter()))
            whole = spent + history.reserved(data_id, _now())
        of_now, held = (self._price(tuple(some.items()), dp_delta) for some in (spent, whole))
        return of_now, held

    def reserved(self, data_id: str, but: str | None = None) -> Counter[Release]:
        """Return the releases for which open runs hold budget now, one run left out."""
        with self._chain.transaction():
            return self._current().reserved(data_id, _now(), but)

    def release(
        self, key: Key, asked: str, release: Release, make: Callable[[], Array], adjacency: str = ZERO_OUT
    ) -> Array:
        """The answer to `asked`: stored, or made now and stored; or Refused, with nothing written.

        `make` computes value and noise. It runs while the file is locked, and must not use the ledger. Prices hold for
        one `adjacency`: data whose answers were priced for another are refused.
        """
        made = self._made(key, asked, release, make, adjacency)
        self._committed(leaves=True)  # an answer that is sent again may be one whose process was killed here
        return made

    def _made(self, key: Key, asked: str, release: Release, make: Callable[[], Array], adjacency: str) -> Array:
        with self._chain.transaction():
            history = self._current()
            history.check_adjacency(key.data_id, adjacency)
            answer = history.answers.get(key)
            if answer is not None:
                same = (asked, release) == (answer.asked, answer.release)
                return _unpack(sent_again(key, same, answer.at, lambda: self._stored(answer)))
            history.place(key.data_id, key.run).check_next(key, release, adjacency)
            self._admission.check_release(history, key, release, _now())
            made = np.array(make())
            payload = _pack(made)
            due = dict(self._due)
            for run, before in due.items():
                self._forget(run, before)
            body = {
                "kind": "release", "data": key.data_id, "run": key.run, "round": key.round, "step": key.step,
                "asked": asked, "release": describe(release), "adjacency": adjacency, "payload": digest(payload),
                "at": _text(_now()),
            }  # fmt: skip
            history.add(self._chain.append(str(key), body, payload))
        for run, before in due.items():  # only now that it is on disk
            if self._due.get(run) == before:
                self._due.pop(run, None)
        return made

    def forget_later(self, run: str, before: int) -> None:
        """Do what `forget` does, in the transaction of the next release: that costs no wait for the disk."""
        self._due[run] = before

    def end(self, data_id: str, run: str, why: str, final: bool = True) -> bool:
        """End a run: no later round is answered, and it holds no budget. Return False if it is over already.

        If the end is not `final` and nothing was released, the run may be joined again.
        """
        with self._chain.transaction():
            place = self._current().places.get((data_id, run))
            if place is None or (place.is_over and not (final and place.may_begin_anew)):
                return False
            body = {"kind": "end", "data": data_id, "run": run, "why": why, "final": final, "at": _text(_now())}
            self._history.add(self._chain.append(f"end {canonical([data_id, run])} {self._history.tip[0]}", body))
        self._committed()
        return True

    def charge(self, data_id: str, releases: Sequence[Release], why: str) -> None:
        """Count releases that the ledger does not know of, as its owner states them."""
        with self._chain.transaction():
            self._charge([self._stated(data_id, release) for release in releases], why)
        self._committed()

    def mark_restored(self, data_id: str, lost: Sequence[Release] = (), witnessed: Sequence[str] = ()) -> None:
        """Count every open run as answered to the end of its terms, and end it; count what was `lost` besides.

        A copy that is put back does not know what was released after it was made. These runs may have gone on. The
        mark lists the `witnessed` heads that the ledger does not have: receipts with these heads are then known.
        """
        with self._chain.transaction():
            charges = [
                Charge(data, run, place.terms.release, most, place.terms.adjacency)
                for (data, run), place in self._current().places.items()
                if place.terms is not None and (not place.ended or place.may_begin_anew)
                for most in [place.terms.releases if place.may_begin_anew else place.remaining]
            ]
            stated = [self._stated(data_id, release) for release in lost]
            heads = [head for head in witnessed if not self._history.had(head)]
            self._charge(charges + stated, "restored from a backup", heads)
        self._committed()

    def _stated(self, data_id: str, release: Release) -> Charge:
        return Charge(data_id, None, release, 1, self._current().adjacency.get(data_id, ZERO_OUT))

    def _charge(self, charges: Sequence[Charge], why: str, lost_heads: Sequence[str] = ()) -> None:
        history = self._current()
        body: Values = {
            "kind": "charge", "why": why, "charges": [one.described() for one in charges], "at": _text(_now()),
        }  # fmt: skip
        if lost_heads:
            body["lost_heads"] = list(lost_heads)
        history.add(self._chain.append(f"charge {history.tip[0]}", body))

    def runs(self) -> list[RunState]:
        """Return the state of every run that was joined."""
        return self.history().runs(_now())

    def show(self, dp_delta: float | None = None) -> tuple[Account, ...]:
        """What each data set has spent at dp_delta (that of the limit, or else 1e-6)."""
        history = self.history()
        if dp_delta is None:
            dp_delta = history.limit.dp_delta if history.limit is not None else 1e-6
        return history.accounts(self._price, dp_delta)


def _limit_body(limit: Limit | None) -> Values:
    terms = {"epsilon": None, "dp_delta": None} if limit is None else asdict(limit)
    return {"kind": "limit", **terms, "at": _text(_now()), "nonce": secrets.token_hex(16)}  # no two heads agree


def _now() -> datetime:
    return datetime.now(timezone.utc)


def _text(at: datetime) -> str:
    return at.isoformat(timespec="seconds")


def _pack(answer: Array) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.asarray(answer), allow_pickle=False)
    return stream.getvalue()


def _unpack(payload: bytes) -> Array:
    return np.asarray(np.load(io.BytesIO(payload), allow_pickle=False))
