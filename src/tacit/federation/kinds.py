"""The messages between a coordinator and the agent service of a site, as types.

    coordinator     site
    Hello      ->   Introduction    who is here, and what is public of the records
    Join       ->   Joined          the run's name, its spec and its agents, agreed once
    Meet       ->   Met             a secure sum: the signed keys of all agents, which each site checks for itself
    Ask        ->   SiteAnswer      a question: the parameters of its query; the covered values of the agents asked
    Close      ->   Closed          the run has ended: its keys may go
                    Unjoined        instead of a SiteAnswer, if the service was started again: join again
                    Refusal         instead of any of them, without the reason

tacit.federation.messages makes bytes of them, and reads bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, TypeAlias

from tacit.privacy.witness import Receipt
from tacit.types import Array

RecordCounts: TypeAlias = tuple[tuple[str, int], ...]  # agents by name, with the number of their records


@dataclass(frozen=True)
class Hello:
    kind: ClassVar[str] = "hello"


@dataclass(frozen=True)
class Introduction:
    """Who is here. `public` is JSON (tacit.federation.facts) of what may be known of the records."""

    site: str
    agents: RecordCounts
    public: str
    kind: ClassVar[str] = "introduction"


@dataclass(frozen=True)
class Join:
    """A run: its name, the TOML of its spec, all its agents in order, and the hash that both sides must arrive at.

    `receipts` are the last ones that the coordinator has of the site's agents. They are not part of what is joined.
    """

    run: str
    spec: str
    agreed: str
    agents: RecordCounts
    receipts: tuple[Receipt, ...] = field(default=(), compare=False)
    kind: ClassVar[str] = "join"

    def to(self, agents: Iterable[str], receipts: Mapping[str, Receipt]) -> Join:
        """Return the message for the site of these agents: with their receipts and no others."""
        return replace(self, receipts=tuple(receipts[name] for name in agents if name in receipts))


@dataclass(frozen=True)
class Signed:
    """An agent's key for a run, with its signature: hexadecimal digits (tacit.agent.masks.keys.Statement)."""

    agent: str
    key: str
    signature: str


@dataclass(frozen=True)
class Joined:
    """The agents that have joined, and their keys if the run trusts a secure sum; else there are none."""

    run: str
    joined: tuple[str, ...]
    signed: tuple[Signed, ...] = ()
    kind: ClassVar[str] = "joined"


@dataclass(frozen=True, eq=False)
class Ask:
    """Question t to the agents `asked` of a site. Each array of `parameters` has one row, or a row for every agent.

    In a secure sum, `attempt` counts from 0 on, and the answers go into a sum over exactly `peers`. Else `peers` is
    empty.
    """

    run: str
    agreed: str
    t: int
    attempt: int
    asked: tuple[str, ...]
    peers: tuple[str, ...]
    parameters: dict[str, Array]
    kind: ClassVar[str] = "ask"


@dataclass(frozen=True, eq=False)
class SiteAnswer:
    """The covered values of the agents of a site, (n, d) uint64 with a row for each receipt, and who refuses.

    In a secure sum a word is a masked share; else it is the bits of a float64.
    """

    run: str
    t: int
    attempt: int
    given: tuple[Receipt, ...]
    refused: tuple[str, ...]
    words: Array
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
    Hello | Introduction | Join | Joined | Ask | SiteAnswer | Meet | Met | Close | Closed | Unjoined | Refusal
)  # fmt: skip
REQUESTS: tuple[type[Message], ...] = (Hello, Join, Meet, Ask, Close)
REPLIES: tuple[type[Message], ...] = (Introduction, Joined, Met, SiteAnswer, Closed, Unjoined, Refusal)
