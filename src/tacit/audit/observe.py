"""What a server sees of a run: the noisy gradient of every agent in every round."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tacit.admm.agent import Agent
from tacit.admm.messages import Broadcast, Local, Replies
from tacit.admm.rule import invert
from tacit.audit.answering import answering
from tacit.rounds import rounds
from tacit.run.setup import Setup
from tacit.run.spec import Spec
from tacit.types import Array, Federation, Shard


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
