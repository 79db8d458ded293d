"""The records of a site after a feature map, kept for all runs that have the same map."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace

from tacit.federation import facts
from tacit.federation.messages import Counts
from tacit.privacy.chain import canonical
from tacit.run import build
from tacit.run.spec import Spec
from tacit.types import Federation, Shard

MAPS_KEPT = 2  # what a map makes of the records may be far larger than the records


class MappedRecords:
    """The records of `own`, as runs of several agents see them. One thread may ask at a time."""

    def __init__(self, own: Federation) -> None:
        self.own = own
        self._kept: OrderedDict[str, tuple[Shard, ...]] = OrderedDict()

    def of(self, spec: Spec, agents: Counts) -> Federation:
        """The federation of a run: its map is chosen by public facts, and records that have passed it are kept."""
        whole = facts.among(self.own, agents)
        away = tuple(Shard.elsewhere(len(shard), whole.n_features) for shard in whole.shards)
        told = build.transformed(spec, replace(whole, shards=away))
        d = spec.data
        key = canonical([told.recipe, d.intercept, d.row_norm, d.row_bound, d.row_mode, whole.agents])
        if key in self._kept:
            self._kept.move_to_end(key)
            both = zip(told.shards, self._kept[key], strict=True)
            return replace(told, shards=tuple(ours if ours.here else theirs for theirs, ours in both))
        found = build.transformed(spec, whole)
        self._kept[key] = found.shards
        while len(self._kept) > MAPS_KEPT:
            self._kept.popitem(last=False)
        return found
