"""Deployed agents over small data, and what their server asks them."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

import numpy as np

from tacit.admm.messages import Local
from tacit.guarded.agent import Guarded
from tacit.guarded.gate import Question
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


def agents(ledger=None, over=None, algorithm="objt", started=False, **values):
    """All agents of a small federation, as they are deployed."""
    over = federation() if over is None else over
    chosen = deploy.named(spec(ledger, algorithm, **values))
    return deploy.guarded(chosen, build.setup(chosen, over), over, ledger, started, ExitStack())


def with_records(over, shard):
    """The federation whose first agent has this shard; its size, which is public, stays."""
    return replace(over, shards=(shard, *over.shards[1:]), bounds=None)


def start(shape=SHAPE):
    return Local(np.zeros(shape), np.zeros(shape))


def ask(agent: Guarded, t=1, w=None, **changed):
    """The question that an honest server asks in round t, but for what is changed."""
    body = {"w": np.full(SHAPE, 0.1) if w is None else w, "rho": agent.half.rho(t)}
    parts = {"run": agent.terms.run, "spec": agent.terms.spec, "t": t, "body": body}
    return Question(**parts | changed)
