"""Who is asked and who has answered: one question is out at each site, and is sent again until its answer comes.

An answer belongs to the question that is out, by its run and its round (and attempt, of a secure sum); anything else
that comes is dropped. So messages may be lost, doubled, late or out of order: ledgers answer the same question with the
same release.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tacit.admm.messages import Broadcast
from tacit.errors import Unfit
from tacit.federation import messages
from tacit.federation.log import Log, Reminder
from tacit.federation.messages import (
    Ask,
    Join,
    Joined,
    Meet,
    Message,
    Met,
    Receipt,
    Refusal,
    SiteAnswer,
    Transport,
    Unjoined,
)
from tacit.types import Array

# A Refusal names no round: it may be to a double of an earlier question, which came out of order. What is no message
# may have been damaged on its way. So the question is asked again, which costs nothing: ledgers answer it as they did
ASKED_AGAIN = 2
REFUSES = "it refuses to answer"
AT_MOST = 1.0  # seconds that we wait for a message before we look at the clock, and tell where we are


@dataclass(frozen=True, eq=False)
class PendingQuestion:
    """A question that a site has not answered, and the broadcast of its round.

    `since` is when it was first asked, `sent` when it was sent last. `refused` is set where the site has refused, or
    has sent what is no answer, again and again: it may still answer, but nobody waits for that.
    """

    asked: Ask
    msg: Broadcast
    since: float
    sent: float | None = None
    refused: bool = False
    refusals: int = 0

    @property
    def t(self) -> int:
        """The round that it is about."""
        return self.asked.t


@dataclass
class CollectedAnswers:
    """What came to the questions that were out: by agent, its answer and its receipt, or why there is none."""

    rows: dict[str, Array] = field(default_factory=dict)  # of words
    msgs: dict[str, Broadcast] = field(default_factory=dict)  # of the question that a row answers
    receipts: dict[str, Receipt] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)  # of agents that refused or whose answer was refused

    def take(self, question: PendingQuestion, answer: SiteAnswer) -> None:
        """Take the answer of a site, and drop the reasons against what it sent before."""
        asked = question.asked.asked
        self.reasons = {name: why for name, why in self.reasons.items() if name not in asked}
        for row, one in zip(answer.words, answer.given, strict=True):
            self.rows[one.agent], self.receipts[one.agent] = row, one
            self.msgs[one.agent] = question.msg
        self.reasons |= {name: REFUSES for name in asked if name not in self.rows}

    def drop(self, name: str, why: str) -> None:
        """Take back the answer of an agent."""
        self.reasons[name] = why
        del self.rows[name], self.msgs[name], self.receipts[name]


Fits = Callable[[Ask, SiteAnswer], str | None]  # why an answer is none to its question; None if it is one


@dataclass
class SiteMailbox:
    """The coordinator's open questions to all sites of one run, and the answers that come.

    A service that was started again knows nothing of the run: it is asked to join again and, where the run trusts a
    secure sum, to meet the others again (`meet`), and then what it was asked before. `sites` lists the agents of each
    site, whose latest `receipts` go with a join.
    """

    transport: Transport
    join: Join
    resend: float
    log: Log
    clock: Callable[[], float]
    unfit: Fits
    sites: Mapping[str, Sequence[str]]
    receipts: Mapping[str, Receipt]
    meet: Meet | None = None
    out: dict[str, PendingQuestion] = field(default_factory=dict)  # by site; a site that is not there has answered
    seen: dict[str, float] = field(default_factory=dict)  # when a site was last heard of
    joined: dict[str, float] = field(default_factory=dict)  # when a site was last asked to join again
    there: set[str] = field(default_factory=set)  # sites that have met the others, or answered, since this was emptied
    strays: dict[str, int] = field(init=False)  # how many messages of a site were no answer to its question
    remind: Reminder = field(init=False)

    def __post_init__(self) -> None:
        self.strays = dict.fromkeys(self.sites, 0)
        self.remind = Reminder(self.transport.absence, self.log, self.clock)

    @property
    def awaited(self) -> list[str]:
        """The sites that are waited for."""
        return [site for site, question in self.out.items() if not question.refused]

    def send_what_is_due(self) -> float:
        """Send the questions that were never sent, or long ago; return the seconds until the next is due."""
        now, wait = self.clock(), AT_MOST
        if awaited := self.awaited:
            self.remind(f"round {max(self.out[site].t for site in awaited)}", awaited)
        for site in awaited:
            question = self.out[site]
            if question.sent is None or now >= question.sent + self.resend:
                if question.sent is not None:
                    self.log(f"round {question.t}: site {site} is asked again", site=site, t=question.t)
                self._ask(site, now)
                continue
            wait = min(wait, question.sent + self.resend - now)
        return min(wait, self.resend)

    def collect(self, until: float, watch: Callable[[], Any]) -> CollectedAnswers:
        """Wait for the answers of all sites that are awaited, at most until then; ask again what is due."""
        heard = CollectedAnswers()
        while self.awaited and (left := until - self.clock()) > 0:
            due = self.send_what_is_due()
            for site, question, answer in self.answers(min(due, left)):
                self._hear(site, question, answer, heard)
            watch()
        return heard

    def _hear(self, site: str, question: PendingQuestion, answer: SiteAnswer | str, heard: CollectedAnswers) -> None:
        """Take the answer of a site, or note why it is none."""
        ask = question.asked
        if isinstance(answer, SiteAnswer) and (wrong := self.unfit(ask, answer)):
            if self.asks_again(site):
                return
            answer = wrong
        if isinstance(answer, str):
            self.log(f"{_place_of(ask)}: site {site} does not answer: {answer}", site=site, t=ask.t)
            heard.reasons |= dict.fromkeys(ask.asked, answer)
            self.out[site] = replace(self.out[site], refused=True)
            return
        del self.out[site]
        heard.take(question, answer)
        for name in ask.asked:
            if name in heard.reasons:
                told = f"{_place_of(ask)}: agent {name}: {heard.reasons[name]}"
                self.log(told, site=site, agent=name, t=ask.t)

    def answers(self, seconds: float) -> Iterator[tuple[str, PendingQuestion, SiteAnswer | str]]:
        """Yield what came within so many seconds: the site, its question, and its answer or why it is none."""
        for site, header, body in self.transport.received(seconds):
            if site not in self.strays:
                continue  # a site of another federation
            self.seen[site] = self.clock()
            question = self.out.get(site)
            try:
                message = messages.read(header, body, messages.REPLIES)
            except Unfit as error:
                if question is not None and not self.asks_again(site):
                    yield site, question, f"it sent what is no message: {error}"
                continue
            if getattr(message, "run", self.join.run) not in (self.join.run, ""):
                self.strays[site] += 1
            elif self.meet is not None and self._introduces(site, question, message):
                continue
            elif question is None:
                self.strays[site] += 1
            elif (found := self._read(site, question, message)) is not None:
                yield site, question, found

    def _introduces(self, site: str, question: PendingQuestion | None, message: Message) -> bool:
        """Let a site meet the others, whether a question is out there or not; tell whether the message was about that.

        Met, or an answer of whatever age, is a sign of life.
        """
        if isinstance(message, Unjoined):
            self._join_again(site)
        elif isinstance(message, Joined):
            self.introduce(site)
        elif isinstance(message, Met):
            self.there.add(site)
            if question is not None and not question.refused:
                self._ask(site, self.clock())
        else:
            if isinstance(message, SiteAnswer):
                self.there.add(site)
            return False
        return True

    def introduce(self, site: str) -> None:
        """Send a site the keys of all agents."""
        if self.meet is not None:
            self.transport.send(site, *messages.written(self.meet))

    def _read(self, site: str, question: PendingQuestion, message: Message) -> SiteAnswer | str | None:
        if isinstance(message, SiteAnswer) and _place(message) == _place(question.asked):
            return message
        if isinstance(message, SiteAnswer) and _place(message) > _place(question.asked):
            # an earlier one may be a double of an honest answer
            return None if self.asks_again(site) else "it answers a round that it was not asked"
        if isinstance(message, Refusal):
            return None if self.asks_again(site) else REFUSES
        if isinstance(message, Joined):
            self._ask(site, self.clock())
        elif isinstance(message, Unjoined):
            self._join_again(site)
        else:
            self.strays[site] += 1
        return None

    def asks_again(self, site: str) -> bool:
        """Ask a site again whose answer was none, unless that was done often enough; tell whether it was."""
        question = self.out[site]
        if question.refused or question.refusals >= ASKED_AGAIN:
            return False
        self.out[site] = replace(question, refusals=question.refusals + 1)
        self._ask(site, self.clock())
        return True

    def _join_again(self, site: str) -> None:
        """Send the Join of this run to a service that was started again; not faster than questions are repeated."""
        now = self.clock()
        if now - self.joined.get(site, -np.inf) >= self.resend:
            self.log(f"site {site} was started again, and is asked to join the run again", site=site)
            self.joined[site] = now
            self.transport.send(site, *messages.written(self.join.to(self.sites[site], self.receipts)))

    def _ask(self, site: str, now: float) -> None:
        self.transport.send(site, *messages.written(self.out[site].asked))
        self.out[site] = replace(self.out[site], sent=now)


def _place(message: Ask | SiteAnswer) -> tuple[int, int]:
    """Return round and attempt."""
    return message.t, message.attempt


def _place_of(ask: Ask) -> str:
    return f"round {ask.t}, attempt {ask.attempt}" if ask.peers else f"round {ask.t}"


def unfit(ask: Ask, answer: SiteAnswer, dimension: int, bits: int = 64) -> str | None:
    """Return why the answer of a site is none to its question, whose values have so many words; None if it is one."""
    gave, asked = [one.agent for one in answer.given], set(ask.asked)
    if not {*gave, *answer.refused} <= asked or set(gave) & set(answer.refused):
        return "it answers for agents that are not its own, or twice for one"
    if answer.words.shape != (len(gave), dimension):
        return f"it sent an array of shape {answer.words.shape} instead of {(len(gave), dimension)}"
    if (answer.words > np.uint64((1 << bits) - 1)).any():
        return f"it sent words of more than {bits} bits"
    return None
