"""Who is who in a run: each agent signs a fresh key, and peers check it against the signing key that they have pinned.

A server carries the statements and can leave some out. It cannot make one, change one, or use one in another run or
under another name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tacit.agent.masks import primitives
from tacit.agent.masks.primitives import KEY, check_signature, encoded
from tacit.errors import SpecError, Unfit

_STATEMENT = "tacit masks: statement 1"  # no other message that this key may sign begins so


@dataclass(frozen=True)
class Statement:
    """In this run, this agent has this X25519 key: signed, public, and not yet believed."""

    run: str
    agent: str
    key: bytes
    signature: bytes

    def __post_init__(self) -> None:
        texts, raw = (self.run, self.agent), (self.key, self.signature)
        if not all(isinstance(one, str) for one in texts) or not all(isinstance(one, bytes) for one in raw):
            raise Unfit("a statement has a run and a name in text, and a key and a signature in bytes.")


@dataclass(frozen=True)
class RunKey:
    """An agent's X25519 key for one run. A restart needs `secret`: a file of mode 0600, deleted with the run."""

    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        _check_secret(self.secret)

    @classmethod
    def new(cls) -> RunKey:
        """Draw one."""
        return cls(primitives.new_agreement_key())

    @property
    def public(self) -> bytes:
        """The half that a statement carries."""
        return primitives.agreement_key(self.secret)


@dataclass(frozen=True)
class SigningKey:
    """An agent's long-lived Ed25519 key. `secret` stays in a file of mode 0600; peers pin `public`."""

    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        _check_secret(self.secret)

    @classmethod
    def new(cls) -> SigningKey:
        """Draw one."""
        return cls(primitives.new_signing_key())

    @property
    def public(self) -> bytes:
        """The half that peers write into their site files."""
        return primitives.verifying_key(self.secret)

    def state(self, run: str, agent: str, key: bytes) -> Statement:
        """Sign that the agent has this X25519 key in this run."""
        return Statement(run, agent, key, primitives.signed(self.secret, encoded(_STATEMENT, run, agent, key)))


def roster(run: str, pinned: Mapping[str, bytes], statements: Iterable[Statement]) -> dict[str, bytes]:
    """Return the X25519 keys by name, in the order of names, if every statement is by a pinned agent, for this run."""
    if len(set(pinned.values())) < len(pinned):
        raise SpecError("two names are pinned to one key, so that one agent would count for two: pin a key for each.")
    keys: dict[str, bytes] = {}
    for one in statements:
        if one.run != run:
            raise Unfit(f"a statement of {one.agent!r} is for another run: each run needs statements of its own.")
        if one.agent not in pinned:
            raise Unfit(f"a statement names {one.agent!r}, whose key is not pinned: write it into the site file.")
        check_signature(pinned[one.agent], one.signature, encoded(_STATEMENT, one.run, one.agent, one.key))
        if one.agent in keys:
            raise Unfit(f"{one.agent!r} has two statements: deliver one.")
        if one.key in keys.values():
            raise Unfit(f"{one.agent!r} announces the key of another agent: its owner must draw one.")
        keys[one.agent] = one.key
    return dict(sorted(keys.items()))


def _check_secret(secret: bytes) -> None:
    if not isinstance(secret, bytes) or len(secret) != KEY:
        raise SpecError(f"a secret key has {KEY} bytes: the file that it was read from is damaged, or not a key.")
