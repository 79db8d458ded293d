"""Check what a server asks, before any record is read.

The gate knows the agreement of the run and nothing of the data. So no refusal depends on a record, and neither does its
reason.
"""

from __future__ import annotations

from dataclasses import dataclass

from tacit.agent.agreement import Agreement
from tacit.errors import Unfit
from tacit.message import Body, fingerprint


@dataclass(frozen=True, eq=False)
class Question:
    """What a server sends: the run and the hash of its agreement, the number of the question, the query's parameters.

    In a secure sum, `attempt` and `peers` say which sum the answer goes into.
    """

    run: object
    agreed: object
    t: object
    parameters: object
    attempt: object = 0
    peers: object = ()


@dataclass(frozen=True, eq=False)
class Checked:
    """A question that passed the gate: its number is one of 1 .. T, and every part has its agreed form."""

    t: int
    attempt: int
    peers: tuple[str, ...]
    parameters: Body
    fingerprint: str


@dataclass(frozen=True)
class Gate:
    """The name of a run, the hash of what was agreed, and the agreement."""

    run: str
    agreed: str
    agreement: Agreement

    def checked(self, question: Question) -> Checked:
        """Return the question as a checked value; raise Unfit if it is not what was agreed."""
        if type(question) is not Question:
            raise Unfit(f"a server sends a Question, got {type(question).__name__}.")
        for name, given, agreed in (
            ("run", question.run, self.run),
            ("agreement", question.agreed, self.agreed),
        ):
            if type(given) is not str or given != agreed:
                raise Unfit(f"the question is of another {name} than {agreed!r}, which this agent joined.")
        t = question.t
        if type(t) is not int or not 1 <= t <= self.agreement.rounds:
            raise Unfit(f"a question has a number from 1 to {self.agreement.rounds}, as agreed.")
        attempt, peers = self._place_in_sum(question)
        parameters = self.agreement.at(t).query.parameters.checked(question.parameters)
        named = parameters if self.agreement.in_sum is None else {**parameters, "attempt": attempt, "peers": peers}
        return Checked(t, attempt, peers, parameters, fingerprint(t, named))

    def _place_in_sum(self, question: Question) -> tuple[int, tuple[str, ...]]:
        """Return attempt and peers, which only a secure sum has: the agreement decides, never the question."""
        in_sum, attempt, peers = self.agreement.in_sum, question.attempt, question.peers
        most = 0 if in_sum is None else in_sum.repetitions
        if type(attempt) is not int or not 0 <= attempt <= most:
            raise Unfit(f"an attempt is a whole number from 0 to {most}, as agreed.")
        if type(peers) is not tuple or not all(type(one) is str and one and one.isprintable() for one in peers):
            raise Unfit("peers are names that can be printed.")
        if list(peers) != sorted(set(peers)):
            raise Unfit("peers are named in their order, each once.")
        if bool(peers) != (in_sum is not None):
            raise Unfit("a question names peers if and only if the run has a secure sum.")
        return attempt, peers
