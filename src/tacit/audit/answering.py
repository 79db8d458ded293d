"""How agents answer an attack, simulated or deployed, and what a server sees of a whole run.

Every attack on the ADMM family gets its views here.

    simulated   agents answer on the engine that trains them
    exact       agents answer as deployed: behind gate, ledger and noise of the operating system (tacit.agent)
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tacit.admm.agent import Agent
from tacit.admm.messages import Broadcast, Local, Replies
from tacit.admm.rule import invert
from tacit.agent.agent import DeployedAgent
from tacit.agent.cover import Alone
from tacit.engine.registry import ENGINES, Agents, Engine
from tacit.privacy.ledger import Ledger
from tacit.rounds import Trace, rounds
from tacit.run import deploy
from tacit.run.asking import AskingEngine, Lane
from tacit.run.compose import asked_of
from tacit.run.deployment import allow_ledger_files, price
from tacit.run.setup import Setup
from tacit.run.spec import Spec
from tacit.schedule import Schedule
from tacit.types import Array, Federation, Shard


@dataclass(frozen=True)
class Penalties:
    """A schedule with the penalty of every round that an attack asks; other rounds have the first penalty."""

    given: Mapping[int, float]
    summable: bool = False

    def __call__(self, t: int) -> float:
        return self.given.get(t, next(iter(self.given.values())))


@dataclass(frozen=True)
class Answering:
    """How agents answer: `batch` makes an engine for lanes of agents (a lane is a run), a penalty and some rounds.

    `keyed`: noise is a function of an agent's key and the round, so two agents with one key have the same noise.
    """

    batch: Callable[[Sequence[Agents], tuple[int, int], Schedule, int], AbstractContextManager[Engine]]
    keyed: bool


@dataclass(frozen=True, eq=False)
class Situation:
    """The state that an agent carries into a round, and the question that the agent gets."""

    own: Local
    msg: Broadcast


def answering(spec: Spec) -> Answering:
    """Return how the agents of the spec answer: simulated or deployed."""
    if deploy.wanted(spec):
        return Answering(lambda lanes, shape, _rho, rounds: _deployed(spec, lanes, shape, rounds), keyed=False)
    own = spec.run
    return Answering(lambda lanes, shape, *_: nullcontext(ENGINES[own.engine](lanes, shape, own.device)), keyed=True)


@contextmanager
def _deployed(
    spec: Spec, lanes: Sequence[Agents], shape: tuple[int, int], rounds: int
) -> Iterator[Engine]:
    """Deploy every lane as its own run; an agent has one ledger for all lanes, which lasts as long as the attack.

    Lanes differ only in the keys of their agents, and a deployed agent has no key: all lanes share the queries.
    """
    first = lanes[0]
    deployment = asked_of(first, shape, rounds)
    queries = [deploy.queries_of(own, agent.shard) for own, agent in zip(deployment.agreements, first, strict=True)]
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None  # every release is synced, and nobody reads it later
    allow_ledger_files(len(first))
    with tempfile.TemporaryDirectory(dir=memory) as folder, ExitStack() as open_files:
        files = [Path(folder) / f"{p}.ledger" for p in range(len(first))]
        ledgers = [open_files.enter_context(Ledger.open(file, price)) for file in files]
        runs = []
        for r in range(len(lanes)):
            agents = []
            for p, (own, records) in enumerate(zip(deployment.agreements, deployment.records, strict=True)):
                terms = replace(deployment.terms(spec, p, "an attack"), run=f"draw {r}")
                cover = Alone(own, records)
                agents.append(DeployedAgent(f"{p}", "canaries", queries[p], own, terms, cover, ledgers[p]))
            runs.append(Lane(f"draw {r}", "an attack", agents, deployment, deployment.program(False)))
        engine = AskingEngine(runs, threads=1, checked=False)
        open_files.callback(engine.close)
        yield engine


def views(how: Answering, lanes: Sequence[Agents], situations: Sequence[Situation]) -> Array:
    """Return the noisy gradients that a server computes from the replies, (lanes, agents, situations, J, K).

    A lane is a run, whose agents answer in every situation; lanes differ only in the keys of their agents. The state
    of a situation is loaded before its question: the state of an agent follows from its releases, and the claim for
    a release holds in every state.
    """
    first, shape = lanes[0], situations[0].own.z.shape
    rho = Penalties({asked.msg.t: asked.msg.rho for asked in situations})
    last = max(asked.msg.t for asked in situations)
    out = np.empty((len(lanes), len(first), len(situations), *shape))
    with how.batch(lanes, (shape[0], shape[1]), rho, last) as batch:
        for k, asked in enumerate(situations):
            z, dual = (np.stack([u] * len(first)) for u in (asked.own.z, asked.own.dual))
            before = batch.save(0)
            start = {**before, "z": z, "dual": dual, "rho": np.full_like(before["rho"], asked.own.rho)}
            for r in range(len(lanes)):
                batch.load(r, start)
            batch.exchange_all([asked.msg] * len(lanes))
            released = np.stack([batch.save(r)["z"] for r in range(len(lanes))])
            for p, agent in enumerate(first):
                own = agent.caught_up(asked.own, asked.msg)
                out[:, p, k] = invert(agent.variant.rule, own, asked.msg, released[:, p])
    return out


def answer(agent: Agent, situation: Situation) -> tuple[Array, float]:
    """Return the gradient that the agent would release without noise, and the scale of the noise."""
    own, msg = agent.caught_up(situation.own, situation.msg), situation.msg
    gradient, _ = agent.in_double().gradient(agent.variant.rule.at.of(own, msg), msg.w)
    return gradient, _traced(agent, situation).scale


def _traced(agent: Agent, situation: Situation) -> Trace:
    """Return what a simulated answer tells of itself. The noise is not looked at, so that any seed will do."""
    return replace(agent, key=(0, 0)).respond(situation.own, situation.msg)[2]


def claimed_scale(agent: Agent, situation: Situation) -> float:
    """Return the scale that the claim needs: multiplier times sensitivity. Agents add what rounding may cost."""
    return agent.variant.mechanism.multiplier * _traced(agent, situation).sensitivity


def drawn(agents: Sequence[Agent], draws: int, seed: int) -> list[list[Agent]]:
    """Return one lane of the agents for every draw: each lane is a run with its own seed."""
    return [[replace(agent, key=((seed << 32) + n, p)) for p, agent in enumerate(agents)] for n in range(draws)]


@dataclass(frozen=True, eq=False)
class Seen:
    """One agent in one round: the state before the step, the question to the agent, and its noisy gradient."""

    agent: Agent
    own: Local
    msg: Broadcast
    gradient: Array

    @property
    def point(self) -> Array:
        """Return the point of the agent's gradient, which the server knows."""
        return self.agent.variant.rule.at.of(self.own, self.msg)


