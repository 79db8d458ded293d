"""The agents of a site in secure sums: they sign keys, check those of all others, and add masked words.

What an agent adds, and what it refuses, is in tacit.guarded.summand; it needs nothing but its ledger, the run's key on
disk and the keys that were met. All three are the same after a restart, and so is every word that was sent.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from tacit.errors import Unfit
from tacit.federation.messages import (
    AskSum,
    Given,
    Join,
    Meet,
    Message,
    Met,
    Refusal,
    Shares,
    Signed,
    Unjoined,
)
from tacit.federation.run_service import Office
from tacit.federation.site import Site
from tacit.guarded.gate import Question
from tacit.guarded.half import AdmmHalf
from tacit.guarded.masks import files
from tacit.guarded.masks.keys import RunKey, SigningKey, Statement, roster
from tacit.guarded.masks.masker import Masker
from tacit.guarded.masks.masker import Terms as MaskTerms
from tacit.guarded.summand import Summand
from tacit.privacy.summed import InSum, Summed
from tacit.privacy.terms import Key, Terms
from tacit.run.meeting import WIDEST
from tacit.types import Array


@dataclass(frozen=True, eq=False)
class Entrant:
    """An agent that has joined a run and has not met the others."""

    half: AdmmHalf
    terms: Terms
    data_id: str
    key: RunKey


class Sums:
    """What a site needs for all of its sums: its signing keys, and those that it has pinned."""

    def __init__(self, site: Site, office: Office) -> None:
        assert site.sum is not None, "the site file has a section [sum]"
        self.room, self.folder, self.office = site.sum, site.ledger, office
        self.data_ids = office.data_ids
        self.signing = self.room.signing_keys(self.data_ids)
        self.pinned = self.room.pinned({name: key.public for name, key in self.signing.items()})

    def joined(
        self, join: Join, shape: tuple[int, int], agreed: Mapping[str, tuple[AdmmHalf, Terms]], numbers: Summed,
        asked: InSum,
    ) -> SumRun:  # fmt: skip
        """A run that the agents enter, each with a key of its own, which stays on disk until the run is closed."""
        threshold = max(self.room.threshold, asked.colluding + 2)
        if len(join.agents) < threshold:
            raise Unfit(f"the run has {len(join.agents)} agents, and sum.threshold asks for {threshold} in every sum.")
        entrants = {}
        for name, (half, terms) in agreed.items():
            if self._is_over(join.run, name):  # a double of a Join may come late, and would leave a key for good
                raise Unfit(f"run {join.run!r} has ended for agent {name}: its key is deleted, and no other is drawn.")
            key = files.run_key(self.folder, join.run, name, self._budget(name))
            entrants[name] = Entrant(half, terms, self.data_ids[name], key)
        signed = tuple(_signed(self.signing[name], join, name, one.key) for name, one in entrants.items())
        masks = MaskTerms(join.run, WIDEST, threshold, asked.colluding)
        return SumRun(join, shape, self, entrants, signed, masks, numbers)

    def _is_over(self, run: str, agent: str) -> bool:
        """Whether the agent has met the others of a run, as its ledger knows, and its key is gone."""
        data_id = self.data_ids[agent]
        place = self.office.ledgers[agent].history().places.get((data_id, run))
        met = place is not None and place.terms is not None and not place.may_begin_anew
        return met and not files.has_run_key(self.folder, run, agent, self._budget(agent))

    def forget_others(self, run: str, agents: Iterable[str]) -> None:
        """Delete the keys of other runs whose last round was answered: nobody may come to end them.

        A run that is loaded needs no file. So the price is small: whoever has lost the answer to a last round, and asks
        for it after this service was started again, is refused.
        """
        for name in agents:
            data_id = self.data_ids[name]
            for (data, other), place in self.office.ledgers[name].history().places.items():
                over = place.terms is not None and place.last[0] >= place.terms.rounds
                there = files.has_run_key(self.folder, other, name, self._budget(name))
                if data == data_id and other != run and over and there:
                    self.forget_keys(other)
                    told = f"agent {name} has met in run {run!r}: its key of run {other!r}, which is over, is deleted"
                    self.office.log(told, event="forgot", run=other, agent=name)

    def _budget(self, agent: str) -> str:
        return self.office.ledgers[agent].budget(self.data_ids[agent])

    def forget_keys(self, run: str) -> None:
        """Delete the keys of all agents of a run."""
        files.forget_run(self.folder, run)


@dataclass(eq=False)
class SumRun:
    """A run behind a secure sum: its agents answer once the keys of all of them were met."""

    join: Join
    shape: tuple[int, int]
    sums: Sums
    entrants: dict[str, Entrant]
    signed: tuple[Signed, ...]
    masks: MaskTerms
    numbers: Summed
    met: tuple[Signed, ...] = ()
    agents: dict[str, Summand] = field(default_factory=dict)
    ended: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.entrants)

    def reply(self, message: Message) -> Message:
        """Meet the others, or add words to one attempt at a round."""
        if not isinstance(message, Meet | AskSum):
            raise Unfit(f"run {self.join.run!r} trusts a secure sum: its agents answer into sums alone.")
        if message.agreed != self.join.agreed:
            raise Unfit(f"a message of run {message.run!r} has the hash of another agreement.")
        if self.ended or (isinstance(message, AskSum) and not self.agents):
            return Unjoined(message.run)
        return self._meet(message) if isinstance(message, Meet) else self._shares(message)

    def end(self) -> None:
        """Answer no more: whoever waits for an answer of this run finds it gone."""
        self.ended, self.agents = True, {}

    def _meet(self, meet: Meet) -> Met:
        """Check the keys of all agents, once: nobody can be replaced afterwards."""
        signed = tuple(sorted(meet.signed, key=lambda one: one.agent))
        if self.agents:
            if signed != self.met:
                raise Unfit(f"other keys came for run {meet.run!r}, which has met: it keeps the keys that it has.")
            return Met(meet.run)
        if {one.agent for one in signed} != {who for who, _ in self.join.agents}:
            raise Unfit(f"keys of other agents came than those of run {meet.run!r}.")
        name_of_all = _agreed_name(self.join)
        statements = [
            Statement(name_of_all, one.agent, bytes.fromhex(one.key), bytes.fromhex(one.signature)) for one in signed
        ]
        keys, ledgers = roster(name_of_all, self.sums.pinned, statements), self.sums.office.ledgers
        terms = replace(self.masks, run=name_of_all)
        maskers = {
            name: replace(Masker.among(terms, name, one.key, keys), terms=self.masks)
            for name, one in self.entrants.items()
        }
        self.agents = {
            name: Summand(name, one.half, one.terms, one.data_id, ledgers[name], self.numbers, maskers[name])
            for name, one in self.entrants.items()
        }
        self.met = signed
        told = f"{', '.join(self.names)} met {len(signed)} agents of run {meet.run!r}: every key is of a pinned one"
        self.sums.office.log(told, event="met", run=meet.run, agents=[one.agent for one in signed])
        self.sums.forget_others(meet.run, self.names)
        return Met(meet.run)

    def _shares(self, ask: AskSum) -> Message:
        """The words of the agents of this site that are among the peers."""
        asked = [name for name in self.agents if name in ask.peers]
        if not asked:
            raise Unfit(f"a sum of run {ask.run!r} is over none of the agents of this site.")
        given, refused = self.sums.office.answers(asked, ask, lambda name: self._one(self.agents[name], ask))
        if not given:
            return Refusal(ask.run)
        words = np.stack([words for _, words in given])
        return Shares(ask.run, ask.t, ask.attempt, tuple(one for one, _ in given), refused, words)

    def _one(self, agent: Summand, ask: AskSum) -> tuple[Given, Array]:
        body = {"w": ask.w, "attempt": ask.attempt, "peers": ask.peers}
        leaving = agent.respond(Question(ask.run, ask.agreed, ask.t, body))
        ledger = self.sums.office.ledgers[agent.name]
        head = ledger.head_after(Key(agent.data_id, ask.run, ask.t, ask.attempt))
        ledger.forget_later(ask.run, ask.t - 1)  # the total of an earlier round is in w by now
        return Given(agent.name, head), leaving.body["words"]


def _agreed_name(join: Join) -> str:
    """What statements and secrets of pairs are bound to: the run, and the hash of what was agreed.

    A share has a part of the noise alone. Were agents that joined a run of this name on other terms, with less noise,
    to add up with these, the sum would have less noise than was agreed here. So they share no secret.
    """
    return f"{join.agreed} {join.run}"


def _signed(key: SigningKey, join: Join, agent: str, own: RunKey) -> Signed:
    statement = key.state(_agreed_name(join), agent, own.public)
    return Signed(agent, statement.key.hex(), statement.signature.hex())
