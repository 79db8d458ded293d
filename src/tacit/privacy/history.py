"""A ledger as read: who was answered what, what it cost, and the limit in force."""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from tacit.errors import QuestionChanged, Refused, SpecError, TermsChanged
from tacit.privacy.chain import ChainEntry, canonical
from tacit.privacy.release import Release, restored, spell
from tacit.privacy.terms import Terms

ZERO_OUT = "zero_out"
_RENAMED = {"add_remove": ZERO_OUT}  # as ledgers of 0.1 and 0.2 say it
UNRECORDED = "an adjacency that was not recorded"  # ledgers of 0.1.0
Price: TypeAlias = Callable[[Sequence[tuple[Release, int]], float], float]


@dataclass(frozen=True)
class Limit:
    """The most an agent gives away of any one record: (epsilon, dp_delta) over all runs on the same data."""

    epsilon: float
    dp_delta: float

    def __post_init__(self) -> None:
        if not 0 < self.epsilon < math.inf or not 0 <= self.dp_delta < 1:
            raise SpecError(
                f"a limit needs a positive, finite epsilon and dp_delta in [0, 1): got {self.epsilon}, {self.dp_delta}."
            )

    def __str__(self) -> str:
        return f"({self.epsilon:g}, {self.dp_delta:g})"


@dataclass(frozen=True)
class Key:
    """Which answer: local step `step` of round `round` of `run`, from the data `data_id`."""

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


@dataclass(frozen=True)
class Answer:
    """An answer on record."""

    n: int
    key: Key
    asked: str
    release: Release
    payload: str
    at: str


@dataclass
class Place:
    """An agent's place in a run: the terms it agreed to (runs of version 0.1 have none), the last round answered."""

    terms: Terms | None = None
    releases: int = 0
    last: int = 0

    def agreed(self, terms: Terms) -> bool:
        """Whether these terms are in force already. Others, under the same name, are refused."""
        if self.terms is not None and self.terms != terms:
            raise TermsChanged(
                f"run {terms.run!r} was agreed on other terms (rounds, noise, adjacency or spec): restore its spec, or "
                "start a run with a new name."
            )
        return self.terms is not None

    def check_next(self, key: Key, release: Release, adjacency: str) -> None:
        """Refuse a new release that was not agreed: of another kind, out of order, or beyond the last round."""
        terms = self.terms
        if terms is None:
            return
        if (release, adjacency) != (terms.release, terms.adjacency):
            raise TermsChanged(f"a release of run {key.run!r} was agreed to be {spell(terms.release)}, and is another.")
        if not self.last < key.round <= terms.rounds:
            raise TermsChanged(
                f"run {key.run!r} was agreed to have rounds 1 to {terms.rounds}, and round {self.last} was the last "
                f"answered: round {key.round} is not answered."
            )

    def count(self, key: Key) -> None:
        """One more release was made."""
        self.releases += 1
        self.last = max(self.last, key.round)


@dataclass
class History:
    """The chain, read: answers by key, runs, releases and their adjacency by data set, the limit in force."""

    tip: tuple[int, str] = (0, "")
    limit: Limit | None = None
    answers: dict[Key, Answer] = field(default_factory=dict)
    spent: dict[str, Counter[Release]] = field(default_factory=dict)
    adjacency: dict[str, str] = field(default_factory=dict)
    places: dict[tuple[str, str], Place] = field(default_factory=dict)  # by data set and run

    def place(self, data_id: str, run: str) -> Place:
        """The place in a run; an empty one where there is none yet."""
        return self.places.get((data_id, run), Place())

    def add(self, entry: ChainEntry) -> None:
        """One more entry, in order."""
        body = entry.body
        if body["kind"] == "limit":
            self.limit = None if body["epsilon"] is None else Limit(body["epsilon"], body["dp_delta"])
        elif body["kind"] == "run":
            terms = Terms.restored(body["terms"])
            self.places.setdefault((body["data"], terms.run), Place()).terms = terms
        elif body["kind"] == "release":
            key = Key(body["data"], body["run"], body["round"], body["step"])
            release = restored(body["release"])
            self.answers[key] = Answer(entry.n, key, body["asked"], release, body["payload"], body["at"])
            self.spent.setdefault(key.data_id, Counter())[release] += 1
            self.places.setdefault((key.data_id, key.run), Place()).count(key)
            adjacency: str = body.get("adjacency", UNRECORDED)
            self.adjacency[key.data_id] = _RENAMED.get(adjacency, adjacency)
        else:
            raise KeyError(body["kind"])
        self.tip = entry.n, entry.hash


def changed(key: Key, at: str) -> QuestionChanged:
    """The error for a round that was answered before, to another question."""
    return QuestionChanged(
        f"round {key.round}, step {key.step} of run {key.run!r} was answered at {at}, to another question: a second "
        "answer would be a second release. Start a run with a new name."
    )


def forgotten(key: Key) -> Refused:
    """The error for an answer that cannot be sent again."""
    return Refused(
        f"the answer to round {key.round}, step {key.step} of run {key.run!r} is no longer stored and cannot be sent "
        "again: go on from a later round, or start a run with a new name."
    )


def check_adjacency(history: History, data_id: str, adjacency: str) -> None:
    """Refuse to add prices of one adjacency to those of another. A price for replace_one holds for zero_out too."""
    held = history.adjacency.get(data_id, adjacency)
    if held != adjacency and (held, adjacency) != (UNRECORDED, ZERO_OUT):
        raise Refused(
            f"what {data_id!r} has given away is priced for {held}, and this run for {adjacency}: they are kept "
            f"apart. Train with --adjacency {ZERO_OUT if held == UNRECORDED else held}."
        )


@dataclass(frozen=True)
class RunSpent:
    """One run on one data set, priced as if it were alone."""

    run: str
    rounds: int
    releases: int
    mechanisms: tuple[str, ...]
    epsilon: float


@dataclass(frozen=True)
class Account:
    """One data set: its runs, their composed total at dp_delta, and what is left of a limit at that dp_delta."""

    data_id: str
    adjacency: str
    releases: int
    epsilon: float
    dp_delta: float
    limit: float | None
    remaining: float | None
    runs: tuple[RunSpent, ...]


def accounts(history: History, price: Price, dp_delta: float) -> tuple[Account, ...]:
    """Every data set with all its runs. Epsilons of runs do not add up: the total is composed anew."""
    limit = history.limit.epsilon if history.limit is not None and history.limit.dp_delta == dp_delta else None
    found = []
    for data_id, spent in history.spent.items():
        runs: dict[str, list[Answer]] = {}
        for answer in history.answers.values():
            if answer.key.data_id == data_id:
                runs.setdefault(answer.key.run, []).append(answer)
        told = tuple(_run_spent(run, answers, price, dp_delta) for run, answers in runs.items())
        epsilon = price(tuple(spent.items()), dp_delta)
        remaining = None if limit is None else max(0.0, limit - epsilon)
        adjacency = history.adjacency[data_id]
        found.append(Account(data_id, adjacency, spent.total(), epsilon, dp_delta, limit, remaining, told))
    return tuple(found)


def _run_spent(run: str, answers: Sequence[Answer], price: Price, dp_delta: float) -> RunSpent:
    made = Counter(answer.release for answer in answers)
    rounds = len({answer.key.round for answer in answers})
    return RunSpent(run, rounds, len(answers), tuple(map(spell, made)), price(tuple(made.items()), dp_delta))
