"""The deployed agent: gate, ledger check, value, cover, ledger entry, answer.

Only a checked question reaches the records. The ledger refuses a question, or repeats a stored answer, before a record
is read. Every answer is on record before it leaves. An agent keeps nothing else from one question to the next: the
server computes models and steps from noisy answers, and deals with missing agents.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter
from typing import Any, TypeAlias, TypeVar

import numpy as np

from tacit.agent.agreement import Agreement
from tacit.agent.cover import Cover
from tacit.agent.gate import Gate, Question
from tacit.errors import IncompatibleError, RefusalWarning, Refused
from tacit.privacy.ledger import Ledger
from tacit.privacy.terms import Key, Memory, Terms
from tacit.query.query import AgentQuery
from tacit.types import Array

T = TypeVar("T")
Store: TypeAlias = Ledger | Memory  # of answers: for good, or while a run lasts


@dataclass(frozen=True, eq=False)
class Answer:
    """All that leaves an agent: the run, the number of the question with its attempt, and the covered value.

    `seconds` stays in the process of the agent: a duration may depend on records.
    """

    run: str
    t: int
    attempt: int
    value: Array
    seconds: dict[str, float]


def or_refused(name: str, answer: Callable[[], T]) -> T:
    """Return the answer of an agent, or raise Refused without a reason. A warning gives its owner the reason."""
    try:
        return answer()
    except Exception as error:  # of any type: its text stays here
        with suppress(RefusalWarning):  # also if warnings are errors, the server gets no reason
            warnings.warn(f"agent {name}: {error}", RefusalWarning, stacklevel=3)
    raise Refused(f"agent {name}: {Refused.public}")


@dataclass(frozen=True, eq=False)
class DeployedAgent:
    """An agent under the name of its data, in one run. `queries` are those of the agreement, over its records."""

    name: str
    data_id: str
    queries: tuple[AgentQuery[Any], ...]
    agreement: Agreement
    terms: Terms
    cover: Cover
    store: Store

    def __post_init__(self) -> None:
        """Join the run, on terms that are those of the agreement, with all of its noise."""
        agreement, terms = self.agreement, self.terms
        if [one.query for one in self.queries] != [one.query for one in agreement.queries]:
            raise IncompatibleError("an agent's queries are not those of its agreement: make them anew.")
        for one in self.queries:
            one.check()
        theirs = (terms.rounds, terms.releases, terms.adjacency)
        if theirs != (agreement.rounds, agreement.releases, agreement.adjacency.name.lower()):
            raise IncompatibleError("the terms of a run are not those of its agreement: make them anew.")
        if len({asked.release(agreement.adjacency) for asked in agreement.queries}) > 1:
            raise IncompatibleError(
                "the queries of the run have different noise, and its terms in a ledger have one price per answer: "
                "give all queries of the method the same noise."
            )
        for k, one in enumerate(self.queries):
            asked, records = agreement.queries[k], len(one.records)
            if one.sensitivity(asked.noise.norm, agreement.adjacency) > asked.sensitivity(agreement.adjacency, records):
                raise IncompatibleError("an agent's evaluator rounds more than its noise covers: take another one.")
            release, needed = asked.release(agreement.adjacency), agreement.scale(k, records)
            if terms.release != release or not terms.scale >= needed:
                raise IncompatibleError("the noise of a run is not that of its agreement: make its terms anew.")
            self.cover.check(self.name, terms.run, agreement, records)
        self.store.join(self.data_id, terms)

    @cached_property
    def gate(self) -> Gate:
        """The check that every question passes first."""
        return Gate(self.terms.run, self.terms.spec, self.agreement)

    def answer_or_refuse(self, question: Question) -> Answer:
        """Return the answer, or raise Refused, which shows the server only that this agent does not answer."""
        return or_refused(self.name, lambda: self.answer(question))

    def answer(self, question: Question) -> Answer:
        """Return the answer, or raise an error whose text is for the owner of the records."""
        seconds = {"gradient": 0.0, "noise": 0.0}
        with np.errstate(all="ignore"):  # a flag that a record raises is no reason to stop
            asked = self.gate.checked(question)
            peers, cover = self.cover.over(asked)
            query = self.queries[self.agreement.place(asked.t)]

            def make() -> Array:
                value = query.value  # packs the records, the first time: no earlier than here
                start = perf_counter()
                exact = value(asked.parameters)
                computed = perf_counter()
                covered = cover(exact)
                seconds.update(gradient=computed - start, noise=perf_counter() - computed)
                return covered

            key = Key(self.data_id, self.terms.run, asked.t, asked.attempt)
            release = self.agreement.at(asked.t).release(self.agreement.adjacency)
            kept = self.store.release(key, f"{asked.fingerprint}{peers}", release, make, self.terms.adjacency)
        return Answer(key.run, key.round, key.step, kept, seconds)
