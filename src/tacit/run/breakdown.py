"""The test records of a finished run taken apart: which class is taken for which, and how good the model is by agent.

These are measurements on the data as they are, so the guarantee of the run does not cover them.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from tacit.engine.evaluate import rmse_and_r2
from tacit.measures import ERROR, RMSE
from tacit.types import Array, Federation, blocks

CLASSES = 100  # at most in a table of classes by classes: result.json stays small
AGENTS = 1000  # at most that are listed by name, for the same reason
BINS = 10  # that the range of a number is cut into


def breakdown(w: Array, federation: Federation) -> dict[str, Any]:
    """Return what result.json says of agents and test records beside the measures.

    agent_records    [name, number of training records] of each agent
    test.records     number of test records
    test.confusion   `counts`, a row for each true class and a column for each predicted one. Of a number, the classes
                     are equal parts of its declared range
    test.agents      name, number of test records, and test error (or RMSE) of each agent that has test records
    """
    listed = federation.n_agents <= AGENTS
    counts = [[name, len(shard)] for name, shard in zip(federation.agents, federation.shards, strict=True)]
    told: dict[str, Any] = {"agent_records": counts if listed else None}
    if not len(federation.test):
        return told
    with np.errstate(all="ignore"):  # no record decides whether a run warns or ends
        score = _scores(w, federation.test.x)
        return told | {"test": {
            "records": len(federation.test),
            "confusion": _confusion(score, federation),
            "agents": _agents(score, federation) if listed else None,
        }}  # fmt: skip


def _scores(w: Array, x: Array) -> Array:
    return np.concatenate([x[some] @ w.astype(x.dtype) for some in blocks(len(x))])


def _confusion(score: Array, federation: Federation) -> dict[str, Any] | None:
    """Return the counts with the names of their rows and columns; None where there are too many or no finite scores."""
    target, y = federation.target, federation.test.y
    if not np.isfinite(score).all() or federation.n_classes > CLASSES:
        return None
    if target is None:
        return {"classes": list(federation.classes), "counts": _counted(y, score.argmax(axis=1), federation.n_classes)}
    edges = target.lo + np.arange(BINS + 1) / BINS * (target.hi - target.lo)
    names = [f"{low:.4g} to {high:.4g}" for low, high in pairwise(edges)]
    return {"classes": names, "counts": _counted(_bins(y), _bins(score[:, 0]), BINS), "binned": True}


def _bins(scaled: Array) -> Array:
    """Return the part of its range, 0 .. BINS - 1, that each number in [-1, 1] lies in."""
    return np.asarray((BINS * (scaled.clip(-1, 1) + 1) / 2).astype(np.int64).clip(0, BINS - 1))


def _counted(true: Array, guessed: Array, n: int) -> list[list[int]]:
    pairs = np.bincount(n * true + guessed, minlength=n * n)
    return [list(map(int, row)) for row in pairs.reshape(n, n)]


def _agents(score: Array, federation: Federation) -> list[dict[str, Any]] | None:
    """Return the measure of each agent on its own test records; None where nobody knows whose they are."""
    owners, test, target = federation.test.owners, federation.test, federation.target
    if owners is None or not np.isfinite(score).all():
        return None
    found = []
    for p, name in enumerate(federation.agents):
        mine = owners == p
        n = int(mine.sum())
        if not n:
            continue
        if target is not None:
            own = {RMSE.key: rmse_and_r2(score[mine, 0].astype(np.float64), test.y[mine], target)[0]}
        else:
            own = {ERROR.key: int((score[mine].argmax(axis=1) != test.y[mine]).sum()) / n}
        found.append({"agent": name, "records": n, **own})
    return found or None
