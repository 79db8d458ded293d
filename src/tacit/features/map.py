"""What a feature map is: a public function of one record, made from public facts.

A map is a frozen dataclass. Its fields are its public constants, plain enough for JSON: the name of the map and its
fields are the `recipe`, which a model keeps and from which the map is made again, bit for bit.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np

from tacit.errors import DataError
from tacit.machine import cores
from tacit.registry import key
from tacit.types import Array, ColumnFeatures

BLOCK = 256  # records that a map sees at a time, never fewer: BLAS rounds a row by the size of its matrix
LONGEST = 1 << 22  # numbers of a block of long rows, of which a map sees fewer at a time: 16 MB
BELOW = 1 - 1e-6  # float32 rounding moves a norm by at most 6e-8 of itself: what is scaled by this keeps its bound


@dataclass(frozen=True)
class FeatureSpec:
    """The section [features] of a spec: the public map of each record. The map chooses values that are unset."""

    map: str = key("none", "public map of each record: auto, none, a map's name, or module:function of your own")
    size: int | None = key(None, "how many features the map makes, or makes of a column, where it can be chosen")
    shape: str | None = key(None, "images: height x width, perhaps x channels, such as 28x28 or 32x32x3")
    scale: float | None = key(None, "fourier: how far apart two records are that the map hardly tells apart")
    seed: int = key(0, "fourier: public seed of the directions", when={"features.map": ("auto", "fourier")})


@dataclass(frozen=True)
class PublicFacts:
    """What a map may know when it is made: public numbers, and no record."""

    n_inputs: int
    n_records: int = 1  # I, of all agents
    n_agents: int = 1
    n_classes: int = 2
    bounds: tuple[float, float] | None = None  # of every input
    image: tuple[int, int, int] | None = None  # height, width and channels, where a record is an image
    columns: tuple[ColumnFeatures, ...] = ()  # the columns of a table that the inputs were made of


class FeatureMap(Protocol):
    """A public map of one record to one record."""

    @classmethod
    def made_for(cls, facts: PublicFacts, asked: FeatureSpec) -> FeatureMap:
        """Return the map for data of which these facts are public."""

    @property
    def n_inputs(self) -> int: ...

    @property
    def n_outputs(self) -> int: ...

    @property
    def bound(self) -> float:
        """sup |phi(x)|_2 over all records x: public; inf where there is none."""

    def names(self, inputs: tuple[str, ...]) -> tuple[str, ...]:
        """Name the outputs, given the names of the inputs; () where they have no names."""

    def columns(self) -> tuple[ColumnFeatures, ...]:
        """Return which outputs came of which column, where each came of one column alone; else ()."""

    def block(self, x: Array) -> Array:
        """Return phi of every row: (n, n_inputs) -> (n, n_outputs), float32. Several threads may call it."""


def apply(found: FeatureMap, x: Array) -> Array:
    """Return phi of every record (n, n_outputs) in float32.

    Every call of the map gets equally many rows, the last ones padded with zeros: in its place of a block, a record
    becomes the same bits whichever records are around it, and however many. A map that takes its products in float64,
    as those of tacit do, gives a record the same bits in every place.
    """
    if x.ndim != 2 or x.shape[1] != found.n_inputs:
        raise DataError(f"records have shape {x.shape} and the feature map takes {found.n_inputs} numbers a record.")
    out, n = np.empty((len(x), found.n_outputs), np.float32), rows_of_a_block(found.n_inputs)

    def some(start: int) -> None:
        rows = np.ascontiguousarray(x[start : start + n], np.float32)
        if len(rows) < n:
            rows = np.concatenate([rows, np.zeros((n - len(rows), x.shape[1]), np.float32)])
        out[start : start + n] = found.block(rows)[: len(x) - start]

    starts = range(0, len(x), n)
    if len(starts) <= 1:
        for start in starts:
            some(start)
        return out
    with ThreadPoolExecutor(min(cores(), len(starts)), "features") as threads:
        for _ in threads.map(some, starts):
            pass
    return out


def rows_of_a_block(n_inputs: int) -> int:
    """Return how many rows a map of so many inputs sees at a time: BLOCK, or fewer where a row is long."""
    return max(8, min(BLOCK, LONGEST // n_inputs))


def recipe(name: str, found: Any) -> str:
    """Return the text from which `registry.read` makes a map again: its name and its public constants."""
    return json.dumps({"map": name, **asdict(found)}, sort_keys=True)


def bound_of(columns: Sequence[ColumnFeatures]) -> float:
    """sup |x|_2 of a record whose columns have these bounds."""
    return math.sqrt(sum(column.bound**2 for column in columns))
