"""The messages between a coordinator and the agent service of a site, as types.

    coordinator     site
    Hello      ->   Introduction    who is here, and what is public of the records
    Join       ->   Joined          the run's name, its spec and its agents, agreed once
    Ask        ->   Answer          a round: the model and the penalty; the releases of the agents that were asked
    Meet       ->   Met             a secure sum: the signed keys of all agents, which each site checks for itself
    AskSum     ->   Shares          an attempt at a round of it: the model and its peers; masked words of each of them
    Close      ->   Closed          the run has ended: its keys may go
                    Unjoined        in place of an Answer, where the service has been started again: join again
                    Refusal         in place of any of them, and nothing of the reason

tacit.federation.messages makes bytes of them, and reads bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from tacit.types import Array

Counts: TypeAlias = tuple[tuple[str, int], ...]  # agents by name, with the number of their records


@dataclass(frozen=True)
class Hello:
    kind: ClassVar[str] = "hello"


@dataclass(frozen=True)
class Introduction:
    """Who is here. `public` is JSON (tacit.federation.facts) of what may be known of the records."""

    site: str
    agents: Counts
    public: str
    kind: ClassVar[str] = "introduction"


@dataclass(frozen=True)
class Join:
    """A run: its name, the TOML of its spec, all its agents in order, and the hash that both sides must arrive at."""

    run: str
    spec: str
    agreed: str
    agents: Counts
    kind: ClassVar[str] = "join"


@dataclass(frozen=True)
class Signed:
    """An agent's key for a run, with its signature: hexadecimal digits (tacit.guarded.masks.keys.Statement)."""

    agent: str
    key: str
    signature: str


@dataclass(frozen=True)
class Joined:
    """The agents that have joined, and their keys where the run trusts a secure sum; else there are none."""

    run: str
    joined: tuple[str, ...]
    signed: tuple[Signed, ...] = ()
    kind: ClassVar[str] = "joined"


@dataclass(frozen=True, eq=False)
class Ask:
    """Round t. `accepted` names the agents that are asked, each with the last of its rounds that the server took."""

    run: str
    agreed: str
    t: int
    rho: float
    accepted: dict[str, int]
    w: Array
    kind: ClassVar[str] = "ask"


@dataclass(frozen=True)
class Released:
    """One agent's release: the hash of the dual that it was made with, and the head of the agent's ledger."""

    agent: str
    dual: str
    head: str


@dataclass(frozen=True, eq=False)
class Answer:
    """The releases of a round, z (n, J, K) with a row for each, and the agents that do not answer."""

    run: str
    t: int
    released: tuple[Released, ...]
    refused: tuple[str, ...]
    z: Array
    kind: ClassVar[str] = "answer"


@dataclass(frozen=True)
class Meet:
    """The signed keys of all agents of a run."""

    run: str
    agreed: str
    signed: tuple[Signed, ...]
    kind: ClassVar[str] = "meet"


@dataclass(frozen=True)
class Met:
    run: str
    kind: ClassVar[str] = "met"


@dataclass(frozen=True, eq=False)
class AskSum:
    """Attempt `attempt`, from 0 on, at round t: a sum over exactly these peers, of gradients at the model w."""

    run: str
    agreed: str
    t: int
    attempt: int
    peers: tuple[str, ...]
    w: Array
    kind: ClassVar[str] = "ask sum"


@dataclass(frozen=True)
class Given:
    """One agent has given its masked words: the head of its ledger, after that."""

    agent: str
    head: str


@dataclass(frozen=True, eq=False)
class Shares:
    """The masked words of the agents of a site, (n, d) uint64 with a row for each that is given."""

    run: str
    t: int
    attempt: int
    given: tuple[Given, ...]
    refused: tuple[str, ...]
    words: Array
    kind: ClassVar[str] = "shares"


@dataclass(frozen=True)
class Close:
    run: str
    agreed: str
    kind: ClassVar[str] = "close"


@dataclass(frozen=True)
class Closed:
    run: str
    kind: ClassVar[str] = "closed"


@dataclass(frozen=True)
class Unjoined:
    run: str
    kind: ClassVar[str] = "unjoined"


@dataclass(frozen=True)
class Refusal:
    run: str = ""
    kind: ClassVar[str] = "refusal"


Message: TypeAlias = (
    Hello | Introduction | Join | Joined | Ask | Answer | Meet | Met | AskSum | Shares | Close | Closed | Unjoined
    | Refusal
)  # fmt: skip
REQUESTS: tuple[type[Message], ...] = (Hello, Join, Ask, Meet, AskSum, Close)
REPLIES: tuple[type[Message], ...] = (Introduction, Joined, Answer, Met, Shares, Closed, Unjoined, Refusal)
