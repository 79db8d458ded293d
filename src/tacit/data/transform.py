"""Changes of the features of a whole federation that look at one record at a time.

Each acts on a record by itself, from public numbers only, so it costs no privacy. The feature map comes first. The
intercept comes before the rescaling: the norm of a record then counts it, and a rescaled record has the class it had
before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tacit.errors import DataError, SpecError, unknown
from tacit.features.map import BLOCK, FeatureMap, PublicFacts, apply
from tacit.types import Array, Federation, Norm, Shard, blocks

NORMS = ("l1", "l2")
MODES = ("clip", "unit")

# float32 rounding moves a norm by at most 6e-8 of itself: this keeps it below the bound
_MARGIN = 1 - 1e-6


def facts_of(federation: Federation) -> PublicFacts:
    """Return what a feature map may know of a federation: public numbers alone."""
    return PublicFacts(
        federation.n_features, federation.n_records, federation.n_agents, federation.n_classes, federation.bounds,
        federation.image, federation.columns,
    )  # fmt: skip


def with_features(federation: Federation, found: FeatureMap, recipe: str) -> Federation:
    """Pass every record through a feature map. An absent record stays absent: its features are zero."""
    bound, here = found.bound, [shard for shard in federation.shards if shard.here]
    *passed, test = _passed((*here, federation.test), found)
    each = iter(passed)
    shards = (next(each) if s.here else Shard.elsewhere(len(s), found.n_outputs) for s in federation.shards)
    return replace(
        federation, shards=tuple(shards), test=test, features=found.names(federation.features),
        inputs=federation.features, columns=found.columns(), image=None, recipe=recipe,
        bounds=None if np.isinf(bound) else (-bound, bound),
        longest=None if np.isinf(bound) else (bound * found.n_outputs**0.5, bound),
    )  # fmt: skip


def _passed(shards: Sequence[Shard], found: FeatureMap) -> Iterator[Shard]:
    """Give each shard after the map. Short shards pass together: a map sees whole blocks, and one block serves many."""
    together: list[Shard] = []
    waiting = 0  # records
    for n, shard in enumerate(shards, start=1):
        together.append(shard)
        waiting += len(shard)
        if n < len(shards) and waiting < BLOCK:
            continue
        x = together[0].x if len(together) == 1 else np.concatenate([one.x for one in together])
        cuts = np.cumsum([len(one) for one in together])[:-1]
        for one, own in zip(together, np.split(apply(found, x), cuts), strict=True):
            if one.present is not None:
                own[~one.present] = 0
            yield replace(one, x=own)
        together, waiting = [], 0


def with_intercept(federation: Federation) -> Federation:
    """Append a feature of ones, named "intercept" where features have names; the one is zero in an absent record."""
    names = federation.features
    if federation.intercept or "intercept" in names:
        raise DataError("the features already include 'intercept': add it once.")

    def change(shard: Shard) -> Shard:
        one = np.ones(len(shard), np.float32) if shard.present is None else shard.present
        return replace(shard, x=np.column_stack([shard.x, one]))

    bounds = federation.bounds
    wider = None if bounds is None else (min(bounds[0], 1.0), max(bounds[1], 1.0))
    l1, l2 = federation.longest or (0.0, 0.0)
    return federation.map(
        change, features=(*names, "intercept") if names else (), bounds=wider, intercept=True,
        longest=federation.longest and (l1 + 1, (l2**2 + 1) ** 0.5),
    )  # fmt: skip


@dataclass(frozen=True)
class RowScale:
    """Records of norm at most B, in float64 and after rounding to float32.

    clip    x * min(1, B / |x|)    shorter records stay as they are
    unit    x * B / |x|            all get the norm B (less one part in a million); zero stays zero
    """

    norm: str
    bound: float
    mode: str = "clip"

    def __post_init__(self) -> None:
        for kind, name, valid in (("norm", self.norm, NORMS), ("mode", self.mode, MODES)):
            if name not in valid:
                raise unknown(kind, name, valid)
        if not 1e-30 <= self.bound <= 1e30:
            raise SpecError(f"the norm bound must be positive and within float32's range, got {self.bound}.")

    def apply(self, x: Array) -> Array:
        """The records (n, J), each rescaled from its own numbers alone."""
        sizes = Norm(self.norm).of_rows(x)
        longer = np.flatnonzero(sizes > (self.bound if self.mode == "clip" else 0))
        x = x.astype(np.result_type(x, np.float32)) if len(longer) else x  # a copy, in which whole numbers have room
        for some in blocks(len(longer)):  # float64 copies of a block, not of all records
            rows = longer[some]
            x[rows] = x[rows] * (_MARGIN * self.bound / sizes[rows])[:, None]
        return x


def rescale_rows(federation: Federation, norm: str, bound: float, mode: str = "clip") -> Federation:
    """Rescale every record as `RowScale` says."""
    scale = RowScale(norm, bound, mode)
    before = federation.longest or (np.inf, np.inf)
    within = before[NORMS.index(norm)] <= bound
    longest = (bound if norm == "l1" else bound * federation.n_features**0.5, bound)  # |x|_2 <= |x|_1 <= sqrt(J) |x|_2
    if mode == "clip":  # a record that is clipped is no longer than it was
        longest = (min(longest[0], before[0]), min(longest[1], before[1]))
    return federation.map(
        lambda shard: replace(shard, x=scale.apply(shard.x)), bounds=_bounds(federation.bounds, bound, mode),
        rescaled=federation.rescaled or not (mode == "clip" and within), longest=longest,
    )  # fmt: skip


def _bounds(bounds: tuple[float, float] | None, bound: float, mode: str) -> tuple[float, float]:
    """Return what is known of a feature afterwards: |x_j| <= |x| <= B, its sign, and if clipped its old range."""
    low, high = (-np.inf, np.inf) if bounds is None else bounds
    if mode == "unit":
        low, high = (-np.inf if low < 0 else 0.0), (np.inf if high > 0 else 0.0)
    return float(max(min(low, 0.0), -bound)), float(min(max(high, 0.0), bound))
