"""Who is asked and who has answered: one question is out at each site, and is sent again until its answer comes.

An answer belongs to the question that is out, by its run and its round (and attempt, of a secure sum); anything else
that comes is dropped. So messages may be lost, doubled, late or out of order: ledgers answer the same question with the
same release.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import numpy as np

from tacit.errors import Unfit
from tacit.federation import messages
from tacit.federation.carrier import Carrier
from tacit.federation.log import Log
from tacit.federation.messages import (
    Answer,
    Ask,
    AskSum,
    Join,
    Joined,
    Meet,
    Message,
    Met,
    Refusal,
    Shares,
    Unjoined,
)
from tacit.federation.waiting import Reminder
from tacit.types import LARGEST, Array

# A Refusal names no round: it may be to a double of an earlier question, which came out of order. What is no message
# may have been damaged on its way. So the question is asked again, which costs nothing: ledgers answer it as they did
ASKED_AGAIN = 2
AT_MOST = 1.0  # seconds that we wait for a message before we look at the clock, and tell where we are


A = TypeVar("A", Ask, AskSum)
R = TypeVar("R", Answer, Shares)


@dataclass(frozen=True, eq=False)
class Question(Generic[A]):
    """What a site was asked.

    `since` is when it was first asked, `sent` when it was sent last. `refused` is set where the site has refused, or
    has sent what is no answer, again and again: it may still answer, but nobody waits for that.
    """

    asked: A
    since: float
    sent: float | None = None
    refused: bool = False
    refusals: int = 0

    @property
    def t(self) -> int:
        """The round that it is about."""
        return self.asked.t


@dataclass
class Post(Generic[A, R]):
    """The coordinator's correspondence with all sites about one run.

    A service that was started again knows nothing of the run: it is asked to join again and, where the run trusts a
    secure sum, to meet the others again (`meet`), and then what it was asked before.
    """

    carrier: Carrier
    join: Join
    resend: float
    log: Log
    clock: Callable[[], float]
    kind: type[R]  # of answers
    out: dict[str, Question[A]]  # by site; a site that is not there has answered
    seen: dict[str, float]  # when a site was last heard of
    strays: dict[str, int]  # how many messages of a site were no answer to its question
    joined: dict[str, float]  # when a site was last asked to join again
    meet: Meet | None = None
    there: set[str] = field(default_factory=set)  # sites that have met the others, or answered, since this was emptied
    remind: Reminder = field(init=False)

    def __post_init__(self) -> None:
        self.remind = Reminder(self.carrier, self.log, self.clock)

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

    def answers(self, seconds: float) -> Iterator[tuple[str, Question[A], R | str]]:
        """Yield what came within so many seconds: the site, its question, and its answer or why it is none."""
        for site, header, body in self.carrier.received(seconds):
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

    def _introduces(self, site: str, question: Question[A] | None, message: Message) -> bool:
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
            if isinstance(message, self.kind):
                self.there.add(site)
            return False
        return True

    def introduce(self, site: str) -> None:
        """Send a site the keys of all agents."""
        if self.meet is not None:
            self.carrier.send(site, *messages.written(self.meet))

    def _read(self, site: str, question: Question[A], message: Message) -> R | str | None:
        if isinstance(message, self.kind) and _place(message) == _place(question.asked):
            return message
        if isinstance(message, self.kind) and _place(message) > _place(question.asked):
            # an earlier one may be a double of an honest answer
            return None if self.asks_again(site) else "it answers a round that it was not asked"
        if isinstance(message, Refusal):
            return None if self.asks_again(site) else "it refuses to answer"
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
            self.carrier.send(site, *messages.written(self.join))

    def _ask(self, site: str, now: float) -> None:
        self.carrier.send(site, *messages.written(self.out[site].asked))
        self.out[site] = replace(self.out[site], sent=now)


def _place(message: Ask | AskSum | Answer | Shares) -> tuple[int, int]:
    """Round and attempt."""
    return message.t, message.attempt if isinstance(message, AskSum | Shares) else 0


def unfit(ask: Ask, answer: Answer, shape: tuple[int, int]) -> str | None:
    """Why the answer of a site is none to its question; None where it is one."""
    released, asked = [one.agent for one in answer.released], set(ask.accepted)
    if not {*released, *answer.refused} <= asked or set(released) & set(answer.refused):
        return "it answers for agents that are not its own, or twice for one"
    if answer.z.shape != (len(released), *shape):
        return f"it sent an array of shape {answer.z.shape} in place of {(len(released), *shape)}"
    return None


def is_model(z: Array) -> bool:
    """Whether z is finite and of a size from which an agent could go on."""
    return bool(np.abs(z).max(initial=0.0) <= LARGEST)  # NaN is not
