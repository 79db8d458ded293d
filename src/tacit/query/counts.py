"""The counts query: histograms of raw cells, or of the scores of a public model, over public edges.

    value = ( h_1, .., h_m ),    h_k[b] = how many records have v_k in [edge_b, edge_b+1)

v_k is the cell of a named column as a number, or a score x^T w_k. The first bin begins at -inf and the last one ends at
inf, so that len(edges) + 1 bins hold every number. A cell that is missing or no number is in no bin.

The value is total: a number is in one bin, NaN in none. Features and models are at most LARGEST, so that scores are
finite. An absent record is in no bin. A score is a sum in an order that the number of records alone decides, so that no
record changes the bin of another.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from tacit.errors import DataError, SpecError
from tacit.message import Body, Form, Numbers
from tacit.problem.sensitivity import Adjacency
from tacit.query.query import UNIT_ROUNDOFF, Evaluator, Value, check_shape, plain_numbers
from tacit.query.records import Reader, Reads, View, blas_alone
from tacit.types import LARGEST, Array, Norm

MOST_NUMBERS = 2**24  # of a value: 128 MiB


@dataclass(frozen=True)
class Counts:
    """Histograms of `columns`, or else of the scores of models with so many `features`; edges for each of them."""

    edges: tuple[tuple[float, ...], ...]
    columns: tuple[str, ...] = ()
    features: int = 0

    def __post_init__(self) -> None:
        plain_numbers(self)
        if not isinstance(self.edges, tuple) or not self.edges:
            raise SpecError("a query of counts needs edges: a tuple with a tuple of numbers for each histogram.")
        for edges in self.edges:
            _check_edges(edges)
        if self.size > MOST_NUMBERS:
            raise SpecError(f"the histograms have {self.size} bins, more than {MOST_NUMBERS}: use fewer edges.")
        if bool(self.columns) is bool(self.features):
            raise SpecError("counts are of the cells of columns, or of scores of so many features: name one of them.")
        if self.columns:
            _check_columns(self.columns, len(self.edges))
        else:
            check_shape(self.shape, MOST_NUMBERS)

    @property
    def reads(self) -> Reads:
        return Reads(View.CELLS, self.columns) if self.columns else Reads(View.ROWS)

    @property
    def shape(self) -> tuple[int, int]:
        """(J, m): of the public model whose scores are counted; J is 0 for cells."""
        return self.features, len(self.edges)

    @property
    def size(self) -> int:
        return sum(len(edges) + 1 for edges in self.edges)

    @property
    def additive(self) -> bool:
        return True

    @cached_property
    def parameters(self) -> Form:
        return Form({} if self.columns else {"model": Numbers(self.shape)})

    @property
    def evaluator(self) -> Evaluator[Counts]:
        return Evaluator(_prepared, allowance)

    def bound(self, norm: Norm, adjacency: Adjacency) -> float:
        """m histograms. Present or absent: m in l1 and sqrt(m) in l2; replaced: 2 m and sqrt(2 m).

        A record is in one bin of each histogram at most. If it is present or absent, at most m counts change, by one
        each. If it is replaced, at most two counts of each histogram do. Both are reached.
        """
        moved = len(self.edges) * adjacency.value
        if norm is Norm.INF:
            raise SpecError("the sensitivity of a query is stated in l1 and in l2.")
        return float(moved) if norm is Norm.L1 else math.sqrt(moved)

    def check(self, reader: Reader) -> None:
        width = self.features or len(self.columns)
        if any(found != width for found, _ in reader.outcomes()):
            raise DataError(f"the records do not have the {width} columns that a query of counts is about.")


def allowance(_query: Counts, _n: int) -> float:
    """Return 1 + 2 u with u = 2^-53: counts below 2^53 are exact, and the root of `bound` is rounded once."""
    return 1 + 2 * UNIT_ROUNDOFF


def _prepared(query: Counts, reader: Reader) -> Value:
    """Return the value by NumPy, a block of records after another."""

    def value(asked: Body) -> Array:
        found = [np.zeros(len(edges) + 1) for edges in query.edges]
        for some in reader.blocks():
            numbers = some.x.astype(np.float64)
            if query.features:
                with blas_alone:
                    numbers = numbers @ asked["model"]
            for counts, edges, column in zip(found, query.edges, numbers.T, strict=True):
                bins = np.searchsorted(edges, column[some.present & ~np.isnan(column)], side="right")
                counts += np.bincount(bins, minlength=len(counts))
        return np.concatenate(found)

    return value


def _check_edges(edges: object) -> None:
    if not isinstance(edges, tuple) or not edges or not all(type(edge) is float for edge in edges):
        raise SpecError("the edges of a histogram are a tuple of one float or more.")
    if not all(-LARGEST <= edge <= LARGEST for edge in edges) or not all(a < b for a, b in pairwise(edges)):
        raise SpecError(f"the edges of a histogram increase, and are finite numbers up to {LARGEST:g}: sort them.")


def _check_columns(columns: object, histograms: int) -> None:
    named = isinstance(columns, tuple) and all(type(name) is str and name for name in columns)
    if not named or not isinstance(columns, tuple) or len(set(columns)) != len(columns) or len(columns) != histograms:
        raise SpecError("counts of cells name a column for each tuple of edges, each column once.")
