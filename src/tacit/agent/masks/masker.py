"""The masks of one agent, and what it refuses; the sum of what all have sent.

The caller keeps two things on disk: the run's secret key, and what was claimed. A claim is made before a masked
vector is given out, so that no (round, attempt) is ever answered twice in two ways: not for another set, and not
with other numbers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np

from tacit.agent.masks import files
from tacit.agent.masks.graph import degree, neighbours
from tacit.agent.masks.keys import RunKey, SigningKey, Statement, roster
from tacit.agent.masks.primitives import agreed, encoded, expanded, extracted, stream
from tacit.errors import QuestionChanged, SpecError, Unfit
from tacit.types import Array

_PAIR, _ANSWER = (f"tacit masks: {what} 1" for what in ("pair", "answer"))
_QUESTION = "tacit masks: question 2"  # 1 had no fingerprint of what is asked
_WORD = np.dtype("<u8")  # of a stream, on every machine
_COUNTS = 1 << 63
WIDEST = 64  # bits of a word; an attempt takes as many of them as its sum needs

Claim: TypeAlias = Callable[[str, str], str]
"""(slot, fingerprint) -> the fingerprint that stands: this one, written durably, if the slot was empty; else the first.

It is one transaction. `dict.setdefault` is a claim that a restart forgets.
"""


@dataclass(frozen=True)
class Terms:
    """What all agents of a run agree on. Agents with different terms add up to random words."""

    run: str
    bits: int  # k: sums are modulo 2^k
    threshold: int  # the least agents in a set
    colluding: int  # the most agents that may tell the server what they know

    def __post_init__(self) -> None:
        if not isinstance(self.run, str) or not self.run:
            raise SpecError("a secure sum needs the name of its run, which masks are bound to: give one.")
        if not 1 <= self.bits <= 64:
            raise SpecError(f"a secure sum is modulo 2^k in words of 64 bits, got k = {self.bits}: give 1 to 64.")
        if self.colluding < 0 or self.threshold < self.colluding + 2:
            raise SpecError(
                f"a sum hides nothing of one honest agent: with {self.colluding} colluding agents, ask for a threshold "
                f"of at least {self.colluding + 2}, got {self.threshold}."
            )


@dataclass(frozen=True)
class Question:
    """A sum over exactly these peers is asked for, in this attempt at this round.

    `fingerprint` names what the values are answers to: masks of another question are other masks.
    """

    round: int
    attempt: int
    peers: tuple[str, ...]
    fingerprint: str

    def __post_init__(self) -> None:
        if not all(type(one) is int and 0 <= one < _COUNTS for one in (self.round, self.attempt)):
            raise Unfit("round and attempt of a sum are whole numbers from zero on.")
        if not isinstance(self.fingerprint, str) or not self.fingerprint:
            raise Unfit("a sum is over answers to one question: give its fingerprint.")
        if not isinstance(self.peers, tuple) or not all(isinstance(one, str) for one in self.peers):
            raise Unfit("the peers of a sum are names.")
        if len(set(self.peers)) < len(self.peers):
            raise Unfit("a peer is named twice in one sum.")


@dataclass(frozen=True)
class Masker:
    """One agent's masks in one run."""

    terms: Terms
    agent: str
    keys: Mapping[str, bytes]  # X25519, by name, the agent's own among them
    secrets: Mapping[str, bytes] = field(repr=False)  # shared with each peer

    @classmethod
    def meet(
        cls, terms: Terms, agent: str, key: RunKey, pinned: Mapping[str, bytes], statements: Iterable[Statement]
    ) -> Masker:
        """Check the statements of all agents, the own one among them, and agree on a secret with every peer."""
        return cls.among(terms, agent, key, roster(terms.run, pinned, statements))

    @classmethod
    def among(cls, terms: Terms, agent: str, key: RunKey, keys: Mapping[str, bytes]) -> Masker:
        """Agree on a secret with every owner of a key; whoever calls has checked whose keys these are (`roster`)."""
        if keys.get(agent) != key.public:
            raise Unfit(f"the statement of {agent!r} itself is missing or has another key: announce the key on disk.")
        peers = [peer for peer in keys if peer != agent]
        return cls(terms, agent, keys, {peer: _pair_secret(terms.run, agent, key, peer, keys) for peer in peers})

    def asked(self, question: Question, length: int) -> str:
        """Return the digest of all that masks depend on but the secrets: what a ledger keeps as the question."""
        peers = self._peers(question)
        terms = self.terms
        named = [part for peer in peers for part in (peer, self.keys[peer])]
        numbers = (question.round, question.attempt, length, terms.bits, terms.colluding)
        return hashlib.sha256(encoded(_QUESTION, terms.run, *numbers, question.fingerprint, *named)).hexdigest()

    def slot(self, question: Question) -> str:
        """Return the key under which a ledger keeps an answer: run, agent, round and attempt, and no set."""
        return hashlib.sha256(encoded(self.terms.run, self.agent, question.round, question.attempt)).hexdigest()

    def mask(self, question: Question, vector: Array, claim: Claim) -> Array:
        """Return vector + masks modulo 2^k, (d,) int64 -> (d,) uint64, once the claim stands.

        Entries are reduced modulo 2^k and never refused: whether one is too large is a fact about records.
        """
        if vector.dtype != np.int64 or vector.ndim != 1 or not len(vector):
            raise SpecError(f"a secure sum takes one row of int64, got {vector.dtype} of shape {vector.shape}.")
        asked = self.asked(question, len(vector))
        words = (vector.view(np.uint64) + self._offset(question, asked, len(vector))) & _low(self.terms.bits)
        # the fingerprint is of what the server sees anyway: a ledger's hashes tell nothing of the vector
        answer = hashlib.sha256(encoded(_ANSWER, asked, words.astype(_WORD).tobytes())).hexdigest()
        if claim(self.slot(question), answer) != answer:
            raise QuestionChanged(
                f"attempt {question.attempt} at round {question.round} was answered before, for other peers or with "
                "other numbers: ask for a new attempt."
            )
        return np.asarray(words)

    def _peers(self, question: Question) -> list[str]:
        peers, least = sorted(question.peers), self.terms.threshold
        if self.agent not in peers:
            raise Unfit(f"a sum without {self.agent!r} is none of its business.")
        if not set(peers) <= set(self.keys):
            raise Unfit("a sum names a peer that has shown no signed key: deliver its statement first.")
        if len(peers) < least:
            raise Unfit(f"a sum over {len(peers)} agents is below the threshold of {least}: wait for more.")
        return peers

    def _offset(self, question: Question, asked: str, length: int) -> Array:
        """The agent's masks, added up: plus for peers that come after it, minus for those before."""
        peers = sorted(question.peers)
        near = neighbours(peers, self.agent, degree(len(peers), self.terms.colluding), bytes.fromhex(asked))
        total = np.zeros(length, np.uint64)
        zeros, words = np.zeros(length, _WORD), np.empty(length, _WORD)
        for peer in near:
            self.fill(peer, asked, zeros, words)
            (np.add if self.agent < peer else np.subtract)(total, words, out=total)  # unsigned: wraps
        return total

    def fill(self, peer: str, asked: str, zeros: Array, words: Array) -> None:
        """Make the mask that is shared with a peer, before its sign; the peer makes the same."""
        stream(expanded(self.secrets[peer], bytes.fromhex(asked)), zeros, words)


