"""scikit-learn's LogisticRegression without privacy: how good a linear model of these inputs can be at all."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np

from benchmarks.peers.peer import Constants, Peer, Trained
from benchmarks.peers.task import Task


def train(task: Task, seed: int, constants: Constants) -> Trained:  # noqa: ARG001  nothing is drawn
    """One fit by L-BFGS; the intercept is a feature."""
    from sklearn.linear_model import LogisticRegression

    pooled, start = task.pooled, time.perf_counter()
    model = LogisticRegression(C=constants["C"], fit_intercept=False, max_iter=int(constants["max_iter"]))
    model.fit(pooled.x.astype(np.float64), pooled.y)
    seconds = time.perf_counter() - start
    score = model.decision_function(task.over.test.x)
    steps = f"{int(model.n_iter_.sum())} iterations of L-BFGS"
    return Trained(np.column_stack([-score, score]), seconds, math.inf, 0.0, steps)


def train_columns(task: Task, seed: int, constants: Constants) -> Trained:
    """The same on plain columns."""
    return train(task.columns, seed, constants)


FEATURES = Peer(
    "logistic regression on tacit's features, no privacy", "a curator, who holds all records", "nobody", "nobody",
    train, constants={}, grid={"C": (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0), "max_iter": (1000,)},
    packages=("scikit-learn",), private=False,
)  # fmt: skip
COLUMNS = replace(FEATURES, title="logistic regression on plain columns, no privacy", train=train_columns)
