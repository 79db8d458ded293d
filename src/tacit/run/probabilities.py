"""What a model takes the probability of each class to be, where its loss makes scores log-odds."""

from __future__ import annotations

import numpy as np

from tacit.errors import IncompatibleError
from tacit.types import Array, Target

LOG_ODDS = "softmax"  # the loss under which the softmax of the scores is the model's probability of each class


def check_probabilities(target: Target | None, loss: str) -> None:
    """Refuse a model whose scores are no log-odds: one of numbers, or of another loss."""
    if target is not None:
        raise IncompatibleError("this model predicts a number, which has no probability: predict it, without --proba.")
    if loss != LOG_ODDS:
        raise IncompatibleError(
            f"the scores of the loss {loss} are no log-odds: train with problem.loss = {LOG_ODDS} for probabilities."
        )


def probabilities(scores: Array) -> Array:
    """Return exp(s_k) / sum_j exp(s_j) for scores (n, K), in float64: each row adds up to one."""
    shifted = scores.astype(np.float64) - scores.max(axis=1, keepdims=True)  # shift-invariant; keeps exp finite
    odds = np.exp(shifted)
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))
