"""How good a model is, on the records of a federation: each rank looks at those that it holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tacit.engine import evaluate
from tacit.engine.evaluate import PIECE, Measured, loss_and_errors
from tacit.run import ranks
from tacit.run.build import Setup
from tacit.types import Array, Federation, Shard


def losses(w: Array, setup: Setup, federation: Federation) -> list[float]:
    """Return the sum of the losses of each agent's records."""
    if not ranks.is_spread(federation):
        return own_losses(w, setup, federation)
    own = ranks.lead()
    r = next(r for r, known in enumerate(own.setups) if known is setup)
    with own.over(federation, "losses", run=r, shape=w.shape, kind=w.dtype.str):
        own.team.spread(w, w.dtype.str, w.shape)
        found = own.team.collect(np.array(own_losses(w, setup, federation)))
    total: list[float] = np.concatenate(found).tolist()
    return total


def own_losses(w: Array, setup: Setup, federation: Federation) -> list[float]:
    """Return the sum of the losses of each agent that is here."""
    return [loss_and_errors(w, shard, setup.problem.loss)[0] for shard in federation.shards if shard.here]


def measures(w: Array, federation: Federation) -> Measured:
    """Return what a model is measured by on the test records; ranks share them out."""
    if not ranks.is_spread(federation) or len(federation.test) <= PIECE:
        return evaluate.measures(w, federation.test, federation.target)
    _deal_test(ranks.lead(), federation)
    return evaluate.measures(w, federation.test, federation.target, _errors(federation), _scores(federation))


def _deal_test(own: ranks.Lead, federation: Federation) -> None:
    """Send every rank its pieces of the test records, once."""
    if federation in own.dealt:
        return
    test, size = federation.test, own.team.size
    cuts = [PIECE * (n * -(-len(test) // PIECE) // size) for n in range(size)]
    shares = [range(a, min(b, len(test))) for a, b in zip(cuts, [*cuts[1:], len(test)], strict=True)]
    sizes, kinds = list(map(len, shares)), [test.x.dtype.str, test.y.dtype.str]
    with own.over(federation, "test", sizes=sizes, kinds=kinds, features=federation.n_features):
        for rank, rows in enumerate(shares[1:], 1):
            own.team.send(test.x[rows.start : rows.stop], rank)
            own.team.send(test.y[rows.start : rows.stop], rank)
    own.dealt[federation] = shares


def _ask_test(what: str, w: Array, federation: Federation, tell: Callable[[Array, Shard], Any]) -> list[Array]:
    own = ranks.lead()
    first = own.dealt[federation][0]
    with own.over(federation, "tested", what=what, shape=w.shape, kind=w.dtype.str):
        own.team.spread(w, w.dtype.str, w.shape)
        mine = tell(w, federation.test.rows(slice(first.start, first.stop)))
        return own.team.collect(np.atleast_1d(np.asarray(mine)))


def _errors(federation: Federation) -> Callable[[Array, Shard], int]:
    return lambda w, _test: sum(int(own[0]) for own in _ask_test("errors", w, federation, evaluate.count_errors))


def _scores(federation: Federation) -> Callable[[Array, Shard], Array]:
    return lambda w, _test: np.concatenate(_ask_test("scores", w, federation, evaluate.column))
