"""Two data sets that differ in one record, and a question under which that record moves the gradient furthest.

The record (the canary) is the largest the spec allows. Two of its features steer it: weights (-b, b) on one push its
scores to class 1, and (b, -b) on the other to class 0. Labelled with the other class each time, |h - e_y| is near its
bound. The opposite canary differs in those two features and in its label alone, so its gradient is nearly minus the
first one's: under replace-one the two together are the worst case.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tacit.admm.agent import Agent, Method
from tacit.admm.messages import Broadcast, Local
from tacit.admm.rule import Trust
from tacit.data.transform import rescale_rows
from tacit.experiments import build
from tacit.experiments.spec import Spec
from tacit.privacy.audit import gaussian_scores, laplace_scores
from tacit.privacy.mechanism import Laplace
from tacit.problem.domain import Ball, Box
from tacit.problem.sensitivity import Adjacency
from tacit.types import Array, Federation, Shard

FEATURES, CLASSES, OTHERS = 5, 3, 3  # others: records of an agent beside the canary
_FAR = 40.0  # scales of noise that no draw reaches
_SURE = 30.0  # difference of scores at which softmax is certain


Score = Callable[[Array, tuple[Array, Array], tuple[float, float]], Array]


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The same agent with the canary and without it (or with its opposite), and what it is asked."""

    present: Agent
    absent: Agent
    own: Local
    msg: Broadcast
    score: Score


def neighbours(spec: Spec) -> Neighbours:
    """A tiny federation under the spec's method; the number of records is public, so both sides keep its weight."""
    over = _federation(spec)
    made = build.setup(spec, over)
    whole = made.agents[0].shard
    canary, opposite = slice(0, OTHERS + 1), [*range(OTHERS), OTHERS + 1]
    replaced = made.agents[0].method.adjacency is Adjacency.REPLACE_ONE
    present, absent = (
        replace(made.agents[0], shard=Shard(whole.x[rows], whole.y[rows], dtype=np.float64))
        for rows in (canary, opposite if replaced else slice(0, OTHERS))
    )
    steer = _steer(present, _SURE / float(whole.x[OTHERS, -2]))
    own = Local(steer, np.zeros_like(steer))
    msg = Broadcast(1, steer, _penalty(present, steer, made.rho(1)))
    return Neighbours(present, absent, own, msg, score_of(present.method))


def score_of(method: Method) -> Score:
    """The likelihood ratio for the noise of a method."""
    return laplace_scores if isinstance(method.mechanism, Laplace) else gaussian_scores


def _federation(spec: Spec) -> Federation:
    """Agent 0: small records, then the canary and its opposite (OTHERS and OTHERS + 1); agent 1: small records."""
    d = spec.data
    low, high = (0.0, 1.0) if d.low is None or d.high is None else (d.low, d.high)
    largest = high if abs(high) >= abs(low) else low
    x = np.zeros((2 * OTHERS + 2, FEATURES))
    x[:, :-3] = largest / 2 * np.random.default_rng(0).random((len(x), FEATURES - 3))
    # nearly all on a feature of its own, or a corner of the box where that alone is long enough
    sparse = d.row_norm != "none" or spec.privacy.sensitivity == "clip"
    canary = np.array([largest * (not sparse)] * (FEATURES - 3) + [largest, largest * (0.1 if sparse else 1), 0.0])
    x[OTHERS : OTHERS + 2] = canary, [*canary[:-2], *canary[:-3:-1]]
    if d.row_norm == "none":
        x = np.clip(x, low, high)
    else:
        x[OTHERS : OTHERS + 2] *= 10 * d.row_bound / abs(largest)  # too long: rescaled to what is allowed
    y = np.array([*range(OTHERS), 0, 1, *range(OTHERS)]) % CLASSES
    empty = Shard(np.zeros((0, FEATURES)), np.zeros(0, dtype=np.int64))
    cut = OTHERS + 2
    bounds = (low, high) if d.row_norm == "none" else None
    made = Federation((Shard(x[:cut], y[:cut]), Shard(x[cut:], y[cut:])), empty, CLASSES, "canary", bounds=bounds)
    return made if d.row_norm == "none" else rescale_rows(made, d.row_norm, d.row_bound, d.row_mode)


def _steer(agent: Agent, b: float) -> Array:
    """The model that makes the canary certain and wrong, well inside W where W is bounded."""
    u = np.zeros((FEATURES, CLASSES))
    u[-2, :2], u[-1, :2] = (-b, b), (b, -b)
    return u if agent.problem.domain.contains(2 * u) else agent.problem.domain.project(2 * u) / 2


def _penalty(agent: Agent, steer: Array, rho: float) -> float:
    """The run's own rho, or the least at which neither W nor the trust region hides noise: a server may choose it."""
    gradient, bound = agent.gradient(steer, steer)
    step = float(np.linalg.norm(gradient)) + _FAR * math.sqrt(steer.size) * agent.calibration * bound
    domain, rule = agent.problem.domain, agent.method.rule
    room = domain.radius / 2 if isinstance(domain, Box | Ball) else math.inf
    if isinstance(rule, Trust):
        room = min(room, rule.radius(1))
    return max(rho, step / room)
