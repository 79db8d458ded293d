"""An agent as it is deployed: gate -> records -> noise -> ledger -> answer.

What it computes is what its method computes. What differs is that only a checked question reaches the records, where
noise comes from (tacit.privacy.lattice: the operating system, no seed, no floating-point trace of the value), that the
terms of the run are agreed once and kept, and that every answer is on record before it leaves.

What is on record is the answer and the dual that the agent carries on from it: one array (2, J, K), in one transaction
with the price. So a `Guarded` in one process with its server, which keeps the state of its agents, and a `Resident`,
which has nothing but its ledger, write the same.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter
from typing import TypeAlias, TypeVar

import numpy as np

from tacit.admm.messages import Broadcast, Local, Reply
from tacit.errors import IncompatibleError, RefusalWarning, Refused
from tacit.guarded.gate import Asked, Gate, Question
from tacit.guarded.half import AdmmHalf
from tacit.message import Body, Earlier, Form, fingerprint
from tacit.privacy import lattice
from tacit.privacy.exact import Law
from tacit.privacy.ledger import Ledger
from tacit.privacy.terms import Key, Memory, Terms
from tacit.rounds import Trace
from tacit.types import Array

DELTA_FOR_THE_GRID = 1e-4  # share of dp_delta kept back for discrete noise in place of continuous
T = TypeVar("T")
Store: TypeAlias = Ledger | Memory  # where answers are on record: for good, or while a run lasts


@dataclass(frozen=True, eq=False)
class Outgoing:
    """All that leaves an agent: the run, the round, and the parts that its method lists."""

    run: str
    t: int
    body: Body


def or_refused(name: str, answer: Callable[[], T]) -> T:
    """The answer of an agent; or Refused, which says that it does not answer and no more. Its owner is warned why."""
    try:
        with np.errstate(all="ignore"):  # a flag that a record raises is no reason to stop
            return answer()
    except Exception as error:  # whatever it is, its text stays here
        with suppress(RefusalWarning):  # where warnings are errors, the server is told no more either
            warnings.warn(f"agent {name}: {error}", RefusalWarning, stacklevel=3)
    raise Refused(f"agent {name}: {Refused.public}")


@dataclass(frozen=True, eq=False)
class Guarded:
    """An agent under the name of its data, with the terms of one run."""

    name: str
    half: AdmmHalf
    terms: Terms
    data_id: str
    store: Store

    def __post_init__(self) -> None:
        """Join the run, on terms that are those of the half, with all of its noise."""
        half, terms = self.half, self.terms
        theirs = terms.rounds, terms.release, terms.adjacency
        if theirs != (half.rounds, half.release, half.adjacency) or not terms.scale >= scale_of(half):
            raise IncompatibleError("the terms of a run are not those of the method that is to answer: make them anew.")
        self.store.join(self.data_id, self.terms)

    @cached_property
    def gate(self) -> Gate:
        return Gate(self.terms, self.half.asked)

    def respond(self, own: Local, question: Question) -> tuple[Local, Outgoing, Trace]:
        """Answer one round, from the state that the agent carried into it.

        Or raise Refused: then the server is told that this agent does not answer, and no more.
        """
        return or_refused(self.name, lambda: self._respond(own, self.gate.checked(question)))

    def _respond(self, own: Local, asked: Asked) -> tuple[Local, Outgoing, Trace]:
        half, t, body = self.half, asked.t, asked.body
        own = half.take_up(own, t, body)
        seconds = {"gradient": 0.0, "noise": 0.0, "update": 0.0}
        binding: float | None = None  # of an answer that the ledger holds nobody counts it again

        def make() -> Array:
            nonlocal binding
            start = perf_counter()
            value = half.value(own, t, body)
            valued = perf_counter()
            noisy = lattice.release(value, self.terms.scale, half.law)
            drawn = perf_counter()
            z, binding = half.step(own, t, body, noisy)
            after = half.carry(own, body, z)
            seconds.update(gradient=valued - start, noise=drawn - valued, update=perf_counter() - drawn)
            return np.stack([after.z, after.dual])

        key = Key(self.data_id, self.terms.run, t)
        kept = self.store.release(key, asked.fingerprint, half.release, make, half.adjacency)
        answer = kept.reshape(-1, *half.shape)[0]  # ledgers of earlier versions hold the answer alone
        (part,) = half.answered.parts
        leaving = Outgoing(key.run, t, half.answered.checked({part: answer}, t))
        trace = expected_trace(half, self.terms.scale, t, body, seconds)
        return half.carry(own, body, answer), leaving, replace(trace, binding=binding)


@dataclass(frozen=True, eq=False)
class Addressed:
    """A guarded agent in one process with its server: it takes the server's broadcast, as a question of the run."""

    agent: Guarded
    run: str
    spec: str

    def in_double(self) -> Addressed:
        """Return the agent itself: a guarded agent always computes in float64."""
        return self

    def start(self, _shape: tuple[int, int]) -> Local:
        """What the agent carries into its first round."""
        return self.agent.half.start

    def respond(self, own: Local, msg: Broadcast) -> tuple[Local, Reply, Trace]:
        """Ask the agent, and take the one part of its answer."""
        own, answer, trace = self.agent.respond(own, Question(self.run, self.spec, msg.t, msg.body()))
        return own, Reply(**answer.body), trace


@dataclass(frozen=True, eq=False)
class Resident:
    """A guarded agent that lives where its records are, and keeps nothing but its ledger from one round to the next.

    A question names the last of the agent's rounds that the server took, `accepted`, 0 for none. The agent goes on from
    what its ledger holds of that round, so that an answer that was lost on its way is as if it had not been given, but
    for its price. Whoever asks the same again gets the same again.
    """

    agent: Guarded

    @cached_property
    def gate(self) -> Gate:
        return Gate(self.agent.terms, Form({**self.agent.half.asked.parts, "accepted": Earlier()}))

    def respond(self, question: Question) -> tuple[Outgoing, str]:
        """The answer to a round, and the hash of the dual that it was made with; Refused or another error where none.

        The text of an error is for the owner of the records.
        """
        with np.errstate(all="ignore"):  # as above
            asked = self.gate.checked(question)
            accepted = asked.body["accepted"]
            after, leaving, _ = self.agent._respond(self._state(accepted), asked)
        self._ledger.forget_later(self.agent.terms.run, accepted)
        return leaving, fingerprint(asked.t, {"dual": after.dual})

    def _state(self, accepted: int) -> Local:
        """What the agent carried on from a round that it answered; where it starts, before the first."""
        agent, half = self.agent, self.agent.half
        if not accepted:
            return half.start
        z, dual = self._ledger.recall(Key(agent.data_id, agent.terms.run, accepted))
        return Local(z, dual, half.rho(accepted))

    @property
    def _ledger(self) -> Ledger:
        assert isinstance(self.agent.store, Ledger), "an agent that keeps nothing else needs a ledger"
        return self.agent.store


def expected_trace(half: AdmmHalf, scale: float, t: int, body: Body, seconds: dict[str, float]) -> Trace:
    """Numbers that a run may plot, all of them public: the draw itself is not kept."""
    size = scale * (1.0 if half.law is Law.LAPLACE else math.sqrt(2 / math.pi))  # E|xi|
    return Trace(size, size / half.stiffness(t, body), scale, scale / half.multiplier, None, seconds)


def scale_of(half: AdmmHalf) -> float:
    """The noise scale that an agent needs for its sensitivity on the grid."""
    return lattice.calibrate(half.norm, half.multiplier, half.sensitivity, half.dimension)
