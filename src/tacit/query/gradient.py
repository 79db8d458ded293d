"""The gradient query: what the records of an agent add to the slope of the objective at a public model.

    value = weight * sum_i x_i a_i^T,    a_i the residual of record i, shrunk so that |x_i a_i^T| <= bound

`value` is total: once a point has passed the check, no record decides whether, or in which way, it is computed.

* A point and a feature are at most LARGEST = 1e50. Scores are at most 1e100 J, their squares and the norms made of them
  1e200 J^2 K, the product of a record's norm with that of its residual 1e150 J^2 K: all are finite for any J and K that
  fit a memory. Softmax subtracts its largest score, so its exponentials lie in [0, 1] and their sum in [1, K]; that of
  Poisson is of a number of at most 0. Numbers that underflow become zero, and floating-point flags are ignored on the
  way.
* Labels lie in 0 .. K-1, and numbers to predict in [-1, 1], which is checked when the agent is built; the check of the
  point has fixed the shape (J, K).
* A declared bound is made true, not checked: rows that are longer are shortened when the agent is built (`held`), and
  residuals that are longer in every answer.
* The value is the sum over records alone. The slope of the regulariser, which depends on the model and could be so
  large that adding it rounds a record away or up, is added after the noise.
* Scores and sums run over features and records in an order that J alone decides. Were it chosen by what the records
  hold, one record could change how the scores of all others are rounded, and a model with terms that cancel makes any
  residual of that. Time is no part of the claim: groups of zeros are left out, so that an answer takes longer the fewer
  there are, in every round alike.
* An absent record is a row of zeros, so that x_i a_i^T is zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np

from tacit.errors import IncompatibleError, SpecError
from tacit.message import Body, Form, Numbers
from tacit.problem.loss import Loss
from tacit.problem.sensitivity import Adjacency, Clipped, Declared, RecordBound
from tacit.query.query import UNIT_ROUNDOFF, Evaluator, Value, check_constant, check_rows, check_shape, plain_numbers
from tacit.query.records import Block, Reader, Reads, View, blas_alone
from tacit.types import Array, Norm

MOST_NUMBERS = 2**31  # of a point: 16 GiB

Sums: TypeAlias = Callable[[Array], Array]  # a point (J, K) -> sum_i x_i a_i^T; threads may ask at the same time
Summing: TypeAlias = "Callable[[Gradient, Block], Sums]"  # the sums over these records, for which the bound is true


@dataclass(frozen=True)
class Gradient:
    """The gradient of any separable loss (tacit.problem.loss.check_separable), each record bounded by a constant."""

    shape: tuple[int, int]  # (J, K)
    loss: Loss
    record_bound: RecordBound
    weight: float  # 1 / I
    shared: bool = True  # whether every agent is asked at the same point

    def __post_init__(self) -> None:
        plain_numbers(self)
        check_shape(self.shape, MOST_NUMBERS)
        own = self.record_bound
        if not isinstance(own, Declared | Clipped) or not own.public:
            raise IncompatibleError(
                "a deployed query needs a bound that is public, and this one is read from the records: use "
                "sensitivity clip, feature_bounds or row_norm."
            )
        if own.norm is Norm.INF or (isinstance(own, Declared) and not own.residual_bounds):
            raise IncompatibleError("a gradient is bounded in l1 or l2, by a declared row norm or a clipping norm.")
        if isinstance(own, Declared) and not _is_consistent(own):
            raise IncompatibleError("a declared bound names a row norm for each of its norms: declare it by the loss.")
        own = replace(own)  # a copy: it may be of somebody else's
        plain_numbers(own)
        object.__setattr__(self, "record_bound", own)
        if type(self.shared) is not bool:
            raise SpecError("whether agents are asked at a shared point is true or false.")
        check_constant("weight", self.weight)
        check_constant("bound", own.value)

    @property
    def reads(self) -> Reads:
        return Reads(View.ROWS)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def additive(self) -> bool:
        return self.shared

    @cached_property
    def point(self) -> Numbers:
        """What a point is: a model without NaN, and no entry beyond LARGEST."""
        return Numbers(self.shape)

    @cached_property
    def parameters(self) -> Form:
        return Form({"point": self.point})

    @property
    def evaluator(self) -> Evaluator[Gradient]:
        return evaluator(numpy_sums)

    def bound(self, norm: Norm, adjacency: Adjacency) -> float:
        """weight * (1 or 2) * sup_i |x_i a_i^T|: a record adds one term to a sum, and one that is replaced changes it.

        `record_bound` bounds |x_i a_i^T| in its own norm. In the other norm: |A|_2 <= |A|_1, a declared bound may have
        an l2 norm of its own, and |A|_1 <= sqrt(J K) |A|_2 for J K numbers.
        """
        return self.weight * adjacency.value * self._of_record(norm)

    def _of_record(self, norm: Norm) -> float:
        own = self.record_bound
        assert isinstance(own, Declared | Clipped)
        if norm is own.norm:
            return own.value
        if norm is Norm.L1:
            return math.sqrt(self.size) * own.value
        if norm is Norm.L2:
            return min(own.value, own.euclidean) if isinstance(own, Declared) else own.value
        raise SpecError("the sensitivity of a query is stated in l1 and in l2.")

    def check(self, reader: Reader) -> None:
        check_rows(reader, self.shape)

    def held(self, rows: Block) -> Block:
        """Return records for which the declared bound is true; they are float64 if rows may be shortened.

        Whether they may is public: a bound that clips declares nothing of the records, and leaves them as they are.
        """
        if isinstance(self.record_bound, Clipped):
            return rows
        return Block(self.record_bound.hold(np.ascontiguousarray(rows.x, np.float64)), rows.y, rows.present)


def float64_allowance(_query: Gradient, n: int) -> float:
    """Return 1 + 4 (n + 4)^2 u, for sums of n records in float64 with u = 2^-53.

    `value` is weight sum_i x_ij a_ik, where a_i was clipped before it is summed:

    * The clip. |x_i|, |a_i|, their product, C over it and a_ik times that are each rounded, so that the numbers
      x_ij and a_ik as they are have |x_i| |a_i| <= C (1 + (J + K + 8) u), and C = ROOM bound is less than the bound
      by 1e-5 of it: |g_i| = |x_i a_i^T| <= bound, exactly, for any J + K below 1e10. (A norm whose squares
      underflow belongs to a record smaller than 1e-160, which needs no clip.) A declared bound has |x_i| <= B and
      |a_i| <= ROUNDED A, B A = ROOM bound: their product is less than the bound by 4e-6 of it.
    * The sum. Each term is rounded at most n times in sums, in any order, in blocks or not, and once in its
      product or, fused, not at all; the weight is one more: |fl(sum) - sum| <= (n + 4) u sum_i |g_i|, entry by
      entry in |x_ij| |a_ik| and so in any of our norms. sum_i |g_i| <= n bound: at both neighbours, at most
      2 n (n + 4) u bound.

    Where Laplace noise is charged in l1 and in l2 at once, the grid's g d in l1 covers its g sqrt(d) in l2: the
    bounds have |s|_2 / |s|_1 >= 1 / sqrt(2 J), and d = J K >= 2 J. Where K = 1, a residual is one number, of one
    size in every norm, so that |s|_2 / |s|_1 >= 1 / sqrt(J) = 1 / sqrt(d).
    """
    return 1 + 4 * (n + 4) ** 2 * UNIT_ROUNDOFF


def numpy_sums(query: Gradient, rows: Block) -> Sums:
    """Return the sums by NumPy, over all records at once. a_i is the residual of record i, shrunk to its bound.

    A caller that sums in another way (tacit.run.deploy may pass one to every agent) must keep to what the proofs above
    use: float64 throughout, each product rounded once or fused into its sum, in an order that no record decides; and a
    clip that is computed from the very numbers that are summed, before they are.
    """
    x, y, loss, bound = np.ascontiguousarray(rows.x, np.float64), rows.y, query.loss, query.record_bound
    x_norm = bound.norm.of_rows(x)

    def sums(point: Array) -> Array:
        with blas_alone:
            score = x @ point
        residual = bound.shrink(loss.residual(score, y), x_norm)
        with blas_alone:
            return np.asarray(x.T @ residual)

    return sums


def evaluator(summing: Summing) -> Evaluator[Gradient]:
    """Return the evaluator that sums in this way: in float64, as `float64_allowance` takes for granted."""

    def prepare(query: Gradient, reader: Reader) -> Value:
        sums = summing(query, query.held(reader.whole()))

        def value(asked: Body) -> Array:
            return np.asarray(query.weight * sums(asked["point"]))

        return value

    return Evaluator(prepare, float64_allowance)


def _is_consistent(own: Declared) -> bool:
    """Tell whether each number of a declared bound belongs to a row norm, so that rows and residuals are held to it."""
    if math.isinf(own.row_norm) or (math.isinf(own.euclidean_row) and not math.isinf(own.euclidean)):
        return False
    same_key = own.norm is Norm.L2 and own.row_norm == own.euclidean_row
    return not same_key or own.value == own.euclidean
