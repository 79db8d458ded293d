"""One round, worst-case neighbours, many draws: the exact likelihood ratio against the code that answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tacit.admm.agent import Agent
from tacit.admm.invert import invert
from tacit.admm.messages import Broadcast, Local
from tacit.experiments.audit.finding import Finding, claimed, weigh
from tacit.experiments.audit.neighbours import Neighbours, neighbours
from tacit.experiments.spec import Spec
from tacit.types import Array

DRAWS = 4000  # a side


def one_round(spec: Spec) -> Spec:
    """The spec with all of its budget spent in one round: at T rounds one release is worth too little to be seen."""
    return spec.with_values({"run.rounds": 1})


def name_of(spec: Spec) -> str:
    """objt, gaussian, clip, zero out."""
    p = spec.privacy
    words = (spec.algorithm.name, p.mechanism, p.sensitivity, p.adjacency.replace("_", " "))
    return ", ".join(words)


def audit(spec: Spec, draws: int = DRAWS, seed: int = 0, confidence: float = 0.95) -> Finding:
    """The spec's mechanism against its claim."""
    spec = one_round(spec.checked())
    pair = neighbours(spec)
    claim = claimed(spec, pair.present.method, rounds=1)
    return weigh("mechanism", name_of(spec), claim, likelihood_attack(pair, draws, seed), confidence)


def likelihood_attack(pair: Neighbours, draws: int, seed: int) -> tuple[Array, Array]:
    """(scores with the record, without): ln p(view | with) - ln p(view | without)."""
    center, scale = zip(*(answer(agent, pair) for agent in (pair.present, pair.absent)), strict=True)
    with_it, without = (
        pair.score(views(agent, pair.own, [pair.msg], draws, (seed, side))[:, 0], center, scale)
        for side, agent in enumerate((pair.present, pair.absent))
    )
    return with_it, without


def answer(agent: Agent, pair: Neighbours) -> tuple[Array, float]:
    """What the agent would release without noise, and the scale of its noise."""
    gradient, _ = agent.gradient(agent.method.rule.point(pair.own, pair.msg), pair.msg.w)
    _, _, trace = agent.respond(pair.own, pair.msg)
    return gradient, trace.scale


def views(agent: Agent, own: Local, msgs: Sequence[Broadcast], draws: int, stream: tuple[int, int]) -> Array:
    """What a server computes from the replies to msgs, (draws, rounds, J, K); every draw has its own seed."""
    seed, side = stream
    out = np.empty((draws, len(msgs), *own.z.shape))
    for n in range(draws):
        one, carried = replace(agent, key=((seed << 32) + n, side)), own
        for k, msg in enumerate(msgs):
            before = one.caught_up(carried, msg)
            carried, reply, _ = one.respond(carried, msg)
            out[n, k] = invert(one.method, before, msg, reply.z)
    return out