def maskers(run: str, budgets: Mapping[str, str], colluding: int, keys: Path | None) -> dict[str, Masker]:
    """Return the masks of each agent of a run in one process, by name: each signs a fresh key and checks all others.

    Run keys are in the folder `keys`, one for each budget, because a resumed run needs the same keys; None: in memory.
    """
    own = {
        name: RunKey.new() if keys is None else files.run_key(keys, run, name, budget)
        for name, budget in budgets.items()
    }
    signing = {name: SigningKey.new() for name in own}  # of this process: no other process pins them
    pinned = {name: key.public for name, key in signing.items()}
    statements = [signing[name].state(run, name, key.public) for name, key in own.items()]
    agreed, keys_of_all = Terms(run, WIDEST, colluding + 2, colluding), roster(run, pinned, statements)
    return {name: Masker.among(agreed, name, own[name], keys_of_all) for name in own}


def unmasked(answers: Sequence[Array], bits: int) -> Array:
    """Return the sum of all masked vectors modulo 2^k, in [-2^(k-1), 2^(k-1)): (d,) int64."""
    if any(one.dtype != np.uint64 or one.ndim != 1 or len(one) != len(answers[0]) for one in answers):
        raise Unfit("a masked vector has another form than it should: leave its sender out, and ask for a new attempt.")
    total = np.sum(np.stack(answers), axis=0, dtype=np.uint64)
    away = 64 - bits
    return np.asarray((total << np.uint64(away)).view(np.int64) >> np.int64(away))  # the sign is bit k - 1


def _pair_secret(run: str, agent: str, key: RunKey, peer: str, keys: Mapping[str, bytes]) -> bytes:
    pair = [part for name in sorted((agent, peer)) for part in (name, keys[name])]
    return extracted(agreed(key.secret, keys[peer]), encoded(run), encoded(_PAIR, *pair))


def _low(bits: int) -> np.uint64:
    return np.uint64((1 << bits) - 1)
