"""What a model takes the probability of each class to be, where its loss makes scores log-odds."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tacit.errors import IncompatibleError
from tacit.run.directory import RunDirectory
from tacit.run.model import Model
from tacit.types import Array

LOG_ODDS = "softmax"  # the loss under which the softmax of the scores is the model's probability of each class


def check_probabilities(model: Model, path: Path) -> None:
    """Refuse a model whose scores are no log-odds: one of numbers, or of another loss as the run at `path` says.

    A model.npz alone does not say its loss, and is taken to have that of the presets.
    """
    if model.target is not None:
        raise IncompatibleError("this model predicts a number, which has no probability: drop --proba.")
    loss = RunDirectory(path).spec().problem.loss if path.is_dir() else LOG_ODDS
    if loss != LOG_ODDS:
        raise IncompatibleError(
            f"the scores of the loss {loss} are no log-odds: train with problem.loss = {LOG_ODDS} for probabilities."
        )


def probabilities(scores: Array) -> Array:
    """Return exp(s_k) / sum_j exp(s_j) for scores (n, K), in float64: each row adds up to one."""
    shifted = scores.astype(np.float64) - scores.max(axis=1, keepdims=True)  # shift-invariant; keeps exp finite
    odds = np.exp(shifted)
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))