def observe(spec: Spec, setup: Setup, agents: Sequence[Agent]) -> Iterator[list[Seen]]:
    """Train with the agents as the spec simulates or deploys them; yield what a server sees of each round."""
    with answering(spec).batch([agents], setup.shape, setup.rho, spec.run.rounds) as engine:
        seen: list[Seen] = []

        def exchange(msgs: Sequence[Broadcast]) -> list[Replies]:
            before, replies, after = engine.save(0), engine.exchange_all(msgs), engine.save(0)
            rho, (msg,) = float(before["rho"].flat[0]), msgs
            seen.clear()
            for p, agent in enumerate(agents):
                own = agent.caught_up(Local(before["z"][p], before["dual"][p], rho), msg)
                seen.append(Seen(agent, own, msg, invert(agent.variant.rule, own, msg, after["z"][p])))
            return replies

        for _ in rounds([setup.server], [setup.server.start()], exchange):
            yield list(seen)


def thin(federation: Federation, records: int) -> Federation:
    """Keep at most `records` records, evenly from every agent: the epsilon of a run does not depend on their number."""
    share = records / federation.n_records
    if share >= 1:
        return federation

    def some(shard: Shard) -> Shard:
        kept = np.linspace(0, len(shard) - 1, max(1, round(len(shard) * share))).astype(int)
        return shard.rows(kept)

    return replace(federation, shards=tuple(map(some, federation.shards)))
