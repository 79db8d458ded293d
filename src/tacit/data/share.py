"""Which part of a federation this process holds, where its agents are spread over processes.

Every process reads the same source. A reader first learns which agents there are and how many records each has; `mine`
then says whose records it keeps. Other agents' shards are `Shard.elsewhere`. The process that leads keeps the test set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from tacit.types import Federation, Shard


class Share(Protocol):
    """One of several processes that read a source together."""

    @property
    def alone(self) -> bool:
        """Whether there is no other process."""

    @property
    def leads(self) -> bool:
        """Whether this process holds the test set."""

    def mine(self, counts: Sequence[int]) -> range:
        """Which agents this process holds, given how many records each has."""

    def together(self, value: Any = None) -> list[Any]:
        """What every process has to say, in their order. Every process must call it equally often."""


class Alone:
    """The only process."""

    alone = True
    leads = True

    def mine(self, counts: Sequence[int]) -> range:
        return range(len(counts))

    def together(self, value: Any = None) -> list[Any]:
        return [value]


ALONE = Alone()


def kept(federation: Federation, share: Share) -> Federation:
    """The federation of a source that was read as a whole, without the records that other processes hold."""
    mine = share.mine([len(shard) for shard in federation.shards])
    if len(mine) == federation.n_agents:
        return federation
    shards = (
        replace(shard, x=shard.x.copy(), y=shard.y.copy())  # no view: the records of all are let go
        if p in mine
        else Shard.elsewhere(len(shard), federation.n_features)
        for p, shard in enumerate(federation.shards)
    )
    test = federation.test if share.leads else federation.test.rows(slice(0, 0))
    return replace(federation, shards=tuple(shards), test=test)
