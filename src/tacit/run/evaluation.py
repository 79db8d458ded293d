"""How good a model is, on the records of a federation: each rank looks at those that it holds."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from tacit.engine import evaluate
from tacit.engine.evaluate import PIECE, PLAIN, Measured, loss_and_errors, rmse_and_r2
from tacit.measures import ERROR, RMSE
from tacit.problem.loss import Loss, predicted
from tacit.run import ranks
from tacit.run.setup import Setup
from tacit.types import Array, Federation, Shard, blocks

CLASSES = 100  # at most in a table of classes by classes: result.json stays small
AGENTS = 1000  # at most that are listed by name, for the same reason
LONG = ("test", "agent_records")  # keys of `breakdown`, which the records of many runs leave out
BINS = 10  # that the range of a number is cut into


def losses(w: Array, setup: Setup, federation: Federation) -> list[float]:
    """Return the sum of the losses of each agent's records."""
    if not ranks.is_spread(federation):
        return own_losses(w, setup, federation)
    own = ranks.lead()
    r = next(r for r, known in enumerate(own.setups) if known is setup)
    with own.over(federation, "losses", run=r):
        own.team.spread(w)
        found: list[float] = own.team.collect(np.array(own_losses(w, setup, federation))).tolist()
    return found


def own_losses(w: Array, setup: Setup, federation: Federation) -> list[float]:
    """Return the sum of the losses of each agent that is here."""
    return [loss_and_errors(w, shard, setup.problem.loss)[0] for shard in federation.shards if shard.here]


def measures(w: Array, federation: Federation, loss: Loss = PLAIN) -> Measured:
    """Return what a model is measured by on the test records; ranks share them out."""
    if not ranks.is_spread(federation) or len(federation.test) <= PIECE:
        return evaluate.measures(w, federation.test, federation.target, loss=loss)
    _deal_test(ranks.lead(), federation)
    return evaluate.measures(w, federation.test, federation.target, _errors(federation), _scores(federation), loss)


def _deal_test(own: ranks.Lead, federation: Federation) -> None:
    """Send every rank its pieces of the test records, once."""
    if federation in own.dealt:
        return
    test, size = federation.test, own.team.size
    cuts = [PIECE * (n * -(-len(test) // PIECE) // size) for n in range(size)]
    shares = [range(a, min(b, len(test))) for a, b in zip(cuts, [*cuts[1:], len(test)], strict=True)]
    with own.over(federation, "test", sizes=[*map(len, shares)]):
        own.team.deal(len(shares[0]), {"x": test.x, "y": test.y})
    own.dealt[federation] = len(shares[0])


def _ask_test(what: str, w: Array, federation: Federation, tell: Callable[[Array, Shard], Any]) -> Array:
    own = ranks.lead()
    with own.over(federation, "tested", what=what):
        own.team.spread(w)
        mine = tell(w, federation.test.rows(slice(0, own.dealt[federation])))
        return own.team.collect(np.atleast_1d(np.asarray(mine)))


def _errors(federation: Federation) -> Callable[[Array, Shard], int]:
    return lambda w, _test: int(_ask_test("errors", w, federation, evaluate.count_errors).sum())


def _scores(federation: Federation) -> Callable[[Array, Shard], Array]:
    return lambda w, _test: _ask_test("scores", w, federation, evaluate.column)


# --- at the end of a run: the test records taken apart


def breakdown(w: Array, federation: Federation, loss: Loss = PLAIN) -> dict[str, Any]:
    """Return what result.json says of agents and test records beside the measures; the guarantee covers none of it.

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
        score = _all_scores(w, federation.test.x)
        score = score if federation.target is None else predicted(loss, score)
        return told | {"test": {
            "records": len(federation.test),
            "confusion": _confusion(score, federation),
            "agents": _agents(score, federation) if listed else None,
        }}  # fmt: skip


def _all_scores(w: Array, x: Array) -> Array:
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
