"""A part of each agent's training records as a test set, for tuning."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tacit.errors import DataError
from tacit.types import Federation, Shard


def part(federation: Federation, seed: int, one_in: int) -> Federation:
    """The federation with one record in so many of each agent as its test set. Absent records test nothing.

    At random, because a file is often sorted, by label too. Of agents elsewhere, the numbers of records alone change.
    """
    kept, rest = [], []
    for p, shard in enumerate(federation.shards):
        n = len(shard) // one_in
        if not shard.here:
            kept.append(Shard.elsewhere(len(shard) - n, federation.n_features))
            continue
        order = np.random.default_rng([seed, p]).permutation(len(shard))
        rest.append(shard.rows(np.sort(order[:n])))
        kept.append(shard.rows(np.sort(order[n:])))
    if not sum(len(shard) // one_in for shard in federation.shards):
        raise DataError(f"no agent has {one_in} records, so none can be held out for tuning: use fewer agents.")
    there = [shard if shard.present is None else shard.rows(shard.present) for shard in rest]
    nothing = Shard(np.empty((0, federation.n_features)), federation.test.y[:0])
    x, y = ([getattr(shard, name) for shard in there] for name in ("x", "y"))
    judge = Shard(np.concatenate(x), np.concatenate(y)) if there else nothing
    return replace(federation, shards=tuple(kept), test=judge)
