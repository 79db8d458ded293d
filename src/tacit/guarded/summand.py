"""An agent whose answers go into a secure sum: gate -> records -> share of the noise -> masks -> ledger -> words.

It keeps nothing but its ledger from one question to the next. Every question is for one attempt at a round, over peers
that it names: fresh noise, fresh masks and a price of its own. What is on record is what leaves: masked words, of which
nobody learns anything but a sum. What is added up, and what it costs, is in tacit.privacy.summed; why nothing else
becomes known, in tacit.guarded.masks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tacit.errors import IncompatibleError
from tacit.guarded.agent import Outgoing, Store, or_refused
from tacit.guarded.gate import Gate, Question
from tacit.guarded.half import AdmmHalf
from tacit.guarded.masks import masker as masks
from tacit.guarded.mean import asked_of, value_at
from tacit.privacy.summed import Attempt, Peers, Summed, attempt_of
from tacit.privacy.terms import Key, Terms
from tacit.types import Array


@dataclass(frozen=True, eq=False)
class Summand:
    """A deployed agent, under the name of its data, with the terms of one run and the masks that it has agreed on."""

    name: str
    half: AdmmHalf
    terms: Terms
    data_id: str
    store: Store
    summed: Summed
    masker: masks.Masker

    def __post_init__(self) -> None:
        """Join the run, on terms that are those of the half, with all of its noise."""
        half, terms = self.half, self.terms
        theirs = terms.rounds, terms.release, terms.adjacency, terms.releases
        if theirs != (half.rounds, half.release, half.adjacency, self.summed.releases):
            raise IncompatibleError("the terms of a run are not those of the method that is to answer: make them anew.")
        if not terms.scale >= self.summed.scale or not self.summed.sensitivity >= half.sensitivity:
            raise IncompatibleError("the noise of a sum is less than an agent of it needs: make the terms anew.")
        if self.masker.agent != self.name or self.masker.terms.run != terms.run:
            raise IncompatibleError("the masks are of another agent or of another run: agree on keys anew.")
        self.store.join(self.data_id, self.terms)

    @cached_property
    def gate(self) -> Gate:
        return Gate(self.terms, asked_of(self.half.shape, self.terms.repetitions))

    def words(self, question: Question) -> Array:
        """What the agent adds to a sum in its own process; Refused, and no more, where it does not answer."""
        return or_refused(self.name, lambda: np.asarray(self.respond(question).body["words"]))

    def respond(self, question: Question) -> Outgoing:
        """The answer to an attempt, or an error whose text is for the owner of the records."""
        with np.errstate(all="ignore"):  # a flag that a record raises is no reason to stop
            asked = self.gate.checked(question)
            t, body = asked.t, asked.body
            to = masks.Question(t, body["attempt"], body["peers"])
            colluding, threshold = self.masker.terms.colluding, self.masker.terms.threshold
            attempt = attempt_of(self.summed, Peers(len(to.peers), colluding, threshold))
            masker = replace(self.masker, terms=replace(self.masker.terms, bits=attempt.width))
            masked = masker.asked(to, self.half.dimension)  # which refuses peers that it does not know, and too few

            def make() -> Array:
                share = self._share(attempt, to, value_at(self.half, t, body["w"]))
                return masker.mask(to, share.view(np.int64).ravel(), lambda _, answer: answer)

            # the ledger is the claim: it answers an attempt once, and only what is on disk leaves
            key = Key(self.data_id, self.terms.run, t, to.attempt)
            question_of_both = f"{asked.fingerprint}{masked}"
            kept = self.store.release(key, question_of_both, self.half.release, make, self.half.adjacency)
        return Outgoing(key.run, t, {"words": kept})

    def _share(self, attempt: Attempt, _to: masks.Question, value: Array) -> Array:
        """The value with fresh noise, before masks."""
        return attempt.share(value)
