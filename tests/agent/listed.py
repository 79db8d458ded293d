"""An agent with a list of queries, over records that stop whoever reads them, and what a server asks it."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tacit.agent.agent import DeployedAgent
from tacit.agent.agreement import Agreement, Noise, NoisyQuery
from tacit.agent.cover import Alone, Masked
from tacit.agent.gate import Question
from tacit.errors import RefusalWarning, Refused, SpecError, Unfit
from tacit.privacy.exact import Law
from tacit.privacy.summed import InSum
from tacit.privacy.terms import Memory, Terms
from tacit.problem.loss import Softmax
from tacit.problem.sensitivity import Adjacency, Clipped
from tacit.query import gradient
from tacit.query.counts import Counts
from tacit.query.gradient import Gradient
from tacit.query.moments import Moments
from tacit.query.query import AgentQuery
from tacit.run import deploy
from tacit.run.deployment import Deployment, price
from tacit.types import Norm
from tests.conformance.query_samples import Table

N, SHAPE, DELTA, RUN = 24, (4, 3), 1e-6, "run 1"
GAUSSIAN = Noise(Law.GAUSSIAN, Norm.L2, 5.0)
GRADIENT = Gradient(SHAPE, Softmax(), Clipped(Norm.L2, 1.0), 1 / 60)
MOMENTS = Moments(SHAPE, 1.0, gram=1.0, cross=0.7, square=0.5)
SCORES = Counts(((0.0, 1.0), (0.0,), (-1.0, 2.0)), features=4)
CELLS = Counts(((0.0, 1.0), (0.0,)), columns=("c0", "c1"))
LIST = (
    NoisyQuery(GRADIENT, GAUSSIAN, 2), NoisyQuery(MOMENTS, GAUSSIAN, 1), NoisyQuery(SCORES, GAUSSIAN, 2),
    NoisyQuery(CELLS, GAUSSIAN, 1),
)  # fmt: skip
HONEST = {GRADIENT: {"point": np.full(SHAPE, 0.1)}, SCORES: {"model": np.full(SHAPE, 0.2)}, MOMENTS: {}, CELLS: {}}
PEERS, MORE = ("ann", "bob", "cid"), "dee"  # one agent more than a sum needs
ALONE, IN_SUM = (Agreement(LIST, Adjacency.ZERO_OUT, N, in_sum) for in_sum in (None, InSum(1, 2)))


class Touched(BaseException):
    """A record was read. No agent catches it, as it would an Exception."""


class Shut:
    """Records that stop whoever reads them while they are shut."""

    def __init__(self, records):
        self.records, self.shut = records, False

    def __len__(self):
        return len(self.records)

    def read(self, reads):
        if self.shut:
            raise Touched
        return self.records.read(reads)


def rows(seed=0, n=N):
    rng = np.random.default_rng(seed)
    cells = {"c0": rng.normal(size=n), "c1": rng.normal(size=n)}
    return Table(rng.normal(size=(n, 4)), rng.integers(3, size=n), cells, np.ones(n, bool))


def terms_of(agreement, n=N, **changed):
    own = Deployment((agreement,), (n,), SHAPE, None)
    scale = max(agreement.scale(k, n) for k in range(len(agreement.queries)))
    cap = price(tuple(agreement.events), DELTA)
    release, again = agreement.queries[0].release(agreement.adjacency), agreement.releases - agreement.rounds
    parts = {
        "run": RUN, "spec": own.digest, "rounds": agreement.rounds, "release": release,
        "adjacency": agreement.adjacency.name.lower(), "scale": scale, "dp_delta": DELTA, "epsilon": cap,
        "repetitions": again,
    }  # fmt: skip
    return Terms(**parts | changed)


def agent_of(agreement, store=None, masks=None, table=None, records=None, **changed):
    """The agent ann, over records that are shut from now on, and these records."""
    shut = Shut((rows() if table is None else table).records if records is None else records)
    compiled = gradient.evaluator(deploy.compiled_sums)
    asked = tuple(
        AgentQuery(one.query, shut, compiled if isinstance(one.query, Gradient) else one.query.evaluator)
        for one in agreement.queries
    )
    cover = Alone(agreement, len(shut)) if agreement.in_sum is None else Masked(agreement, masks)
    terms = terms_of(agreement, len(shut), **changed)
    made = DeployedAgent("ann", "ann 2024", asked, agreement, terms, cover, store or Memory())
    shut.shut = True
    return made, shut


def question(agent, t=1, **changed):
    """What an honest server asks, but for what is changed."""
    own = agent.agreement
    peers = () if own.in_sum is None else PEERS
    honest = HONEST.get(own.at(min(max(t, 1), own.rounds)).query, {}) if type(t) is int else {}
    parts = {"run": RUN, "agreed": agent.terms.spec, "t": t, "parameters": honest, "peers": peers}
    return Question(**parts | changed)


def answered(agent, shut, asked):
    shut.shut = False
    try:
        return agent.answer(asked).value
    finally:
        shut.shut = True


def refused(agent, asked, reason, error=(Unfit, SpecError)):
    """No record is read, nothing is on record, and the server is told one sentence without a cause."""
    before = spent(agent.store)
    with pytest.raises(error, match=reason):
        agent.answer(asked)
    with pytest.warns(RefusalWarning), pytest.raises(Refused, match=f"^agent ann: {Refused.public}$") as told:
        agent.answer_or_refuse(asked)
    assert told.value.__cause__ is told.value.__context__ is None
    assert spent(agent.store) == before


def spent(store):
    if isinstance(store, Memory):
        return Counter(release for _, release in store._answered.values())
    return store.history().spent.get("ann 2024", Counter())


def every(agent, shut):
    """The answer to every question of the list."""
    return {t: answered(agent, shut, question(agent, t)) for t in range(1, agent.agreement.rounds + 1)}
