"""How far one record moves the gradient.

    sensitivity = weight * (1 if a record is present or absent, 2 if replaced) * sup_i |x_i a_i^T|

`weight` is the 1/I of the objective. The supremum comes from a RecordBound, one of

    Observed   the largest value among the records present: the paper's. It is read from the private
               data, so noise scaled by it carries no guarantee.
    Declared   a public constant: feature bounds or a row norm, times the bound of the residual. A residual beyond
               the bound that its loss declares is shortened to it, so that the constant holds for any loss.
    Clipped    every record's gradient is shrunk to norm C, and C is public.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from tacit.errors import DataError, IncompatibleError, SpecError
from tacit.problem.loss import Loss
from tacit.types import Array, Norm

ROOM = 1 - 1e-5  # what a record's gradient may be of its bound, so that float32 sums keep it too
ROUNDED = 1 + 5e-6  # what a computed residual may be of its bound: half of the room, far above float32's rounding


class Adjacency(enum.Enum):
    """Which data sets are neighbours; the value is how many records' gradients they differ by.

    ZERO_OUT      one record is present, or absent in its place: all others stay where they are, and so does the
                  public number of records I that divides the sum
    REPLACE_ONE   one record is another
    """

    ZERO_OUT = 1
    REPLACE_ONE = 2


class RecordBound(Protocol):
    """A bound on |x_i a_i^T| over records, and what is done to a_i so that it holds."""

    @property
    def norm(self) -> Norm: ...

    @property
    def public(self) -> bool:
        """Whether the bound is independent of the data."""

    def shrink(self, residual: Array, x_norm: Array) -> Array:
        """The residuals (n, K) that enter the gradient."""

    def bound(self, residual: Array, x_norm: Array) -> float:
        """The bound, given the residuals before shrinking and the row norms |x_i| (n,)."""

    def hold(self, x: Array) -> Array:
        """The records, changed where the bound would not hold; a deployed agent computes on the result."""


@dataclass(frozen=True)
class Observed:
    """max_i |x_i| |a_i| over the records present (the paper's, with eq. (11b))."""

    norm: Norm
    public: bool = False

    def shrink(self, residual: Array, x_norm: Array) -> Array:  # noqa: ARG002
        return residual

    def bound(self, residual: Array, x_norm: Array) -> float:
        return float((x_norm * self.norm.of_rows(residual)).max())

    def hold(self, x: Array) -> Array:
        return x


@dataclass(frozen=True)
class Declared:
    """A constant known in advance; records whose |x| exceeds `row_norm` are refused, longer residuals shortened.

    A true bound of the residual shortens none, and changes no bit: ROUNDED is for what float32 adds. Without a
    `row_norm` the constant bounds no gradient, and nothing is shortened.
    """

    norm: Norm
    value: float
    row_norm: float = math.inf
    euclidean: float = math.inf  # a bound in l2 as well, where `value` is in l1
    euclidean_row: float = math.inf  # the |x| in l2 that `euclidean` is for
    public: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.value < math.inf:
            raise IncompatibleError(
                f"the declared gradient bound is {self.value}: this loss has none. Use sensitivity 'clip'."
            )

    def shrink(self, residual: Array, x_norm: Array) -> Array:
        if x_norm.max(initial=0.0) > self.row_norm * (1 + 1e-6):
            raise DataError(
                f"a record has {self.norm.value} norm above the declared {self.row_norm:g}: "
                "rescale the rows, or declare wider bounds."
            )
        share = np.ones(len(residual))
        for norm, most in self.residual_bounds:
            share = np.minimum(share, most / np.maximum(norm.of_rows(residual), most))
        return np.asarray(residual * share.astype(residual.dtype)[:, None])

    @cached_property
    def residual_bounds(self) -> tuple[tuple[Norm, float], ...]:
        """The largest |a| there may be in each norm, from which `value` and `euclidean` were made."""
        made = {(self.norm, self.row_norm): self.value, (Norm.L2, self.euclidean_row): self.euclidean}
        return tuple((norm, ROOM * value / row * ROUNDED) for (norm, row), value in made.items() if row < math.inf)

    def bound(self, residual: Array, x_norm: Array) -> float:  # noqa: ARG002
        return self.value

    def hold(self, x: Array) -> Array:
        """The records; a row that is longer than declared, in either norm, is shortened to what was declared."""
        longest = ((self.norm, self.row_norm), (Norm.L2, self.euclidean_row))
        shares = [most / np.maximum(norm.of_rows(x), most) for norm, most in longest if most < math.inf]
        return np.asarray(x * np.min(shares, axis=0)[:, None]) if shares else x


@dataclass(frozen=True)
class Clipped:
    """Each record's gradient is scaled by min(1, C / (|x_i| |a_i|)): exact, and free for these losses.

    C is ROOM times the bound that is declared.
    """

    norm: Norm
    value: float
    public: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.value < math.inf:
            raise SpecError(f"the clipping norm must be positive and finite, got {self.value}.")

    def shrink(self, residual: Array, x_norm: Array) -> Array:
        size = x_norm * self.norm.of_rows(residual)
        return np.asarray(residual * (self.target / np.maximum(size, self.target))[:, None])

    @property
    def target(self) -> float:
        """C."""
        return self.value * ROOM

    def bound(self, residual: Array, x_norm: Array) -> float:  # noqa: ARG002
        return self.value

    def hold(self, x: Array) -> Array:
        return x


def from_feature_bounds(norm: Norm, bounds: tuple[float, float], n_features: int, loss: Loss) -> Declared:
    """The bound that features in [lo, hi] give: |x|_1 <= J m or |x|_2 <= sqrt(J) m, m = max(|lo|, |hi|)."""
    largest = max(map(abs, bounds))
    euclidean = largest * math.sqrt(n_features)
    return _declared(norm, largest * n_features if norm is Norm.L1 else euclidean, euclidean, loss)


def from_row_norm(norm: Norm, row_norm: float, loss: Loss) -> Declared:
    """The bound that |x_i| <= row_norm gives; |x|_2 <= |x|_1, so a bound in l1 is one in l2 too."""
    return _declared(norm, row_norm, row_norm, loss)


def from_row_norms(norm: Norm, in_l1: float, in_l2: float, loss: Loss) -> Declared:
    """The bound that |x_i|_1 <= in_l1 and |x_i|_2 <= in_l2 give together."""
    return _declared(norm, in_l1 if norm is Norm.L1 else in_l2, in_l2, loss)


def _declared(norm: Norm, row_norm: float, euclidean: float, loss: Loss) -> Declared:
    value, in_l2 = row_norm * loss.residual_bound(norm), euclidean * loss.residual_bound(Norm.L2)
    return Declared(norm, value / ROOM, row_norm, in_l2 / ROOM, euclidean)


def measured_norms(bounds: Iterable[RecordBound]) -> set[Norm]:
    """The norms that bounds are measured in; declared bounds are not measured."""
    return {bound.norm for bound in bounds if not isinstance(bound, Declared)}
