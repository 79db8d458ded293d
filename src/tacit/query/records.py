"""The records of one agent, as its queries read them: one view, a block at a time, absent records blank.

A source of records may make a view anew whenever a query reads it. Nothing outside an evaluator relies on a matrix that
exists as a whole.
"""

from __future__ import annotations

import enum
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from tacit.errors import DataError
from tacit.types import LARGEST, Array, Shard, blocks

blas_alone = threading.Lock()  # BLAS uses all cores for one product: two agents at a time would slow each other down


class View(enum.Enum):
    """Raw cells of named columns, as numbers; columns as a schema encodes them; rows as the feature map makes them."""

    CELLS = "raw cells"
    COLUMNS = "encoded columns"
    ROWS = "mapped rows"


@dataclass(frozen=True)
class Reads:
    """What a query reads: a view and, for raw cells, the names of columns."""

    view: View
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Block:
    """Some records: x (n, J), or their cells (n, columns), NaN if a cell is no number; y (n,); present (n,)."""

    x: Array
    y: Array
    present: Array

    def rows(self, kept: slice) -> Block:
        """Return a part of the block."""
        return Block(self.x[kept], self.y[kept], self.present[kept])


class Records(Protocol):
    """A source of one agent's records. Their number is public, and counts absent ones."""

    def __len__(self) -> int: ...

    def read(self, reads: Reads) -> Iterator[Block]:
        """Yield all records in order, in blocks whose sizes depend on public numbers only."""


@dataclass(frozen=True, eq=False)
class InMemory:
    """Records in arrays: those of a shard, or views and raw cells by name."""

    y: Array
    views: Mapping[View, Array]
    present: Array | None = None  # None: all are there
    cells: Mapping[str, Array] = field(default_factory=dict)
    here: bool = True  # False: another process holds the records, and only their number is known

    @classmethod
    def of(cls, shard: Shard) -> InMemory:
        """Return the mapped rows of a shard."""
        return cls(shard.y, {View.ROWS: shard.x}, shard.present, here=shard.here)

    def __post_init__(self) -> None:
        if any(column.dtype.kind not in "fiub" for column in self.cells.values()):
            raise DataError("raw cells are read as numbers, NaN for a cell that is none: parse the column first.")
        if self.y.dtype.kind not in "iuf":
            raise DataError("labels are whole numbers, and numbers to predict are floats: encode them first.")
        if any(x.dtype.kind != "f" for x in self.views.values()):
            raise DataError("features are floating-point numbers: convert the matrix first.")
        if any(len(one) != len(self.y) for one in (*self.views.values(), *self.cells.values())):
            raise DataError(f"every view holds a row for each of {len(self.y)} records: check their lengths.")
        if self.present is not None and (self.present.dtype != np.bool_ or self.present.shape != self.y.shape):
            raise DataError(f"present must hold true or false for each of {len(self.y)} records.")

    def __len__(self) -> int:
        return len(self.y)

    def read(self, reads: Reads) -> Iterator[Block]:
        """Yield a view as one block; cells in blocks, because their columns are put side by side."""
        if not self.here:
            raise DataError("these records are elsewhere, and nothing can be computed of them here: ask their holder.")
        present = np.ones(len(self), bool) if self.present is None else self.present
        if reads.view is View.CELLS:
            lacking = [name for name in reads.columns if name not in self.cells]
            if lacking:
                raise DataError(f"the records have no column {', '.join(map(repr, lacking))}: ask for one they have.")
            for rows in blocks(len(self)):
                x = np.stack([self.cells[name][rows] for name in reads.columns], axis=1).astype(np.float64)
                yield Block(x, self.y[rows], present[rows])
        elif reads.view in self.views:
            yield Block(self.views[reads.view], self.y, present)
        else:
            raise DataError(f"these records have no {reads.view.value}: ask for another view.")


@dataclass(frozen=True, eq=False)
class Reader:
    """The one view that a query has named. An evaluator sees no other, and nothing of what an absent record holds.

    Features are finite and at most LARGEST: NaN counts as zero, and a larger number as LARGEST. A shard has neither.
    """

    records: Records
    reads: Reads

    def __len__(self) -> int:
        return len(self.records)

    def blocks(self) -> Iterator[Block]:
        """Yield the records, as many at a time as fit beside each other in float64."""
        for block in self.records.read(self.reads):
            for rows in blocks(len(block.y)):
                yield self._clean(block.rows(rows))

    def outcomes(self) -> Iterator[tuple[int, Array]]:
        """Yield the number of columns and y, block by block, and look at no feature."""
        for block in self.records.read(self.reads):
            yield block.x.shape[1], _blank(block.y, ~block.present)

    def whole(self) -> Block:
        """Return all records at once, for an evaluator that packs them; not copied if they are in one array."""
        found = [self._clean(block) for block in self.records.read(self.reads)]
        if len(found) == 1:
            return found[0]
        parts = ([block.x for block in found], [block.y for block in found], [block.present for block in found])
        return Block(*(np.concatenate(part) for part in parts))

    def _clean(self, block: Block) -> Block:
        absent = ~block.present
        # one layout in memory, whichever records are copied: BLAS sums a transposed matrix in another order
        x, y = _blank(np.ascontiguousarray(block.x), absent), _blank(block.y, absent)
        return Block(x if self.reads.view is View.CELLS else _finite(x), y, block.present)


def _blank(values: Array, absent: Array) -> Array:
    """Return the values with zeros for absent records; the same array if it has these already."""
    if not values[absent].any():  # NaN is not zero
        return values
    values = values.copy()
    values[absent] = 0
    return values


def _finite(x: Array) -> Array:
    """Return x with entries in [-LARGEST, LARGEST] and of the same type; the same array if they are."""
    most = min(LARGEST, float(np.finfo(x.dtype).max))
    if not x.size or -most <= x.min() <= x.max() <= most:  # NaN is within no bounds
        return x
    return np.nan_to_num(x, nan=0.0, posinf=most, neginf=-most).clip(-most, most)
