"""diffprivlib's LogisticRegression: one minimiser of a perturbed objective, pure epsilon, by a curator.

With more than two classes the tool trains one model a class against the rest, and gives each epsilon / K.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import replace

import numpy as np

from benchmarks.peers.peer import Constants, Peer, Trained
from benchmarks.peers.task import Task


def train(task: Task, seed: int, constants: Constants) -> Trained:
    """One fit on records of norm one; no delta is spent, and none can be."""
    return _fit(task, seed, constants, longest=1.0)


def train_columns(task: Task, seed: int, constants: Constants) -> Trained:
    """One fit on plain columns; their intercept is one of them, so that the norm counts it."""
    return _fit(task.columns, seed, constants, task.columns.longest)


def _fit(task: Task, seed: int, constants: Constants, longest: float) -> Trained:
    from diffprivlib import BudgetAccountant
    from diffprivlib.models import LogisticRegression
    from sklearn.exceptions import ConvergenceWarning

    warnings.filterwarnings("ignore", category=DeprecationWarning, module="diffprivlib")
    warnings.filterwarnings("ignore", category=ConvergenceWarning)
    pooled, accountant = task.pooled, BudgetAccountant()
    start = time.perf_counter()
    model = LogisticRegression(
        epsilon=task.epsilon, data_norm=longest, C=constants["C"], fit_intercept=False,
        max_iter=int(constants["max_iter"]), random_state=seed, accountant=accountant,
    ).fit(pooled.x, pooled.y)  # fmt: skip
    seconds = time.perf_counter() - start
    score = model.decision_function(task.over.test.x)
    if score.ndim == 1:  # two classes: one score, of the second
        score = np.column_stack([-score, score])
    epsilon, delta = accountant.total()
    steps = f"{int(model.n_iter_.sum())} iterations of L-BFGS, {len(model.n_iter_)} model(s)"
    return Trained(score, seconds, float(epsilon), float(delta), steps)


PEER = Peer(
    "diffprivlib, LogisticRegression", "a curator, who holds all records", "one record, replaced",
    "diffprivlib, its BudgetAccountant", train,
    constants={"mnist": {"C": 0.001, "max_iter": 100}, "adult": {"C": 0.1, "max_iter": 100}},
    grid={"C": (0.0001, 0.001, 0.01, 0.03, 0.1, 0.3, 1.0), "max_iter": (100,)},
    packages=("diffprivlib", "scikit-learn"), note="MNIST: ten models, epsilon 0.1 each; delta is not used",
)  # fmt: skip

_GRID = {"C": (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0), "max_iter": (100,)}
FEATURES = replace(PEER, title="diffprivlib, LogisticRegression on tacit's features", constants={}, grid=_GRID, note="")
COLUMNS = replace(FEATURES, title="diffprivlib, LogisticRegression on plain columns", train=train_columns)
# of the figure at four budgets, on MNIST, where ten models share epsilon
AT_BUDGETS = replace(FEATURES, grid={"C": (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1), "max_iter": (100,)})
