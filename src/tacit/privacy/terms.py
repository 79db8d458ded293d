"""What an agent agrees to when it joins a run, and how it keeps to that: each round once, in order, never drawn again.

`Place` and `sent_again` are the rules. `Memory` applies the rules for an agent that ends with its run; a ledger
(tacit.privacy.ledger) applies them on disk, with a limit over all runs.
"""

from __future__ import annotations

import operator
import os
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar

from tacit.errors import QuestionChanged, Refused, SpecError, TermsChanged
from tacit.jsontext import Values, canonical
from tacit.privacy.release import Release, describe, restored, spell
from tacit.types import Array

ZERO_OUT = "zero_out"
KEPT_BYTES = 1 << 20  # of the latest answers in memory; the last answer is kept whatever its size
HELD_BY_JOIN = timedelta(hours=1)  # a join reserves budget for so long: time for the other sites to join
HELD_BY_ANSWER = timedelta(days=30)  # an answer, until the next one: a coordinator may be away for a while
Stored = TypeVar("Stored", Array, bytes)


@dataclass(frozen=True)
class Terms:
    """What an agent agrees to when it joins a run: fixed once, and all of it public."""

    run: str  # its name, which no other run has
    spec: str  # the hash of what was agreed: the spec of the run, the shape of its model and its penalties
    rounds: int  # T: rounds 1 .. T may be asked, each once
    release: Release  # what a round releases about one record
    adjacency: str
    scale: float  # of the noise, as the agent draws it
    dp_delta: float
    epsilon: float = field(compare=False)  # the cap: all its releases together, at dp_delta, by today's accountant
    repetitions: int = 0  # R: further attempts at rounds of a secure sum, each a release of its own

    def __post_init__(self) -> None:
        if not self.run or not self.spec:
            raise SpecError("the terms of a run need its name and the hash of its spec: one of them is empty.")
        if self.rounds < 1:
            raise SpecError(f"a run has at least one round, got {self.rounds}.")
        if self.repetitions < 0:
            raise SpecError(f"a run repeats rounds 0 times or more, got {self.repetitions}.")

    @property
    def releases(self) -> int:
        """T + R: the most that the run releases of a record."""
        return self.rounds + self.repetitions

    def described(self) -> Values:
        """The terms as JSON."""
        return asdict(self) | {"release": describe(self.release)}

    @classmethod
    def restored(cls, description: Values) -> Terms:
        """The terms that `described` described."""
        return cls(**{**description, "release": restored(description["release"])})


@dataclass(frozen=True)
class Key:
    """The name of one answer: attempt `step` at round `round` of `run`, from the data `data_id`.

    Attempts beyond the first, 0, are for secure sums alone (tacit.agent.gate).
    """

    data_id: str
    run: str
    round: int
    step: int = 0

    def __post_init__(self) -> None:
        if not self.data_id or not self.run:
            raise SpecError("an answer needs the name of its data and of its run: one of them is empty.")
        object.__setattr__(self, "round", operator.index(self.round))
        object.__setattr__(self, "step", operator.index(self.step))

    def __str__(self) -> str:
        return canonical([self.data_id, self.run, self.round, self.step])


