"""The agents of a site in one run: each answers by itself, side by side with the others.

`Office` is what all runs of a service share. `JoinedRun` is a run whose agents release models. A run behind a secure
sum is in tacit.federation.sum_service. Both reply to messages, one at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import numpy as np

from tacit.errors import Unfit
from tacit.federation.log import Log, reason
from tacit.federation.messages import Answer, Ask, AskSum, Close, Join, Message, Refusal, Released, Signed
from tacit.guarded.agent import Resident
from tacit.guarded.gate import Question
from tacit.privacy.ledger import Ledger
from tacit.privacy.terms import Key
from tacit.types import Array

Given = TypeVar("Given")


@dataclass(frozen=True, eq=False)
class Office:
    """What the runs of a service share: ledgers and data ids of its agents by name, threads, and the owner's log."""

    ledgers: Mapping[str, Ledger]
    data_ids: Mapping[str, str]
    threads: ThreadPoolExecutor
    log: Log

    def answers(
        self, names: Iterable[str], ask: Ask | AskSum, answer: Callable[[str], Given]
    ) -> tuple[list[Given], tuple[str, ...]]:
        """The answers of these agents, and the names of those that refuse: of them, nothing else leaves."""

        def one(name: str) -> Given | None:
            try:
                return answer(name)
            except Exception as error:  # of one agent: the others answer
                told = f"agent {name} does not answer round {ask.t}: {reason(error)}"
                self.log(told, event="refused", run=ask.run, round=ask.t, agent=name)
                return None

        asked = list(names)
        found = dict(zip(asked, self.threads.map(one, asked), strict=True))
        refused = tuple(name for name, one in found.items() if one is None)
        given = [one for one in found.values() if one is not None]
        told = f"round {ask.t} of run {ask.run!r}: {len(given)} answered, {len(refused)} refused"
        self.log(told, event="answered", run=ask.run, round=ask.t, refused=list(refused))
        return given, refused


    def ended(self, close: Close) -> bool:
        """End a run in every ledger that knows it, and drop its stored answers; return False if its terms are others.

        What the answers cost stays on record.
        """
        known = {
            name: place.terms
            for name, data_id in self.data_ids.items()
            if (place := self.ledgers[name].history().places.get((data_id, close.run))) is not None
        }
        if any(terms is None or terms.spec != close.agreed for terms in known.values()):
            return False
        for name, terms in known.items():
            assert terms is not None  # checked above
            self.ledgers[name].end(self.data_ids[name], close.run, "its coordinator has closed it", final=False)
            self.ledgers[name].forget(close.run, terms.rounds + 1)
        return True


class Loaded(Protocol):
    """A run that the agents of this site have joined; `lock` lets one message in at a time."""

    @property
    def join(self) -> Join: ...
    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def lock(self) -> threading.Lock: ...
    @property
    def names(self) -> tuple[str, ...]:
        """The agents of this site in the run."""
    @property
    def signed(self) -> tuple[Signed, ...]:
        """Their keys for a secure sum."""
    def reply(self, message: Message) -> Message:
        """The reply to a message of the run."""
    def end(self) -> None:
        """Answer no more."""


@dataclass(frozen=True, eq=False)
class JoinedRun:
    """A run whose agents release models."""

    join: Join
    shape: tuple[int, int]
    agents: dict[str, Resident]
    office: Office
    signed: tuple[Signed, ...] = ()
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.agents)

    def end(self) -> None:
        """Do nothing: the ledgers refuse later questions."""

    def reply(self, message: Message) -> Message:
        """The answers of all agents that are asked."""
        if not isinstance(message, Ask):
            raise Unfit(f"run {self.join.run!r} trusts no secure sum, and a message is of one.")
        for name in message.accepted:
            if name not in self.agents:
                raise Unfit(f"agent {name!r} is not one of this site in run {self.join.run!r}.")
        asked = [name for name in self.agents if name in message.accepted]
        given, refused = self.office.answers(asked, message, lambda name: self._one(self.agents[name], message))
        if not given:
            return Refusal(message.run)
        z = np.stack([z for _, z in given])
        return Answer(message.run, message.t, tuple(one for one, _ in given), refused, z)

    def _one(self, resident: Resident, ask: Ask) -> tuple[Released, Array]:
        agent = resident.agent
        body = {"w": ask.w, "rho": ask.rho, "accepted": ask.accepted[agent.name]}
        leaving, dual = resident.respond(Question(ask.run, ask.agreed, ask.t, body))
        head = self.office.ledgers[agent.name].head_after(Key(agent.data_id, ask.run, ask.t))
        return Released(agent.name, dual, head), leaving.body["z"]
