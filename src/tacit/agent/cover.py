"""How an answer leaves an agent: alone with all of its noise, or masked in a secure sum with a share of the noise.

The cover follows from the agreement on disk. No message chooses it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

from tacit.agent.agreement import Agreement
from tacit.agent.gate import Checked
from tacit.errors import IncompatibleError
from tacit.privacy import lattice
from tacit.privacy.noise import stream
from tacit.privacy.summed import Attempt, Peers, attempt_of
from tacit.types import Array

if TYPE_CHECKING:
    from tacit.agent.masks.masker import Masker

Covering: TypeAlias = Callable[[Array], Array]  # a value -> what leaves


class Cover(Protocol):
    """Noise, and masks if there are any."""

    def check(self, name: str, run: str, agreement: Agreement, records: int) -> None:
        """Refuse to cover the answers of this agent in this run, unless the cover was made for them."""

    def over(self, asked: Checked) -> tuple[str, Covering]:
        """Check the peers of a question; return what names them in the ledger, and the function that covers a value."""


@dataclass(frozen=True, eq=False)
class Alone:
    """Exact noise of the full scale: for each query of the agreement, as float64 on its grid."""

    agreement: Agreement
    records: int

    def check(self, name: str, run: str, agreement: Agreement, records: int) -> None:  # noqa: ARG002
        """Refuse a secure sum, noise of another agreement, and noise for fewer records."""
        if agreement.in_sum is not None or self.agreement != agreement or self.records < records:
            raise IncompatibleError("the noise of an agent is not that of its agreement: make the cover anew.")

    def over(self, asked: Checked) -> tuple[str, Covering]:
        """Return "", since there are no peers, and the function that adds the noise."""
        place = self.agreement.place(asked.t)
        scale, law = self.agreement.scale(place, self.records), self.agreement.queries[place].noise.law
        return "", lambda value: lattice.release(value, scale, law)


@dataclass(frozen=True, eq=False)
class Masked:
    """A share of the noise and the masks of one attempt: words that reveal only the sum of all."""

    agreement: Agreement
    masker: Masker

    def check(self, name: str, run: str, agreement: Agreement, records: int) -> None:  # noqa: ARG002
        """Refuse a share of another agreement, for fewer colluding agents, and the masks of another agent or run."""
        masks, in_sum = self.masker.terms, agreement.in_sum
        if in_sum is None or self.agreement != agreement or masks.colluding < in_sum.colluding:
            raise IncompatibleError("the noise of a sum is less than its agreement asks for: make the cover anew.")
        if (self.masker.agent, masks.run) != (name, run):
            raise IncompatibleError("the masks are of another agent or of another run: agree on keys anew.")

    def over(self, asked: Checked) -> tuple[str, Covering]:
        """Return the digest of all that the masks depend on, and the masked share of the value.

        It refuses peers that the masks do not know, and too few of them, before the value is computed.
        """
        from tacit.agent.masks.masker import Question  # needs the extra `secure`

        agreed = self.masker.terms
        attempt = attempt_at(self.agreement, asked, agreed.colluding, agreed.threshold)
        masker = replace(self.masker, terms=replace(agreed, bits=attempt.width))
        to = Question(asked.t, asked.attempt, asked.peers, asked.fingerprint)

        def cover(value: Array) -> Array:
            words = self.share(attempt, asked, value).view(np.int64).ravel()
            # the ledger makes the claim: it answers an attempt once, and only what is on disk leaves
            return masker.mask(to, words, lambda _, answer: answer)

        return masker.asked(to, self.agreement.at(asked.t).query.size), cover

    def share(self, attempt: Attempt, asked: Checked, value: Array) -> Array:  # noqa: ARG002
        """Return the value with a share of fresh noise, before masks."""
        return attempt.share(value)


@dataclass(frozen=True, eq=False)
class Simulated:
    """The same integers with noise of a seed, and no masks, which cancel in the sum: not private."""

    agreement: Agreement
    key: tuple[int, int]  # of the agent's stream

    def check(self, name: str, run: str, agreement: Agreement, records: int) -> None:  # noqa: ARG002
        """Refuse a share of another agreement."""
        if self.agreement != agreement:
            raise IncompatibleError("the noise of an agent is not that of its agreement: make the cover anew.")

    def over(self, asked: Checked) -> tuple[str, Covering]:
        """Return "", since there are no masks, and the function that adds a simulated share of the noise."""
        assert self.agreement.in_sum is not None, "other simulations have engines of their own"
        attempt = attempt_at(self.agreement, asked, self.agreement.in_sum.colluding)
        bits = stream(self.key, asked.t, asked.attempt)
        return "", lambda value: attempt.share(value, bits).ravel()


def attempt_at(agreement: Agreement, asked: Checked, colluding: int, threshold: int = 1) -> Attempt:
    """Return what the agents of one attempt agree on."""
    return attempt_of(agreement.summed(agreement.place(asked.t)), Peers(len(asked.peers), colluding, threshold))
