"""The history of an agent: the entries of its ledger as read, and what each data set has spent."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import TypeAlias

from tacit.errors import Refused, SpecError
from tacit.jsontext import Values
from tacit.privacy.budget import multiplier_of
from tacit.privacy.chain import ChainEntry
from tacit.privacy.release import GaussianRelease, GeneralRelease, Release, describe, restored, spell
from tacit.privacy.terms import HELD_BY_ANSWER, ZERO_OUT, Key, Place, Terms

_RENAMED = {"add_remove": ZERO_OUT}  # as ledgers of 0.1 and 0.2 say it
LOST = "(entered by the owner)"  # what stands for the name of a run that no entry names
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


@dataclass(frozen=True)
class Charge:
    """Releases that count as made although the ledger has no answers of them, and the run that they end, if any."""

    data_id: str
    run: str | None
    release: Release
    count: int
    adjacency: str

    def described(self) -> Values:
        """Return the charge as JSON."""
        return asdict(self) | {"release": describe(self.release)}

    @classmethod
    def restored(cls, description: Values) -> Charge:
        """Return the charge that `described` described."""
        return cls(**{**description, "release": restored(description["release"])})


@dataclass
class History:
    """A chain as read: answers by key, runs, releases and their adjacency by data set, the limit in force."""

    tip: tuple[int, str] = (0, "")
    first: str = ""  # the hash of the first entry, which no other ledger has
    answered: str = ""  # the hash of the last answer's entry
    limit: Limit | None = None
    answers: dict[Key, Answer] = field(default_factory=dict)
    spent: dict[str, Counter[Release]] = field(default_factory=dict)
    adjacency: dict[str, str] = field(default_factory=dict)
    places: dict[tuple[str, str], Place] = field(default_factory=dict)  # by data set and run
    charges: list[Charge] = field(default_factory=list)
    lost_heads: set[str] = field(default_factory=set)  # of entries that were lost, as restore marks list them

    def place(self, data_id: str, run: str) -> Place:
        """The place in a run; an empty place where the agent has none yet."""
        return self.places.setdefault((data_id, run), Place())

    def had(self, head: str) -> bool:
        """Return whether an answer, the last entry or a restore mark has this head."""
        answered = any(answer.head == head for answer in self.answers.values())
        return answered or head in self.lost_heads or head == self.tip[1]

    def add(self, entry: ChainEntry) -> None:
        """Take in the next entry of the chain."""
        body = entry.body
        if body["kind"] == "limit":
            self.limit = None if body["epsilon"] is None else Limit(body["epsilon"], body["dp_delta"])
        elif body["kind"] == "run":
            terms, held_until = Terms.restored(body["terms"]), body.get("held_until")
            held = None if held_until is None else datetime.fromisoformat(held_until)
            self.place(body["data"], terms.run).joined(terms, held)
        elif body["kind"] == "charge":
            for one in body["charges"]:
                self._charge(Charge.restored(one), str(body["why"]))
            self.lost_heads.update(map(str, body.get("lost_heads", ())))
        elif body["kind"] == "end":
            place = self.place(body["data"], body["run"])
            place.ended, place.final = str(body["why"]), bool(body.get("final", True))
        elif body["kind"] == "release":
            key = Key(body["data"], body["run"], body["round"], body["step"])
            release = restored(body["release"])
            self.answered = entry.hash
            self.answers[key] = Answer(entry.n, key, body["asked"], release, body["payload"], body["at"], entry.hash)
            self.spent.setdefault(key.data_id, Counter())[release] += 1
            place = self.place(key.data_id, key.run)
            place.count(key)
            if place.held_until is not None:
                place.held_until = datetime.fromisoformat(body["at"]) + HELD_BY_ANSWER
            adjacency: str = body.get("adjacency", UNRECORDED)
            self.adjacency[key.data_id] = _RENAMED.get(adjacency, adjacency)
        else:
            raise KeyError(body["kind"])
        self.tip, self.first = (entry.n, entry.hash), self.first or entry.hash

    def _charge(self, charge: Charge, why: str) -> None:
        self.charges.append(charge)
        self.spent.setdefault(charge.data_id, Counter())[charge.release] += charge.count
        if charge.run is not None:  # what the owner states has no adjacency of its own
            self.adjacency.setdefault(charge.data_id, charge.adjacency)
            place = self.place(charge.data_id, charge.run)
            place.ended, place.final, place.releases = why, True, place.releases + charge.count

    def runs(self, now: datetime) -> list[RunState]:
        """Return the state of every run that was joined, in the order of joining."""
        return [
            RunState.of(data_id, run, place, now)
            for (data_id, run), place in self.places.items()
            if place.terms is not None or place.ended
        ]

    def reserved(self, data_id: str, now: datetime, but: str | None = None) -> Counter[Release]:
        """Return what the open runs on a data set may still release, one run left out: budget that they hold now."""
        held: Counter[Release] = Counter()
        for (data, run), place in self.places.items():
            if data == data_id and run != but and place.terms is not None and place.is_held(now):
                held[place.terms.release] += place.remaining
        return held

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
            rounds: dict[str, set[int]] = {}
            made: dict[str, Counter[Release]] = {}
            for answer in self.answers.values():
                if answer.key.data_id == data_id:
                    rounds.setdefault(answer.key.run, set()).add(answer.key.round)
                    made.setdefault(answer.key.run, Counter())[answer.release] += 1
            for charge in self.charges:
                if charge.data_id == data_id and charge.count:
                    made.setdefault(charge.run or LOST, Counter())[charge.release] += charge.count
            told = tuple(
                RunSpent.of(run, len(rounds.get(run, ())), of_run, price, dp_delta) for run, of_run in made.items()
            )
            epsilon = price(tuple(spent.items()), dp_delta)
            left = None if limit is None else max(0.0, limit - epsilon)
            adjacency = self.adjacency.get(data_id, ZERO_OUT)
            found.append(Account(data_id, adjacency, spent.total(), epsilon, dp_delta, limit, left, told))
        return tuple(found)


@dataclass(frozen=True)
class RunState:
    """How far a run is at an agent, and what budget it holds.

    `state` is open (it holds budget for `remaining` releases until `held_until`), lapsed (it was silent for too long:
    its next question is admitted anew), unreserved (of an earlier version: it holds no budget), finished or ended.
    """

    data_id: str
    run: str
    state: str
    round: int  # the last that was answered
    rounds: int
    releases: int
    remaining: int
    held_until: str | None
    why: str  # it was ended

    @property
    def is_over(self) -> bool:
        """Whether no later round will be answered."""
        return self.state in ("ended", "finished")

    @classmethod
    def of(cls, data_id: str, run: str, place: Place, now: datetime) -> RunState:
        """Return the state of one run."""
        if place.is_over:
            state = "ended" if place.ended else "finished"
        elif place.held_until is None:
            state = "unreserved"
        else:
            state = "open" if place.is_held(now) else "lapsed"
        until = place.held_until.isoformat(timespec="seconds") if place.held_until and not place.is_over else None
        rounds = place.terms.rounds if place.terms else 0
        return cls(
            data_id, run, state, place.last[0], rounds, place.releases, place.remaining, until, place.ended
        )


@dataclass(frozen=True)
class RunSpent:
    """One run on one data set, priced as if it were alone."""

    run: str
    rounds: int
    releases: int
    mechanisms: tuple[str, ...]
    epsilon: float

    @classmethod
    def of(cls, run: str, rounds: int, made: Counter[Release], price: Price, dp_delta: float) -> RunSpent:
        """Return what the releases of a run cost together, of which `rounds` rounds have answers on record."""
        return cls(run, rounds, made.total(), tuple(map(spell, made)), price(tuple(made.items()), dp_delta))


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


def lost_run(epsilon: float, dp_delta: float, law: str | None, price: Price, limit_delta: float) -> Release:
    """Return what a run of (epsilon, dp_delta) that the ledger has lost counts as, as its owner states it.

    Gaussian noise over all rounds of a run reveals as much as one Gaussian release. If the law is not known, the run
    counts as the worst of all (epsilon, dp_delta) mechanisms. That leaves nothing of a limit at the same delta, which
    is `limit_delta`, so it is refused unless `law` is "any".
    """
    if not (0 < epsilon < math.inf and 0 <= dp_delta < 1):
        raise SpecError(
            f"a lost run has a positive epsilon and a delta in [0, 1), got {epsilon} and {dp_delta}: enter what it was "
            "agreed to cost."
        )
    if law == "gaussian":
        if dp_delta == 0:
            raise SpecError("Gaussian noise has a delta above 0: enter that of the lost run, or --law any.")
        return GaussianRelease(multiplier_of(epsilon, dp_delta))
    found = GeneralRelease(epsilon, dp_delta)
    if law is None and math.isinf(price([(found, 1)], limit_delta)):
        raise SpecError(
            f"a run of ({epsilon:g}, {dp_delta:g}) of unknown noise leaves nothing of a limit at delta "
            f"{limit_delta:g}. If it drew Gaussian noise, as all methods but objt-laplace do under the sound preset, "
            "add --law gaussian. If you do not know, add --law any: then nothing more is released at this delta."
        )
    return found
