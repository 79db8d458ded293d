"""Shapes, said once.

    x   (I_p, J) float32    records of one agent, one a row (float64 in the plain engine)
    y   (I_p,)   int64      their labels, 0 .. K-1
        (I_p,)   float64    or the number that is to be predicted, in [-1, 1]; K is then 1
    w   (J, K)              the model; z_p and dual_p have its shape
"""

from __future__ import annotations

import enum
import math
import reprlib
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.arguments import check_bounds, numbers
from tacit.errors import DataError, SpecError, printable

Array: TypeAlias = NDArray[Any]

# Of a feature, and of a model that an agent is asked at. Scores stay below 1e50 * 1e50 * J, so that their squares, the
# norms made of them and every product on the way to a gradient are finite, whatever the data (tacit.query.gradient)
LARGEST = 1e50

BLOCK = 1 << 14  # rows of a matrix that are looked at together: what is made of them stays small, whatever the matrix


def blocks(n_rows: int) -> Iterator[slice]:
    """Cut the rows of a matrix into blocks of neighbours."""
    return (slice(start, start + BLOCK) for start in range(0, n_rows, BLOCK))


class Norm(enum.Enum):
    """|.|_1, |.|_2 (Frobenius for a matrix) or |.|_inf."""

    L1 = "l1"
    L2 = "l2"
    INF = "inf"

    def of_rows(self, rows: Array) -> Array:
        """The norm of each row of a matrix, as float64."""
        order = {Norm.L1: 1, Norm.L2: 2, Norm.INF: np.inf}[self]
        norms = np.empty(rows.shape[:-1])
        for some in blocks(len(rows)):  # float64 copies of a block, not of all rows
            norms[some] = np.linalg.norm(rows[some].astype(np.float64, copy=False), ord=order, axis=-1)
        return norms


@dataclass(frozen=True)
class Target:
    """What is public of a number that is to be predicted: it lies in [lo, hi]. Records hold it scaled to [-1, 1]."""

    lo: float
    hi: float

    def __post_init__(self) -> None:
        if not (self.lo < self.hi and math.isfinite(self.hi - self.lo)):
            raise SpecError(
                f"the bounds of the target are two finite numbers, the lower first, got {self.lo:g} and {self.hi:g}."
            )

    @property
    def half(self) -> float:
        """Half of the range: how many of the user's units one unit of a score is."""
        return (self.hi - self.lo) / 2

    def scaled(self, values: Array) -> Array:
        """Values in the user's units as records hold them; what lies outside the bounds is moved to their end."""
        share = (np.clip(numbers("the target", values), self.lo, self.hi) - self.lo) / (self.hi - self.lo)
        return np.asarray(2 * share - 1)

    def in_units(self, scores: Array) -> Array:
        """Scores in the user's units, within the bounds."""
        share = (np.clip(numbers("the scores", scores), -1, 1) + 1) / 2
        return np.asarray(np.clip(self.lo + share * (self.hi - self.lo), self.lo, self.hi))


