"""A ledger as read: who was answered what, what it cost, and the limit in force."""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

from tacit.errors import SpecError
from tacit.privacy.chain import Entry, canonical
from tacit.privacy.release import GaussianRelease, LaplaceRelease, Release

ZERO_OUT = "zero_out"
_RENAMED = {"add_remove": ZERO_OUT}  # as ledgers of 0.1 and 0.2 say it
UNRECORDED = "an adjacency that was not recorded"  # ledgers of 0.1.0
Price: TypeAlias = Callable[[Sequence[tuple[Release, int]], float], float]
_KINDS: dict[str, type[Release]] = {"gaussian": GaussianRelease, "laplace": LaplaceRelease}


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
class Book:
    """The chain, read: answers by key, releases and their adjacency by data set, the limit in force."""

    tip: tuple[int, str] = (0, "")
    limit: Limit | None = None
    answers: dict[Key, Answer] = field(default_factory=dict)
    spent: dict[str, Counter[Release]] = field(default_factory=dict)
    adjacency: dict[str, str] = field(default_factory=dict)

    def add(self, entry: Entry) -> None:
        """One more entry, in order."""
        body = entry.body
        if body["kind"] == "limit":
            self.limit = None if body["epsilon"] is None else Limit(body["epsilon"], body["dp_delta"])
        elif body["kind"] == "release":
            key = Key(body["data"], body["run"], body["round"], body["step"])
            release = restored(body["release"])
            self.answers[key] = Answer(entry.n, key, body["asked"], release, body["payload"], body["at"])
            self.spent.setdefault(key.data_id, Counter())[release] += 1
            adjacency = body.get("adjacency", UNRECORDED)
            self.adjacency[key.data_id] = _RENAMED.get(adjacency, adjacency)
        else:
            raise KeyError(body["kind"])
        self.tip = entry.n, entry.hash


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


def accounts(book: Book, price: Price, dp_delta: float) -> tuple[Account, ...]:
    """Every data set with all its runs. Epsilons of runs do not add up: the total is composed anew."""
    limit = book.limit.epsilon if book.limit is not None and book.limit.dp_delta == dp_delta else None
    found = []
    for data_id, spent in book.spent.items():
        answers = [answer for answer in book.answers.values() if answer.key.data_id == data_id]
        runs = tuple(
            _run_spent(run, [answer for answer in answers if answer.key.run == run], price, dp_delta)
            for run in dict.fromkeys(answer.key.run for answer in answers)
        )
        epsilon = price(tuple(spent.items()), dp_delta)
        remaining = None if limit is None else max(0.0, limit - epsilon)
        found.append(Account(data_id, book.adjacency[data_id], len(answers), epsilon, dp_delta, limit, remaining, runs))
    return tuple(found)


def _run_spent(run: str, answers: Sequence[Answer], price: Price, dp_delta: float) -> RunSpent:
    made = Counter(answer.release for answer in answers)
    rounds = len({answer.key.round for answer in answers})
    return RunSpent(run, rounds, len(answers), tuple(map(spell, made)), price(tuple(made.items()), dp_delta))


def describe(release: Release) -> dict[str, Any]:
    """A release as JSON."""
    for name, kind in _KINDS.items():
        if type(release) is kind:
            return {"mechanism": name, **asdict(release)}
    raise SpecError(f"a ledger records {' and '.join(_KINDS)} releases, not {type(release).__name__}.")


def restored(description: Mapping[str, Any]) -> Release:
    """What `describe` described. Some JSON has no infinity: an l1 that is null bounds nothing."""
    terms = dict(description)
    kind = _KINDS[terms.pop("mechanism")]
    if kind is LaplaceRelease and terms["l1"] is None:
        terms["l1"] = math.inf
    return kind(**terms)


def spell(release: Release) -> str:
    """A release in a few words: gaussian multiplier=37.3 rate=1."""
    terms = describe(release)
    return " ".join([terms.pop("mechanism"), *(f"{k}={v:.4g}" for k, v in terms.items() if v is not None)])


def limit_terms(limit: Limit | None) -> dict[str, Any]:
    """A limit as JSON."""
    return {"epsilon": None, "dp_delta": None} if limit is None else asdict(limit)
