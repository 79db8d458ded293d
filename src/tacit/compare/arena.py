"""The records that jobs run on: all of them, or the split that tunes; packed once for every method."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from tacit.engine.kernels import normals
from tacit.engine.sums import SharedSums
from tacit.errors import DataError
from tacit.methods.task import Normals, Task
from tacit.run import build
from tacit.run.spec import Spec
from tacit.types import Federation, Shard

HELD_OUT = 6  # the last 1/6 of each agent's records tunes
LANES = 16  # runs at most in a batch
STATE_BYTES = 2e9  # of what the methods of a batch keep: about eight arrays of float64 a run


class Arena:
    """A federation, and what all jobs over it share."""

    def __init__(self, base: Spec, over: Federation) -> None:
        self.base, self.over = base, over
        self.problem = build.objective(base, over)
        self.normals: Normals = normals()

    @property
    def lanes(self) -> int:
        """How many runs to make at once."""
        state = 64 * self.over.n_agents * self.over.n_features * self.over.n_classes
        return max(1, min(LANES, int(STATE_BYTES // state)))

    @cached_property
    def sums(self) -> SharedSums:
        return SharedSums(self.over.shards, self.problem.loss, self.over.n_classes, n_runs=4)

    def task(self, seed: int) -> Task:
        """What a method of tacit.methods works on, its sums one agent after another."""
        over = self.over
        shape = (over.n_features, over.n_classes)
        whole = Task.whole(over.shards, self.problem, shape, self.base.data.row_bound, seed)
        return replace(whole, normals=self.normals)


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