@dataclass(frozen=True, eq=False)
class Shard:
    """The records of one agent (or of the test set): x (I_p, J), y (I_p,).

    `present` (I_p,) is false where a record is absent in its place, its features zero; None where all are there.
    `here` is false where another process holds the records: their number is then all that is known of them, and their
    CRC where that process has told it (`told`).
    `owners` (I_p,) says of each record of a test set which agent it comes from, -1 for none; None where nobody knows.
    """

    x: Array
    y: Array
    dtype: type[np.floating[Any]] = np.float32
    present: Array | None = None
    here: bool = True
    told: int = 0
    owners: Array | None = None

    @classmethod
    def elsewhere(cls, n_records: int, n_features: int, told: int = 0) -> Shard:
        """So many records of so many features, which another process holds: zeros that take no memory."""
        zero = np.zeros((), np.float32), np.zeros((), np.int64)
        x, y = np.broadcast_to(zero[0], (n_records, n_features)), np.broadcast_to(zero[1], (n_records,))
        return cls(x, y, here=False, told=told)

    def __post_init__(self) -> None:
        if not self.here:
            return
        x = numbers("x", self.x, self.dtype)
        y = np.asarray(self.y)
        if x.ndim != 2:
            raise DataError(f"x must be a matrix of records by features, got shape {x.shape}: reshape it to (I, J).")
        if y.ndim != 1 or len(y) != len(x):
            raise DataError(f"y must hold one label a record: got shape {y.shape} for {len(x)} records.")
        number = np.issubdtype(y.dtype, np.floating)
        if len(y) and not (np.issubdtype(y.dtype, np.integer) or (number and fits(y, 1))):
            raise DataError(
                f"labels must be integers 0..K-1, and numbers to predict lie in [-1, 1], got {y.dtype}: encode the "
                "labels first, or scale the numbers (Target(lo, hi).scaled)."
            )
        # min and max see NaN and inf without a temporary the size of x
        largest = max(-float(x.min()), float(x.max())) if x.size else 0.0
        if not math.isfinite(largest):
            row = int(np.flatnonzero(~np.isfinite(x).all(axis=1))[0])
            raise DataError(f"x holds NaN or inf (first in record {row}): drop or impute such records.")
        if largest > LARGEST:
            raise DataError(f"x holds numbers beyond {LARGEST:g}: rescale the features, or gradients overflow.")
        if self.present is not None and (self.present.shape != y.shape or self.present.dtype != np.bool_):
            raise DataError(f"present must hold true or false for each of {len(x)} records.")
        if self.present is not None and x[~self.present].any():
            raise DataError("an absent record has features: set them to zero.")
        if self.owners is not None and self.owners.shape != y.shape:
            raise DataError(f"owners must hold the number of an agent for each of {len(x)} records.")
        object.__setattr__(self, "x", x)
        object.__setattr__(self, "y", np.ascontiguousarray(y, dtype=np.float64 if number and len(y) else np.int64))

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        elsewhere = "" if self.here else ", held by another process"
        return f"Shard({len(self)} records of {self.x.shape[1]} features{elsewhere})"

    def at_hand(self) -> Shard:
        """This shard; refuse to compute on the zeros that stand for records which another process holds."""
        if not self.here:
            raise DataError("these records are elsewhere, and nothing can be computed of them here: ask their holder.")
        return self

    @property
    def checksum(self) -> int:
        """A CRC of the records; of records elsewhere, what their process has told."""
        if not self.here:
            return self.told
        return zlib.crc32(np.ascontiguousarray(self.y).data, zlib.crc32(np.ascontiguousarray(self.x).data))

    def rows(self, kept: Any) -> Shard:
        """The records that an index, a slice or a mask chooses."""
        self.at_hand()
        try:
            present, owners = (None if part is None else part[kept] for part in (self.present, self.owners))
            return replace(self, x=self.x[kept], y=self.y[kept], present=present, owners=owners)
        except (IndexError, TypeError, ValueError):  # which would print the index
            raise DataError(f"kept must choose among {len(self)} records, got {printable(kept)}.") from None


@dataclass(frozen=True)
class ColumnFeatures:
    """Features `start` to `stop` - 1 of a record are what one column of a table was encoded as."""

    column: str
    start: int
    stop: int
    bound: float = 1.0  # public: their l2 norm is at most this, and their l1 norm at most this times sqrt(stop - start)
    number: bool = False  # the first is the number itself, in [0, 1]; a second is 1 where the cell is missing
    shares: bool = False  # they are shares that add up to one, such as a single 1, or all zero


