"""The area under the ROC curve, exactly."""

from __future__ import annotations

import numpy as np

from tacit.types import Array


def auc(score: Array, positive: Array) -> float | None:
    """P(score of a positive > score of a negative) + P(equal) / 2 over all pairs; None where a class has no record.

    By ranks: (R - n_1 (n_1 + 1) / 2) / (n_1 n_0), where R sums the ranks of the positives, equal scores sharing theirs.
    """
    _, place, count = np.unique(score, return_inverse=True, return_counts=True)
    rank = np.cumsum(count) - (count - 1) / 2  # 1 is the lowest
    n_1, n_0 = int(positive.sum()), int((~positive).sum())
    if not n_1 or not n_0:
        return None
    return float((rank[place][positive].sum() - n_1 * (n_1 + 1) / 2) / (n_1 * n_0))
