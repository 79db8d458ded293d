"""Deployed agents over small data, and what their server asks them."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

import numpy as np

from tacit.agent.agent import DeployedAgent
from tacit.agent.gate import Question
from tacit.privacy.terms import Memory
from tacit.query.query import AgentQuery, Evaluator
from tacit.run import build, deploy
from tacit.run.presets import preset
from tests.conftest import federation

SHAPE = (4, 3)
EXACT = {"privacy.noise": "exact", "run.rounds": 6, "data.source": "synthetic", "data.agents": 3, "data.records": 60}
SOUND = preset("sound", "objt")
LINEARISED_AT_Z = {"algorithm.order": "wzd", "algorithm.linearize_at": "z"}


def spec(ledger=None, algorithm="objt", **values):
    kept = {"privacy.ledger": str(ledger)} if ledger else {}
    return preset("sound", algorithm).with_values(EXACT | kept | values)


def setup_of(over=None, algorithm="objt", **values):
    """The setup of the same run as that of `agents`."""
    return build.setup(deploy.named(spec(None, algorithm, **values)), federation() if over is None else over)


def agents(ledger=None, over=None, algorithm="objt", started=False, **values):
    """All agents of a small federation, as they are deployed."""
    over = federation() if over is None else over
    chosen = deploy.named(spec(ledger, algorithm, **values))
    return deploy.deployed(chosen, build.setup(chosen, over), over, ledger, started, ExitStack())


def with_records(over, shard):
    """The federation whose first agent has this shard; its size, which is public, stays."""
    return replace(over, shards=(shard, *over.shards[1:]), bounds=None)


def over_records(agent: DeployedAgent, shard, evaluator=None, store=None):
    """The agent with the same agreement over other records; `evaluator` computes its values."""
    queries = deploy.queries_of(agent.agreement, shard)
    if evaluator is not None:
        queries = tuple(replace(one, evaluator=evaluator) for one in queries)
    return replace(agent, queries=queries, store=Memory() if store is None else store)


def with_value(agent: DeployedAgent, change):
    """The agent whose values are change(value) in place of value; it joins its run again."""

    def changed(one: AgentQuery):
        prepare = one.evaluator.prepare
        return replace(one, evaluator=Evaluator(lambda *own: change(prepare(*own)), one.evaluator.allowance))

    return replace(agent, queries=tuple(changed(one) for one in agent.queries))


def value_at(agent: DeployedAgent, point):
    """What the records of the agent say at a point, before noise."""
    with np.errstate(all="ignore"):  # as an answer has it
        return agent.queries[0].value({"point": point})


def ask(agent: DeployedAgent, t=1, w=None, **changed):
    """The question that an honest server asks as number t, but for what is changed."""
    parameters = {"point": np.full(SHAPE, 0.1) if w is None else w}
    parts = {"run": agent.terms.run, "agreed": agent.terms.spec, "t": t, "parameters": parameters}
    return Question(**parts | changed)
