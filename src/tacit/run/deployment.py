"""What a deployed run agrees on, the same at the server and at every agent, and the files of its ledgers."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from tacit.admm.messages import Broadcast
from tacit.agent.agreement import DELTA_FOR_THE_GRID, Agreement
from tacit.errors import IncompatibleError
from tacit.machine import open_files
from tacit.message import Body
from tacit.privacy.budget import total
from tacit.privacy.exact import Law
from tacit.privacy.release import Events
from tacit.privacy.summed import Attempt, InSum, Peers, attempt_of
from tacit.privacy.terms import Terms
from tacit.rounds import Spread
from tacit.run.spec import Spec
from tacit.types import Array

_MEAN_SIZE = {Law.LAPLACE: 1.0, Law.GAUSSIAN: math.sqrt(2 / math.pi)}  # E|xi| in units of the scale
FILES_PER_LEDGER = 3  # the database, its log and the log's index
OTHER_FILES = 100
OWN_LEDGERS = 1000  # agents at most whose ledgers a run keeps unasked: more would need more open files than is usual


class Program(Protocol):
    """What a method's server does between its message and its questions, and between the answers and its next model."""

    accepted: Array  # the round of the last answer of each agent that was taken, 0 for none; one number behind a sum

    def parameters(self, msg: Broadcast, p: int) -> Body:
        """Return what agent p is asked; behind a sum, what every agent is asked."""

    def move(self, p: int, msg: Broadcast, answer: Array, whole: float = 1.0) -> None:
        """Take the answer of agent p to the question that went with `msg`; behind a sum, the total as p = 0.

        `whole` is the number of all records over that of the records in a total.
        """

    def replies(
        self, msg: Broadcast, spreads: Sequence[Spread], seconds: Mapping[str, float], in_step: bool = True
    ) -> Any:
        """Return what the method's server concludes the round with, from the answers taken so far."""

    def save(self) -> dict[str, Array]:
        """Return all that `load` needs."""

    def load(self, saved: Mapping[str, Array]) -> None:
        """Continue from what `save` returned."""


@dataclass(frozen=True, eq=False)
class Deployment:
    """The agreement of every agent, in order, with its number of records, and the method's program at the server."""

    agreements: tuple[Agreement, ...]
    records: tuple[int, ...]
    shape: tuple[int, int]
    program: Callable[[bool], Program]  # whether agents may be missing -> the program of a new run
    fades: bool = False  # whether the last answer of a missing agent can stand for a new one

    @property
    def first_agreement(self) -> Agreement:
        """The agreement of the first agent; behind a sum it is that of all."""
        return self.agreements[0]

    @property
    def in_sum(self) -> InSum | None:
        """The secure sum that all answers leave in; None if each answer leaves alone."""
        return self.first_agreement.in_sum

    @property
    def digest(self) -> str:
        """The hash of all agreements."""
        return hashlib.sha256(" ".join(one.digest for one in self.agreements).encode()).hexdigest()

    def agreed(self, spec: Spec) -> str:
        """Return the hash of what all agents of a run in one process agree on: the spec and the agreements."""
        return hashlib.sha256(f"{spec.toml()}\n{self.digest}".encode()).hexdigest()

    def terms(self, spec: Spec, p: int, agreed: str) -> Terms:
        """Return what agent p agrees to when it joins a run: its agreement, and the most that the run can cost."""
        own, dp_delta = self.agreements[p], spec.privacy.dp_delta
        release = own.queries[0].release(own.adjacency)
        scale = max(own.scale(place, self.records[p]) for place in range(len(own.queries)))
        again = own.releases - own.rounds
        cap = cap_of(tuple(own.events), dp_delta)
        return Terms(
            run_name(spec), agreed, own.rounds, release, own.adjacency.name.lower(), scale, dp_delta, cap, again
        )

    def attempt(self, t: int, present: int) -> Attempt:
        """Return the public numbers of a sum over so many agents."""
        in_sum = self.in_sum
        assert in_sum is not None, "the run trusts a secure sum"
        return attempt_of(self.first_agreement.summed(self.first_agreement.place(t)), Peers(present, in_sum.colluding))

    def whole(self, present: Sequence[int]) -> float:
        """Return the number of all records over that of the agents that are present."""
        return sum(self.records) / sum(self.records[p] for p in present)

    def spreads(self, t: int) -> list[Spread]:
        """Return the noise of every agent's answer to question t."""
        return [_spread(own, own.place(t), n) for own, n in zip(self.agreements, self.records, strict=True)]

    def spread_of_sum(self, t: int, present: int) -> Spread:
        """Return the noise of a sum over so many agents, that of the colluding ones included."""
        own = self.first_agreement
        assert own.in_sum is not None, "the run trusts a secure sum"
        place, peers = own.place(t), Peers(present, own.in_sum.colluding)
        scale = own.summed(place).scale
        sensitivity = scale / own.queries[place].noise.multiplier
        return Spread(scale * math.sqrt(peers.present / peers.honest), _MEAN_SIZE[Law.GAUSSIAN], sensitivity)


@lru_cache(maxsize=4096)
def _spread(own: Agreement, place: int, records: int) -> Spread:
    scale, noise = own.scale(place, records), own.queries[place].noise
    return Spread(scale, _MEAN_SIZE[noise.law], scale / noise.multiplier)


def price(events: Events, dp_delta: float) -> float:
    """Return the epsilon of all releases of an agent; exact noise keeps back its share of delta, as in every run."""
    return total(events, dp_delta * (1 - DELTA_FOR_THE_GRID)).epsilon


@lru_cache(maxsize=4096)
def cap_of(events: Events, dp_delta: float) -> float:
    """Return the epsilon of all that an agreement allows."""
    return price(events, dp_delta)


def run_name(spec: Spec) -> str:
    """Return the name of the run. Ledgers that a run has for itself, and memories, know no other run."""
    return spec.run.name or "one process"


def ledger_folder(spec: Spec, own: Path | None, started: bool, n_agents: int) -> Path | None:
    """Return where the ledgers of a run are: where the spec says, else in its `own` directory; None for no ledgers.

    A run that was `started` without ledgers (by an earlier version, or with too many agents) has none.
    """
    if spec.privacy.noise != "exact":
        return None
    if spec.privacy.ledger or own is None:
        return Path(spec.privacy.ledger) if spec.privacy.ledger else None
    place = own / "ledgers"
    return place if (place.is_dir() if started else n_agents <= OWN_LEDGERS) else None


def ledger_file_name(agent: str) -> str:
    """Return a file name that no other agent has: the quoted name of the agent, or its digest where that is long."""
    quoted = quote(agent, safe="")
    return f"{quoted if len(quoted) <= 100 else hashlib.sha256(agent.encode()).hexdigest()}.ledger"


def allow_ledger_files(ledgers: int) -> None:
    """Allow as many open files as the ledgers of a run need, all at once; refuse the run if the system does not."""
    count = FILES_PER_LEDGER * ledgers + OTHER_FILES
    allowed = open_files(count)
    if allowed < count:
        raise IncompatibleError(
            f"the ledgers of this run need {count} open files, and the system allows {allowed}: raise the hard limit "
            "(ulimit -Hn), or train fewer agents in one process."
        )
