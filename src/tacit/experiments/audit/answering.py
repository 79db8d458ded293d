"""How agents answer under audit. Every attack gets its views here, and nothing else knows what an agent is made of.

To attack another kind of agent under the same specs is one more `Answering`, chosen in `answering`: a batch that takes
lanes of agents, puts each behind what it deploys, and has the same rounds as every engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tacit.admm.agent import Agent
from tacit.admm.invert import invert
from tacit.admm.messages import Broadcast, Local
from tacit.engine.batch import ENGINES, Batch
from tacit.engine.gradients import Lane
from tacit.experiments.spec import Spec
from tacit.types import Array


@dataclass(frozen=True)
class Answering:
    """`batch` makes what answers for lanes of agents, one lane a run.

    `keyed`: noise is a function of an agent's key and the round, so two agents of one key have the same noise.
    """

    batch: Callable[[Sequence[Lane], tuple[int, int]], Batch]
    keyed: bool


@dataclass(frozen=True, eq=False)
class Question:
    """What an agent carries into a round, and what it is asked."""

    own: Local
    msg: Broadcast


def answering(spec: Spec) -> Answering:
    """Simulated agents, on the engine that trains them."""
    return Answering(lambda lanes, shape: ENGINES[spec.run.engine](lanes, shape, spec.run.device), keyed=True)


def views(how: Answering, agents: Sequence[Agent], questions: Sequence[Question]) -> Array:
    """The noisy gradients that a server computes from the replies, (agents, questions, J, K).

    The agents differ in their keys alone. Every question is asked from the state that it states: what an agent
    carries follows from releases, and the claim of a release holds in every state.
    """
    first, shape = agents[0], questions[0].own.z.shape
    batch = how.batch([[agent] for agent in agents], (shape[0], shape[1]))
    out = np.empty((len(agents), len(questions), *shape))
    for k, asked in enumerate(questions):
        start = {"z": asked.own.z[None], "dual": asked.own.dual[None], "rho": np.array([asked.own.rho])}
        for r in range(len(agents)):
            batch.load(r, start)
        batch.exchange_all([asked.msg] * len(agents))
        z = np.stack([batch.save(r)["z"][0] for r in range(len(agents))])
        out[:, k] = invert(first.method, first.caught_up(asked.own, asked.msg), asked.msg, z)
    return out


def answer(agent: Agent, question: Question) -> tuple[Array, float]:
    """What the agent would release without noise, and the scale of its noise."""
    own, msg = agent.caught_up(question.own, question.msg), question.msg
    gradient, _ = agent.in_double().gradient(agent.method.rule.point(own, msg), msg.w)
    _, _, trace = agent.respond(question.own, msg)
    return gradient, trace.scale


def drawn(agent: Agent, draws: int, seed: int, number: int) -> list[Agent]:
    """The agent once for every draw, under the key of agent `number` in a run of that draw's own seed."""
    return [replace(agent, key=((seed << 32) + n, number)) for n in range(draws)]
