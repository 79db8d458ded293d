"""The one way in: a question becomes a checked value before any record is touched.

The gate knows the terms of the run and the form of its messages, and nothing of the data. Whatever it refuses can
therefore not depend on a record, and neither can the reason it gives.
"""

from __future__ import annotations

from dataclasses import dataclass

from tacit.errors import Unfit
from tacit.message import Body, Form, fingerprint
from tacit.privacy.terms import Terms


@dataclass(frozen=True, eq=False)
class Question:
    """What a server sends: the run and its agreed spec, the round, and the parts that the method names."""

    run: object
    spec: object
    t: object
    body: object


@dataclass(frozen=True, eq=False)
class Asked:
    """A question that passed the gate: t lies in 1 .. T, and every part is of its agreed form."""

    t: int
    body: Body
    fingerprint: str


@dataclass(frozen=True)
class Gate:
    """The terms of a run, and the form of what it may ask."""

    terms: Terms
    form: Form

    def checked(self, question: Question) -> Asked:
        """The question as a checked value; Unfit where it is not what was agreed."""
        if type(question) is not Question:
            raise Unfit(f"a server sends a Question, got {type(question).__name__}.")
        for name, said, agreed in (
            ("run", question.run, self.terms.run),
            ("spec", question.spec, self.terms.spec),
        ):
            if type(said) is not str or said != agreed:
                raise Unfit(f"the question is of another {name} than {agreed!r}, which this agent joined.")
        t = question.t
        if type(t) is not int or not 1 <= t <= self.terms.rounds:
            raise Unfit(f"a round is a whole number from 1 to {self.terms.rounds}, as agreed.")
        body = self.form.checked(question.body, t)
        return Asked(t, body, fingerprint(t, body))
