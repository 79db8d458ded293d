"""Neighbours: two data sets that differ in one record, the canary, and questions where it moves the gradient most."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tacit.admm.agent import Agent, Variant
from tacit.admm.messages import Broadcast, Local
from tacit.admm.rule import Trust
from tacit.audit import sum_faults
from tacit.audit.answering import Situation
from tacit.audit.canary import OTHERS, planted
from tacit.errors import IncompatibleError
from tacit.privacy.lower_bounds import gaussian_scores, laplace_scores
from tacit.privacy.mechanism import Laplace
from tacit.problem.domain import Ball, Box, Everywhere
from tacit.problem.sensitivity import Adjacency
from tacit.run import build
from tacit.run.spec import Spec
from tacit.types import Array, Shard

_FAR = 40.0  # in scales of the noise: no draw reaches so far
_SURE = 60.0  # the difference of scores at which softmax is certain

Score = Callable[[Array, tuple[Array, Array], tuple[float, float]], Array]


@dataclass(frozen=True, eq=False)
class Neighbours:
    """One agent with the canary, the same agent without it (or with its opposite), and the questions to both.

    Each of `questions` is for one round, and steers the canary. `later` is for the next round, at the zero model,
    where the canary moves the gradient another way. `other` is an agent without a canary, which gets all questions.
    """

    present: Agent
    absent: Agent
    other: Agent
    questions: tuple[Situation, ...]
    later: Situation
    score: Score

    @property
    def sides(self) -> tuple[Agent, Agent]:
        return self.present, self.absent

    def broken(self, break_: Callable[[Variant], Variant]) -> Neighbours:
        """Return the neighbours with the variant of every agent changed by `break_`."""
        present, absent, other = (
            replace(agent, variant=break_(agent.variant)) for agent in (self.present, self.absent, self.other)
        )
        return replace(self, present=present, absent=absent, other=other)


def neighbours(spec: Spec) -> Neighbours:
    """Return the neighbours of the spec in a tiny federation; both sides have weight 1/I, because I is public."""
    canary, tiny = planted(spec)
    if spec.privacy.trust == "sum":  # which takes a few agents more
        first, other = tiny.shards
        tiny = replace(tiny, shards=(first, *(other for _ in sum_faults.NAMES[1:])), agents=sum_faults.NAMES)
    made = build.admm_setup(spec, tiny)
    if not isinstance(made.problem.domain, Everywhere | Box | Ball):
        raise IncompatibleError(
            "the attack reads the noisy gradient off a step that no set cuts short, and finds such steps in everywhere"
            ", box (with a radius) and ball (around zero): a set costs no privacy, so audit without problem.domain."
        )
    whole = made.agents[0].shard
    replaced = made.agents[0].variant.adjacency is Adjacency.REPLACE_ONE
    present, absent = (
        replace(made.agents[0], shard=Shard(whole.x[rows], whole.y[rows]))
        for rows in (slice(0, OTHERS + 1), [*range(OTHERS), OTHERS + 1] if replaced else slice(0, OTHERS))
    )
    push = float(whole.x[OTHERS].astype(np.float64) @ (canary.steer[:, 1] - canary.steer[:, 0]))
    steer = _inside(present, canary.steer * (_SURE / push))

    def asked(u: Array, t: int) -> Situation:
        return Situation(Local(u, np.zeros_like(u)), Broadcast(t, u, _penalty(present, u, made.rho(t), t)))

    rounds = range(1, spec.run.rounds + 1)
    questions, later = tuple(asked(steer, t) for t in rounds), asked(np.zeros_like(steer), spec.run.rounds + 1)
    return Neighbours(present, absent, made.agents[1], questions, later, score_of(present.variant))


def score_of(variant: Variant) -> Score:
    """Return the likelihood ratio for the noise of a variant."""
    return laplace_scores if isinstance(variant.mechanism, Laplace) else gaussian_scores


def _inside(agent: Agent, u: Array) -> Array:
    """Return the steering model, well inside W where W is bounded, in numbers that float32 holds."""
    domain = agent.problem.domain
    u = u if domain.contains(2 * u) else domain.project(2 * u) / 2
    return u.astype(np.float32).astype(np.float64)


def _penalty(agent: Agent, u: Array, rho: float, t: int) -> float:
    """Return rho, or the least larger penalty at which neither W nor the trust region hides noise, as a server may."""
    gradient, bound = agent.gradient(u, u)
    step = float(np.linalg.norm(gradient)) + _FAR * math.sqrt(u.size) * agent.calibration * bound
    domain, rule = agent.problem.domain, agent.variant.rule
    room = domain.radius / 2 if isinstance(domain, Box | Ball) else math.inf
    if isinstance(rule, Trust):
        room = min(room, rule.radius(t))
    return max(rho, step / room)
