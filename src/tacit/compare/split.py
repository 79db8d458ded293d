"""The records of a comparison: all of them for the runs that are reported, and a split of them that tunes."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from tacit.errors import DataError
from tacit.run import build
from tacit.run.spec import Spec
from tacit.types import Federation, Shard

HELD_OUT = 6  # the last 1/6 of each agent's records tunes


class Splits:
    """The federation of a spec, loaded when a job first needs it."""

    def __init__(self, base: Spec) -> None:
        self.base = base

    def __getitem__(self, role: str) -> Federation:
        """What a job of this role trains and is judged on."""
        return self.trial if role == "trial" else self.run

    @cached_property
    def run(self) -> Federation:
        over = build.federation(self.base)
        if not len(over.test):
            raise DataError(f"{over.name} has no test records to compare on: give --test, or data.test_fraction.")
        return over

    @cached_property
    def trial(self) -> Federation:
        return held_out(self.run)


def held_out(over: Federation) -> Federation:
    """Without the last sixth of each agent's records, which takes the place of the test set; absent ones do not."""
    kept = [len(shard) - len(shard) // HELD_OUT for shard in over.shards]
    rest = [shard.rows(slice(n, None)) for shard, n in zip(over.shards, kept, strict=True)]
    if not sum(map(len, rest)):
        raise DataError(f"no agent has {HELD_OUT} records, so none can be held out for tuning: use fewer agents.")
    there = [shard if shard.present is None else shard.rows(shard.present) for shard in rest]
    judge = Shard(np.concatenate([shard.x for shard in there]), np.concatenate([shard.y for shard in there]))
    shards = tuple(shard.rows(slice(n)) for shard, n in zip(over.shards, kept, strict=True))
    return replace(over, shards=shards, test=judge)
