"""DP-EBM: interpret's differentially private explainable boosting machine, by a curator (Nori et al. 2021).

The tool bins every column privately and boosts one shape a column. It gets the bounds and the lists of values of the
schema, so that nothing is read from the records. The tool takes no missing cells: a missing value of a list is a value
of its own, and a missing number lies below all others.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.peers.peer import Constants, Peer, Trained
from benchmarks.peers.task import DELTA, Task
from tacit.types import Array, Federation

MISSING = -0.125  # of a number in [0, 1]: far enough to get a bin of its own


@dataclass(frozen=True, eq=False)
class Declared:
    """What the tool is told of the columns of a federation, and how records are given to the tool."""

    types: list[Any]  # "continuous", or the list of values
    bounds: dict[int, tuple[float, float]]  # of the continuous columns, by position
    over: Federation

    @classmethod
    def of(cls, over: Federation) -> Declared:
        types: list[Any] = []
        bounds: dict[int, tuple[float, float]] = {}
        for one in over.columns:
            size = one.stop - one.start
            if one.number:
                bounds[len(types)] = (MISSING if size > 1 else 0.0, 1.0)
                types.append("continuous")
            elif one.shares:
                types.append([str(k) for k in range(size + 1)])  # the last: none of them
            else:
                assert over.bounds is not None
                bounds |= {len(types) + k: over.bounds for k in range(size)}
                types += size * ["continuous"]
        return cls(types, bounds, over)

    def cells(self, x: Array) -> Array:
        """Records as a table of the tool: (n, columns) of numbers and texts."""
        found: list[Array] = []
        for one in self.over.columns:
            own = x[:, one.start : one.stop].astype(np.float64)
            if one.number:
                found.append(np.where(own[:, 1:].any(axis=1), MISSING, own[:, 0]))
            elif one.shares:
                found.append(np.where(own.any(axis=1), own.argmax(axis=1), own.shape[1]).astype(str))
            else:
                found += list(own.T)
        cells = np.empty((len(x), len(found)), object)
        for j, column in enumerate(found):
            cells[:, j] = column
        return cells


def train(task: Task, seed: int, constants: Constants) -> Trained:
    """One fit on the columns of the schema; `constants` are arguments of the tool."""
    from interpret.privacy import DPExplainableBoostingClassifier

    warnings.filterwarnings("ignore", message="Privacy violation: using a fixed random_state")  # as in every line
    assert task.plain is not None
    over, declared = task.plain, Declared.of(task.plain)
    x = declared.cells(np.concatenate([shard.x for shard in over.shards]))
    start = time.perf_counter()
    model = DPExplainableBoostingClassifier(
        feature_types=declared.types, privacy_bounds=declared.bounds, epsilon=task.epsilon, delta=DELTA,
        composition="gdp", random_state=seed, n_jobs=1, **constants,
    ).fit(x, task.pooled.y)  # fmt: skip
    seconds = time.perf_counter() - start
    score = model.decision_function(declared.cells(over.test.x))
    steps = f"{model.max_rounds} rounds of {len(declared.types)} columns"
    return Trained(np.column_stack([-score, score]), seconds, float(model.epsilon), float(model.delta), steps)


AS_IT_COMES = Peer(
    "DP-EBM of interpret, as it comes", "a curator, who holds all records", "one record, added or removed",
    "interpret, Gaussian DP", train, constants={}, grid={}, packages=("interpret-core",),
)  # fmt: skip
TUNED = replace(
    AS_IT_COMES, title="DP-EBM of interpret, tuned",
    grid={"learning_rate": (0.01, 0.03, 0.1, 0.3, 1.0), "max_rounds": (30, 100, 300)},
)  # fmt: skip
