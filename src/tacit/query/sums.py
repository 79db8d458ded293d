"""sum_i x_i a_i^T over the records of one agent, in float64: the evaluator of the gradient query in NumPy.

    a_i = the residual of record i, shrunk to its bound

Whoever sums in another way (tacit.run.deploy may pass one to every half) must keep to what the proofs of
tacit.query.gradient use: float64 throughout, each product rounded once or fused into its sum, in an order that no
record decides; and a clip that is computed from the very numbers that are summed, before they are.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tacit.query.records import Block
from tacit.types import Array

if TYPE_CHECKING:
    from tacit.query.gradient import Gradient

Sums: TypeAlias = Callable[[Array], Array]  # a point (J, K) -> sum_i x_i a_i^T; threads may ask at the same time
Summing: TypeAlias = "Callable[[Gradient, Block], Sums]"  # the sums over these records, for which the bound is true

blas_alone = threading.Lock()  # BLAS uses all cores for one product: two agents at a time would slow each other down


def numpy_sums(query: Gradient, rows: Block) -> Sums:
    """Return the sums by NumPy, over all records at once."""
    x, y, loss, bound = np.ascontiguousarray(rows.x, np.float64), rows.y, query.loss, query.record_bound
    x_norm = bound.norm.of_rows(x)

    def sums(point: Array) -> Array:
        with blas_alone:
            score = x @ point
        residual = bound.shrink(loss.residual(score, y), x_norm)
        with blas_alone:
            return np.asarray(x.T @ residual)

    return sums
