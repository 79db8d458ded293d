"""The moments query: X'X, X'Y and y'y of an agent's records, each with a public weight; a block that is not asked for
costs nothing.

    value = ( gram upper(X'X), cross R X'Y, square R^2 y'y ),    Y_ik = [y_i = k] - 1/K

R = row_norm bounds the rows: a longer row is shrunk, whatever was declared. upper(A) holds A_jj, and sqrt 2 A_jk for
j < k, so that |upper(A)|_2 = |A|_F. y'y is the sum of |e_i|^2 over records that are present, e_i the row of Y. With a
factor R for each missing row of X, a unit for the features multiplies all blocks alike. A number to predict is one
column of Y, moved into [-1, 1].

The value is total: rows are finite and at most R long after they are shrunk, |e_i| <= 1, and sums of n such terms are
at most n R^2 times a weight. An absent record has x_i = 0, and is left out of y'y.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tacit.errors import SpecError
from tacit.message import Body, Form
from tacit.problem.loss import one_hot
from tacit.problem.sensitivity import Adjacency
from tacit.query.query import UNIT_ROUNDOFF, Evaluator, Value, check_constant, check_rows, check_shape, plain_numbers
from tacit.query.records import Reader, Reads, View, blas_alone
from tacit.types import Array, Norm

MOST_NUMBERS = 2**28  # of a value: 2 GiB


@dataclass(frozen=True)
class Moments:
    """Weights of the blocks, None for a block that is not asked for."""

    shape: tuple[int, int]  # (J, K)
    row_norm: float  # R, in l2
    gram: float | None = None
    cross: float | None = None
    square: float | None = None
    view: View = View.ROWS

    def __post_init__(self) -> None:
        plain_numbers(self)
        check_shape(self.shape, MOST_NUMBERS)
        if self.view is not View.ROWS and self.view is not View.COLUMNS:
            raise SpecError("moments are of mapped rows or of encoded columns: raw cells have no bound.")
        check_constant("row norm", self.row_norm)
        weights = {"gram": self.gram, "cross": self.cross, "square": self.square}
        for name, weight in weights.items():
            if weight is not None:
                check_constant(f"weight {name}", weight)
        if not self.size:
            raise SpecError("a query of moments asks for a block: give gram, cross or square a weight.")
        if self.size > MOST_NUMBERS:
            raise SpecError(f"the moments are {self.size} numbers, more than {MOST_NUMBERS}: use fewer features.")

    @property
    def reads(self) -> Reads:
        return Reads(self.view)

    @property
    def sizes(self) -> tuple[int, int, int]:
        """The numbers in each block; none if it is not asked for."""
        j, k = self.shape
        asked = (self.gram, j * (j + 1) // 2), (self.cross, j * k), (self.square, 1)
        gram, cross, square = (0 if weight is None else size for weight, size in asked)
        return gram, cross, square

    @property
    def size(self) -> int:
        return sum(self.sizes)

    @property
    def additive(self) -> bool:
        return True

    @cached_property
    def parameters(self) -> Form:
        return Form({})

    @property
    def evaluator(self) -> Evaluator[Moments]:
        return Evaluator(_prepared, allowance)

    def bound(self, norm: Norm, adjacency: Adjacency) -> float:
        """How far a record moves the value. g, c, s are the weights; |x| <= R, |e|_2^2 <= E = 1 - 1/K (numbers: 1).

        Present or absent, l2. A record adds (g upper(x x'), c R x e', s R^2 |e|^2), and |x x'|_F = |x|^2,
        |x e'|_F = |x| |e|: at most R^2 sqrt(g^2 + c^2 E + s^2 E^2), for every record with |x| = R and |e|^2 = E.

        Present or absent, l1. |upper(x x')|_1 = |x|_2^2 + (|x|_1^2 - |x|_2^2) / sqrt 2 and |x|_1^2 <= J R^2; and
        |x e'|_1 = |x|_1 |e|_1 <= sqrt(J) R |e|_1 with |e|_1 <= 2 (1 - 1/K) (numbers: 1). The largest of all blocks are
        those of |x_j| = R / sqrt(J).

        Replaced, l2. Let a = x.x' / R^2 and b = e.e' / E, both in [-1, 1]. For |x| = |x'| = R and |e|^2 = |e'|^2 = E,
        which are the worst for given x.x' and e.e',

            |x x' - x' x''|_F^2 = 2 R^4 (1 - a^2),    |x e' - x' e''|_F^2 = 2 R^2 E (1 - a b)

        so that with b = 1 and a = -m the first two blocks move by R^2 sqrt(2 g^2 (1 - m^2) + 2 c^2 E (1 + m)) at most.
        Its largest m in [0, 1] is c^2 E / (2 g^2) or 1. y'y moves by E at most, because |e|^2 lies in [0, E].

        Replaced, l1. Twice a record's own, by the triangle inequality; or, for g upper(X'X) and c R X'Y, sqrt(d) times
        how far d numbers move in l2, whichever is less. y'y as above.
        """
        g, c, s = (weight or 0.0 for weight in (self.gram, self.cross, self.square))
        (j, k), e = self.shape, self.label_square
        if norm is Norm.INF:
            raise SpecError("the sensitivity of a query is stated in l1 and in l2.")
        replaced = adjacency is Adjacency.REPLACE_ONE
        if norm is Norm.L2 and not replaced:
            return self.row_norm**2 * math.sqrt(g**2 + c**2 * e + s**2 * e**2)
        if norm is Norm.L2:
            return self.row_norm**2 * math.sqrt(_replaced(g, c**2 * e) + s**2 * e**2)
        gram, cross = g * (1 + (j - 1) / math.sqrt(2)), c * math.sqrt(j) * (1.0 if k == 1 else 2 * e)
        if replaced:
            gram = min(2 * gram, math.sqrt(j * (j + 1) / 2 * _replaced(g, 0.0)))
            cross = min(2 * cross, math.sqrt(j * k * _replaced(0.0, c**2 * e)))
        return self.row_norm**2 * (gram + cross + s * e)

    @property
    def label_square(self) -> float:
        """E, the largest |e|^2."""
        return 1 - 1 / self.shape[1] if self.shape[1] > 1 else 1.0

    def check(self, reader: Reader) -> None:
        check_rows(reader, self.shape)

    def packed(self, gram: Array, cross: Array, square: float) -> Array:
        """Return the blocks that are asked for as one vector, with their weights."""
        parts = []
        if self.gram is not None:
            at = np.triu_indices(self.shape[0])
            parts.append(self.gram * (off_diagonal(at) * gram[at]))
        if self.cross is not None:
            parts.append(self.cross * self.row_norm * cross.ravel())
        if self.square is not None:
            parts.append(np.array([self.square * self.row_norm**2 * square]))
        return np.concatenate(parts)


def outcomes(y: Array, classes: int) -> Array:
    """Y: one-hot labels less 1 / K; for K = 1 the number to predict, which is kept in [-1, 1]."""
    return one_hot(y, classes) - 1 / classes if classes > 1 else y.astype(np.float64).clip(-1, 1)[:, None]


def off_diagonal(at: tuple[Array, Array]) -> Array:
    """Return the factors of the upper triangle: sqrt 2 off the diagonal, where a number stands for two entries."""
    return np.where(at[0] == at[1], 1.0, math.sqrt(2))


def _replaced(g: float, v: float) -> float:
    """The largest of 2 g^2 (1 - m^2) + 2 v (1 + m) over m in [0, 1]."""
    m = v / (2 * g**2) if 2 * g**2 > v else 1.0
    return 2 * g**2 * (1 - m**2) + 2 * v * (1 + m)


def allowance(query: Moments, n: int) -> float:
    """Return 1 + 4 (max(n, 5)^2 + J) u, for sums of n records in float64 with u = 2^-53.

    * A term. The norm of J numbers and the row that it shrinks are off by (J / 2 + 4) u of R, so that a term of the sum
      is off by (J + 8) u of its bound, and so is how far one record moves the sum. Labels, sqrt 2, the products of
      weights with R, and `bound` itself are off by 16 u in all.
    * The sum. An entry is a sum of n products: each is rounded once, in sums n - 1 times, in any order, in blocks or
      not, and twice by weights: (n + 2) u of the sum of the sizes, entry by entry in |x_ij x_ik|, |x_ij e_ik| or e_i^2
      and so in any of our norms. n records are n bounds at most: at both neighbours 2 n (n + 2) u bound. y'y of labels
      is E times a number of records, which is exact.

    2 n (n + 2) + J + 24 <= 4 (max(n, 5)^2 + J) for all n and J from 1.
    """
    return 1 + (max(n, 5) ** 2 + query.shape[0]) * 4 * UNIT_ROUNDOFF


def _prepared(query: Moments, reader: Reader) -> Value:
    """Return the value by NumPy, a block of records after another."""
    (j, k), asks_gram, asks_cross = query.shape, query.gram is not None, query.cross is not None

    def value(_asked: Body) -> Array:
        gram, cross, square = np.zeros((j, j) if asks_gram else 0), np.zeros((j, k) if asks_cross else 0), 0.0
        for some in reader.blocks():
            x, y = some.x.astype(np.float64), outcomes(some.y, k)
            x *= (query.row_norm / np.maximum(Norm.L2.of_rows(x), query.row_norm))[:, None]
            with blas_alone:
                gram += x.T @ x if asks_gram else 0.0
                cross += x.T @ y if asks_cross else 0.0
            square += some.present.sum() * query.label_square if k > 1 else np.square(y[some.present]).sum()
        return query.packed(gram, cross, float(square))

    return value
