"""The agents of a site in one run: each answers by itself, side by side with the others.

`ServiceContext` is what all runs of a service share, and `SiteRun` is one run. What a secure sum needs besides is in
tacit.federation.sum_service.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from tacit.agent.agent import DeployedAgent
from tacit.agent.agreement import Agreement
from tacit.agent.cover import Alone, Cover
from tacit.agent.gate import Question
from tacit.errors import LedgerCorrupt, Unfit
from tacit.federation import wire
from tacit.federation.log import Log, reason
from tacit.federation.messages import (
    Ask,
    Close,
    Join,
    Meet,
    Message,
    Met,
    Refusal,
    Signed,
    SiteAnswer,
    Unjoined,
)
from tacit.privacy.ledger import Ledger
from tacit.privacy.terms import Key, Terms
from tacit.privacy.witness import Receipt, ReceiptKey
from tacit.query.query import AgentQuery
from tacit.types import Array

if TYPE_CHECKING:
    from tacit.agent.cover import Masked

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class ServiceContext:
    """What the runs of a service share: ledgers and data ids of its agents by name, the key of receipts, threads, and
    the owner's log.
    """

    ledgers: Mapping[str, Ledger]
    data_ids: Mapping[str, str]
    receipts: ReceiptKey
    threads: ThreadPoolExecutor
    log: Log

    def answers(
        self, names: Iterable[str], ask: Ask, answer: Callable[[str], T]
    ) -> tuple[list[T], tuple[str, ...]]:
        """Return the answers of these agents, and the names of agents that refuse: nothing else of them leaves."""

        def one(name: str) -> T | None:
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

    def confront(self, shown: Iterable[Receipt]) -> None:
        """Compare ledgers with receipts that a coordinator shows; raise Unfit if this site has not made one of them.

        A receipt that a ledger contradicts stops that agent for good (Ledger.confront).
        """
        shown = tuple(shown)
        for one in shown:
            if one.agent not in self.ledgers or not self.receipts.made(one):
                raise Unfit(
                    f"a receipt of agent {one.agent!r} was not made with the key of this site: nothing was changed. "
                    "If the key is a new one, the coordinator deletes receipts.json in its folder and starts a new run."
                )
        stopped = None
        for one in shown:
            try:
                self.ledgers[one.agent].confront(one.position)
            except LedgerCorrupt as error:
                stopped = error
        if stopped is not None:
            raise stopped

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


class KeyExchange(Protocol):
    """What the agents of a run behind a secure sum need of their site: keys, and the check of the others' keys."""

    @property
    def signed(self) -> tuple[Signed, ...]:
        """The keys of the site's agents in the run."""

    def covers(self, meet: Meet, agreements: Mapping[str, Agreement]) -> dict[str, Masked]:
        """Check the keys of all agents of the run; return how the answers of each agent of the site leave."""


@dataclass(frozen=True, eq=False)
class JoiningAgent:
    """An agent of a run: all of a deployed agent but its cover, which in a secure sum the keys of the others decide."""

    name: str
    data_id: str
    queries: tuple[AgentQuery[Any], ...]
    agreement: Agreement
    terms: Terms
    store: Ledger

    def covered(self, cover: Cover) -> DeployedAgent:
        """Return the agent, which joins the run."""
        return DeployedAgent(
            self.name, self.data_id, self.queries, self.agreement, self.terms, cover, self.store
        )


@dataclass(eq=False)
class SiteRun:
    """A run that agents of this site take part in. In a secure sum they answer once the keys of all agents were met."""

    join: Join
    joining: dict[str, JoiningAgent]
    context: ServiceContext
    sum: KeyExchange | None = None
    met: tuple[Signed, ...] = ()
    agents: dict[str, DeployedAgent] = field(default_factory=dict)
    ended: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)  # lets one message in at a time

    def __post_init__(self) -> None:
        """Let the agents join, unless they have to meet others first."""
        if self.sum is None:
            self.agents = {
                name: one.covered(Alone(one.agreement, len(one.queries[0].records)))
                for name, one in self.joining.items()
            }

    @property
    def names(self) -> tuple[str, ...]:
        """The agents of this site in the run."""
        return tuple(self.joining)

    @property
    def signed(self) -> tuple[Signed, ...]:
        """Their keys for a secure sum."""
        return () if self.sum is None else self.sum.signed

    @property
    def largest_question(self) -> int:
        """The bytes of the largest parameters that a question of the run may have."""
        queries = [one.query for agent in self.joining.values() for one in agent.agreement.queries]
        return wire.ITEM * len(self.joining) * max(query.parameters.size for query in queries)

    def end(self) -> None:
        """Answer no more: a message that waits for its turn finds the run ended."""
        self.ended, self.agents = True, {}

    def reply(self, message: Message) -> Message:
        """Meet the other agents of a secure sum, or answer a question."""
        assert isinstance(message, Meet | Ask), "other messages are for the service"
        if isinstance(message, Meet) and self.sum is None:
            raise Unfit(f"run {self.join.run!r} has no secure sum: its agents meet nobody.")
        if message.agreed != self.join.agreed:
            raise Unfit(f"a message of run {message.run!r} has the hash of another agreement.")
        if self.ended or (isinstance(message, Ask) and not self.agents):
            return Unjoined(message.run)
        return self._meet(message) if isinstance(message, Meet) else self._answer(message)

    def _meet(self, meet: Meet) -> Met:
        """Check the keys of all agents, once: no agent can be replaced afterwards."""
        assert self.sum is not None, "only a secure sum has keys"
        signed = tuple(sorted(meet.signed, key=lambda one: one.agent))
        if self.agents:
            if signed != self.met:
                raise Unfit(f"other keys came for run {meet.run!r}, which has met: it keeps the keys that it has.")
            return Met(meet.run)
        covers = self.sum.covers(meet, {name: one.agreement for name, one in self.joining.items()})
        self.agents = {name: one.covered(covers[name]) for name, one in self.joining.items()}
        self.met = signed
        return Met(meet.run)

    def _answer(self, ask: Ask) -> Message:
        """Return the answers of the agents that are asked, and the names of those that refuse."""
        for name in ask.asked:
            if name not in self.agents:
                raise Unfit(f"agent {name!r} is not one of this site in run {self.join.run!r}.")
        if not ask.asked or any(rows.shape[:1] not in ((1,), (len(ask.asked),)) for rows in ask.parameters.values()):
            raise Unfit("a question names agents, and has parameters for all of them together or for each.")
        place = {name: n for n, name in enumerate(ask.asked)}
        given, refused = self.context.answers(ask.asked, ask, lambda name: self._one(ask, name, place[name]))
        if not given:
            return Refusal(ask.run)
        words = np.stack([row.reshape(-1).view(np.uint64) for _, row in given])
        return SiteAnswer(ask.run, ask.t, ask.attempt, tuple(one for one, _ in given), refused, words)

    def _one(self, ask: Ask, name: str, row: int) -> tuple[Receipt, Array]:
        parameters = {part: rows[row if len(rows) > 1 else 0] for part, rows in ask.parameters.items()}
        agent, ledger = self.agents[name], self.context.ledgers[name]
        answer = agent.answer(Question(ask.run, ask.agreed, ask.t, parameters, ask.attempt, ask.peers))
        position = ledger.position_after(name, Key(agent.data_id, ask.run, ask.t, ask.attempt))
        ledger.forget_later(ask.run, ask.t - 1)  # the coordinator has saved what it made of an earlier round
        return self.context.receipts.receipt(position), answer.value
