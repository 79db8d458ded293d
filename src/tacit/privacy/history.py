"""The history of an agent: the entries of its ledger as read, and what each data set has spent."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from tacit.errors import Refused, SpecError
from tacit.privacy.chain import ChainEntry
from tacit.privacy.release import Release, restored, spell
from tacit.privacy.terms import ZERO_OUT, Key, Place, Terms

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
class Answer:
    """An answer on record: entry n of the ledger, and the digest of what was sent."""

    n: int
    key: Key
    asked: str
    release: Release
    payload: str
    at: str
    head: str  # of the ledger, once this answer was its last entry


@dataclass
class History:
    """A chain as read: answers by key, runs, releases and their adjacency by data set, the limit in force."""

    tip: tuple[int, str] = (0, "")
    first: str = ""  # the hash of the first entry, which no other ledger has
    limit: Limit | None = None
    answers: dict[Key, Answer] = field(default_factory=dict)
    spent: dict[str, Counter[Release]] = field(default_factory=dict)
    adjacency: dict[str, str] = field(default_factory=dict)
    places: dict[tuple[str, str], Place] = field(default_factory=dict)  # by data set and run

    def place(self, data_id: str, run: str) -> Place:
        """The place in a run; an empty place where the agent has none yet."""
        return self.places.setdefault((data_id, run), Place())

    def add(self, entry: ChainEntry) -> None:
        """Take in the next entry of the chain."""
        body = entry.body
        if body["kind"] == "limit":
            self.limit = None if body["epsilon"] is None else Limit(body["epsilon"], body["dp_delta"])
        elif body["kind"] == "run":
            terms = Terms.restored(body["terms"])
            self.place(body["data"], terms.run).terms = terms
        elif body["kind"] == "end":
            self.place(body["data"], body["run"]).ended = str(body["why"])
        elif body["kind"] == "release":
            key = Key(body["data"], body["run"], body["round"], body["step"])
            release = restored(body["release"])
            self.answers[key] = Answer(entry.n, key, body["asked"], release, body["payload"], body["at"], entry.hash)
            self.spent.setdefault(key.data_id, Counter())[release] += 1
            self.place(key.data_id, key.run).count(key)
            adjacency: str = body.get("adjacency", UNRECORDED)
            self.adjacency[key.data_id] = _RENAMED.get(adjacency, adjacency)
        else:
            raise KeyError(body["kind"])
        self.tip, self.first = (entry.n, entry.hash), self.first or entry.hash

    def check_adjacency(self, data_id: str, adjacency: str) -> None:
        """Refuse to add prices of one adjacency to those of another. A price for replace_one holds for zero_out too."""
        held = self.adjacency.get(data_id, adjacency)
        if held != adjacency and (held, adjacency) != (UNRECORDED, ZERO_OUT):
            raise Refused(
                f"what {data_id!r} has given away is priced for {held}, and this run for {adjacency}: they are kept "
                f"apart. Train with --adjacency {ZERO_OUT if held == UNRECORDED else held}."
            )

    def accounts(self, price: Price, dp_delta: float) -> tuple[Account, ...]:
        """Every data set with all its runs. Epsilons of runs do not add up: the total is composed anew."""
        limit = self.limit.epsilon if self.limit is not None and self.limit.dp_delta == dp_delta else None
        found = []
        for data_id, spent in self.spent.items():
            runs: dict[str, list[Answer]] = {}
            for answer in self.answers.values():
                if answer.key.data_id == data_id:
                    runs.setdefault(answer.key.run, []).append(answer)
            told = tuple(RunSpent.of(run, answers, price, dp_delta) for run, answers in runs.items())
            epsilon = price(tuple(spent.items()), dp_delta)
            left = None if limit is None else max(0.0, limit - epsilon)
            adjacency = self.adjacency[data_id]
            found.append(Account(data_id, adjacency, spent.total(), epsilon, dp_delta, limit, left, told))
        return tuple(found)


@dataclass(frozen=True)
class RunSpent:
    """One run on one data set, priced as if it were alone."""

    run: str
    rounds: int
    releases: int
    mechanisms: tuple[str, ...]
    epsilon: float

    @classmethod
    def of(cls, run: str, answers: Sequence[Answer], price: Price, dp_delta: float) -> RunSpent:
        """What the answers of a run cost together."""
        made = Counter(answer.release for answer in answers)
        rounds = len({answer.key.round for answer in answers})
        return cls(run, rounds, len(answers), tuple(map(spell, made)), price(tuple(made.items()), dp_delta))


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