@dataclass
class Place:
    """An agent's place in a run: the terms it agreed to (runs of version 0.1 have none), the last round answered.

    Until `held_until` the run holds budget for all that it may still release. Runs of earlier versions hold none.
    """

    terms: Terms | None = None
    releases: int = 0
    last: tuple[int, int] = (0, 0)  # round and attempt
    ended: str = ""  # why the run has ended here, if it has: then no round is answered any more
    final: bool = True  # of an end: the run does not begin anew, even if nothing was released
    held_until: datetime | None = None

    @property
    def remaining(self) -> int:
        """Releases left: the smaller of T + R less those made, and of the attempts that are still possible.

        After attempt k at round t come at most R - k more attempts at t, and R + 1 at each later round.
        """
        if self.terms is None or self.ended:
            return 0
        (t, attempt), again = self.last, self.terms.repetitions
        later = (self.terms.rounds - t) * (again + 1) + (again - attempt if t else 0)
        return max(0, min(self.terms.releases - self.releases, later))

    @property
    def is_over(self) -> bool:
        """Whether no later round will be answered: the run was ended, or has made all releases of its terms."""
        return bool(self.ended) or (self.terms is not None and not self.remaining)

    @property
    def reserves(self) -> bool:
        """Whether the run holds budget, now or until its reservation lapsed."""
        return self.held_until is not None and self.remaining > 0

    def is_held(self, now: datetime) -> bool:
        """Return whether the run holds budget now."""
        return self.held_until is not None and self.reserves and now < self.held_until

    @property
    def may_begin_anew(self) -> bool:
        """Whether the coordinator has withdrawn the run before its first release."""
        return bool(self.ended) and not self.final and not self.releases

    def joined(self, terms: Terms, held_until: datetime | None) -> None:
        """Agree on terms. A run that was withdrawn before its first release begins anew."""
        self.terms, self.held_until, self.ended = terms, held_until, ""

    def agreed(self, terms: Terms) -> bool:
        """Whether these terms are in force already. Other terms under the same name are refused."""
        if self.may_begin_anew:
            return False
        if self.ended:
            raise TermsChanged(f"run {terms.run!r} has ended here ({self.ended}): start a run with a new name.")
        if self.terms is not None and self.terms != terms:
            raise TermsChanged(
                f"run {terms.run!r} was agreed on other terms (rounds, noise, adjacency or spec): restore its spec, or "
                "start a run with a new name."
            )
        return self.terms is not None

    def check_next(self, key: Key, release: Release, adjacency: str) -> None:
        """Refuse a new release that was not agreed: of another kind, out of order, or beyond the last round."""
        if self.ended:
            raise TermsChanged(
                f"run {key.run!r} has ended here ({self.ended}): round {key.round} is not answered. Start a run with a "
                "new name."
            )
        terms = self.terms
        if terms is None:
            return
        if (release, adjacency) != (terms.release, terms.adjacency):
            raise TermsChanged(f"a release of run {key.run!r} was agreed to be {spell(terms.release)}, and is another.")
        if not self.last < (key.round, key.step) or not 1 <= key.round <= terms.rounds:
            raise TermsChanged(
                f"run {key.run!r} was agreed to have rounds 1 to {terms.rounds}, and round {self.last[0]} was the last "
                f"answered: round {key.round} is not answered."
            )
        if key.step > terms.repetitions or self.releases >= terms.releases:
            raise TermsChanged(
                f"run {key.run!r} was agreed to repeat rounds {terms.repetitions} times in all: attempt {key.step} at "
                f"round {key.round} is not answered."
            )

    def count(self, key: Key) -> None:
        """Count one more release."""
        self.releases += 1
        self.last = max(self.last, (key.round, key.step))


def sent_again(key: Key, same: bool, at: str, stored: Callable[[], Stored | None]) -> Stored:
    """What is stored of an earlier answer. Another question is refused, and so is an answer no longer stored."""
    which = f"round {key.round}, attempt {key.step} of run {key.run!r}"
    if not same:
        raise QuestionChanged(
            f"{which} was answered at {at}, to another question: a second answer would be a second release. Start a "
            "run with a new name."
        )
    found = stored()
    if found is None:
        raise Refused(
            f"the answer to {which} is no longer stored and cannot be sent again: go on from a later round, or start "
            "a run with a new name."
        )
    return found


class Memory:
    """The answers of one agent in one run, the latest of them kept: a ledger without a file.

    A round that was answered is sent again from memory and is never drawn again. Nothing here outlives the run, so a
    memory counts no other run and enforces no limit: an agent that is asked again later needs a Ledger.
    """

    head = ""  # there is no chain

    def __init__(self) -> None:
        self._lock, self._process = threading.Lock(), os.getpid()
        self._places: dict[tuple[str, str], Place] = {}
        self._answered: dict[Key, tuple[str, Release]] = {}
        self._kept: dict[Key, Array] = {}

    def join(self, data_id: str, terms: Terms) -> None:
        """Agree on a run, once; other terms for the same run are refused."""
        with self._lock:
            place = self._places.setdefault((data_id, terms.run), Place())
            if not place.agreed(terms):
                place.terms = terms

    def release(
        self, key: Key, asked: str, release: Release, make: Callable[[], Array], adjacency: str = ZERO_OUT
    ) -> Array:
        """The answer to `asked`: kept, or made now; or Refused."""
        if os.getpid() != self._process:
            raise Refused("this agent was made before a fork, and another process answers for it: make it anew there.")
        with self._lock:
            if key in self._answered:
                same = self._answered[key] == (asked, release)
                return sent_again(key, same, "an earlier moment", lambda: self._kept.get(key)).copy()
            place = self._places.setdefault((key.data_id, key.run), Place())
            place.check_next(key, release, adjacency)
            answer = make()
            place.count(key)
            self._answered[key] = asked, release
            self._kept[key] = answer
            while len(self._kept) * answer.nbytes > KEPT_BYTES and len(self._kept) > 1:
                del self._kept[next(iter(self._kept))]
            return answer.copy()