@dataclass(frozen=True, eq=False)
class Federation:
    """Agents' shards, a test set, and what is publicly known about them."""

    shards: tuple[Shard, ...]
    test: Shard
    n_classes: int
    name: str = "unnamed"
    agents: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    bounds: tuple[float, float] | None = None  # public: every feature lies in [lo, hi]
    public_classes: bool = True  # False where n_classes and their names were read from private labels
    longest: tuple[float, float] | None = None  # public: |x|_1 and |x|_2 of a record are at most these
    schema: str = ""  # public: the TOML text of the schema that made the features
    image: tuple[int, int, int] | None = None  # public: height, width and channels, where a record is an image
    columns: tuple[ColumnFeatures, ...] = ()  # public: which features came of which column, where that is known
    recipe: str = ""  # public: the feature map that the records have passed (tacit.features)
    inputs: tuple[str, ...] = ()  # names of the features before that map
    intercept: bool = False  # whether the last feature is an intercept that was appended to all others
    rescaled: bool = False  # public: whether a record may have been divided by its own norm
    target: Target | None = None  # public: what y is where it is a number; n_classes is then 1, and classes has no name

    def __post_init__(self) -> None:
        object.__setattr__(self, "shards", tuple(self.shards))
        if not self.shards:
            raise DataError("a federation needs at least one agent: none was given.")
        object.__setattr__(self, "agents", tuple(self.agents) or tuple(str(p) for p in range(len(self.shards))))
        if self.target is None:
            object.__setattr__(self, "classes", tuple(self.classes) or tuple(str(k) for k in range(self.n_classes)))
        elif self.n_classes != 1 or self.classes:
            raise DataError("a federation with a target predicts one number: give n_classes = 1, and no classes.")
        if self.target is None and self.n_classes < 2:
            raise DataError(f"a classifier needs at least two classes, got {self.n_classes}: check the label column.")
        if len(self.agents) != len(self.shards):
            raise DataError(f"{len(self.agents)} agent names for {len(self.shards)} shards: give one each.")
        if self.target is None and len(self.classes) != self.n_classes:
            raise DataError(f"{len(self.classes)} class names for {self.n_classes} classes: give one each.")
        for name in (self.name, *self.agents, *self.classes, *self.features):
            if not is_unicode(name):
                raise DataError(f"the name {name!r} is not Unicode, and no report could hold it: rename it.")
        check_bounds(self.bounds)
        for name, shard in zip(self.agents, self.shards, strict=True):
            if not len(shard):
                raise DataError(f"agent {name!r} has no records: drop it, or choose a partition that gives it some.")
            self._check_member(f"agent {name!r}", shard)
        self._check_member("the test set", self.test)
        if self.test.owners is not None and self.test.owners.max(initial=-1) >= self.n_agents:
            raise DataError(f"a test record is of an agent beyond the {self.n_agents} that there are: count from 0.")

    def __repr__(self) -> str:
        predicts = f"{self.n_classes} classes" if self.target is None else f"a number from {self.target}"
        return (
            f"Federation({reprlib.repr(self.name)}: {self.n_agents} agents, {self.n_records} training records, "
            f"{len(self.test)} test records, {self.n_features} features, predicts {predicts})"
        )

    @property
    def n_agents(self) -> int:
        """P."""
        return len(self.shards)

    @property
    def n_records(self) -> int:
        """I = sum_p I_p."""
        return sum(map(len, self.shards))

    @property
    def n_features(self) -> int:
        """J."""
        return int(self.shards[0].x.shape[1])

    @cached_property
    def checksum(self) -> int:
        """A CRC of all records, the test set included: of how many each shard has, and of the CRC of each."""
        known = [(shard.x.shape, shard.y.dtype.str, shard.checksum) for shard in (*self.shards, self.test)]
        return zlib.crc32(repr(known).encode())

    def _check_member(self, who: str, shard: Shard) -> None:
        if shard.x.shape[1] != self.n_features:
            raise DataError(f"{who} has {shard.x.shape[1]} features where the first agent has {self.n_features}.")
        if not shard.here:
            return
        number = shard.y.dtype.kind == "f"
        if len(shard) and number != (self.target is not None):
            wanted = "numbers in [-1, 1], because there is a target" if self.target else "integers 0..K-1"
            todo = "scale them (Target.scaled)" if self.target else "encode them first, or give the federation a target"
            raise DataError(f"{who}: labels must be {wanted}, got {shard.y.dtype}: {todo}.")
        if len(shard) and not fits(shard.y, self.n_classes):
            raise DataError(f"{who} has a label outside 0..{self.n_classes - 1}: encode labels as 0..K-1.")
        bounds = self.bounds
        if bounds is not None and shard.x.size and not bounds[0] <= shard.x.min() <= shard.x.max() <= bounds[1]:
            raise DataError(f"{who} has features outside the declared bounds {bounds}: clip them or widen the bounds.")
        for norm, most in zip((Norm.L1, Norm.L2), self.longest or (), strict=False):
            if norm.of_rows(shard.x).max(initial=0.0) > most * (1 + 1e-6):
                raise DataError(f"{who} has a record whose {norm.value} norm is above the declared {most:g}.")

    def map(self, change: Callable[[Shard], Shard], **metadata: Any) -> Federation:
        """The federation with every shard, the test set too, passed through `change`, which acts on each record."""
        test = change(self.test)
        shards = (change(s) if s.here else Shard.elsewhere(len(s), test.x.shape[1]) for s in self.shards)
        return replace(self, shards=tuple(shards), test=test, **metadata)


def fits(y: Array, n_classes: int) -> bool:
    """Whether y are labels 0..K-1 or, where the model has one column, numbers in [-1, 1]."""
    low, high = (y.min(), y.max()) if len(y) else (0, 0)  # NaN is within no bounds
    return bool(n_classes == 1 and -1 <= low <= high <= 1 if y.dtype.kind == "f" else 0 <= low <= high < n_classes)


def is_unicode(text: str) -> bool:
    """Whether UTF-8 can hold the text; file names with other bytes, and half of a surrogate pair, it cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
