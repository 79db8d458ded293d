"""Neighbours: two data sets that differ in one record, and questions where that record moves the gradient most.

The record (the canary) is the largest that the spec allows, and the model steers it: its scores are certain, and its
label is another class, so |h - e_y| is near its bound. The opposite canary has nearly the same features; it is steered
to the label of the canary and has the other label, so its gradient is nearly minus the gradient of the canary. Under
replace-one the two canaries together are the worst case.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tacit.admm.agent import Agent, Variant
from tacit.admm.messages import Broadcast, Local
from tacit.admm.rule import Trust
from tacit.audit.answering import Situation
from tacit.data.transform import rescale_rows
from tacit.privacy.lower_bounds import gaussian_scores, laplace_scores
from tacit.privacy.mechanism import Laplace
from tacit.problem.domain import Ball, Box
from tacit.problem.sensitivity import Adjacency
from tacit.run import build
from tacit.run.spec import Spec
from tacit.types import Array, Federation, Shard

CLASSES, OTHERS = 3, 3  # OTHERS: the number of records of an agent beside the canary
_FAR = 40.0  # in scales of the noise: no draw reaches so far
_SURE = 60.0  # the difference of scores at which softmax is certain
_TO_ONE, _TO_ZERO, _NOWHERE = (-1.0, 1.0, 0.0), (1.0, -1.0, 0.0), (0.0, 0.0, 0.0)

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


@dataclass(frozen=True, eq=False)
class Canary:
    """A canary x (J,) with label 0, and its opposite with label 1; `steer` (J, K) pushes each to the other class."""

    x: Array
    opposite: Array
    steer: Array


def neighbours(spec: Spec) -> Neighbours:
    """Return the neighbours of the spec in a tiny federation; both sides have weight 1/I, because I is public."""
    canary = _canary(spec)
    made = build.admm_setup(spec, _federation(spec, canary))
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


def _range(spec: Spec) -> tuple[float, float]:
    d = spec.data
    return (0.0, 1.0) if d.low is None or d.high is None else (d.low, d.high)


def _canary(spec: Spec) -> Canary:
    """Return the canary that reaches the bound of the spec, which depends on privacy.sensitivity.

    clip, row_norm   nearly all of x on a feature of its own, a little on one that steers: the bound is on |x|,
                     however many features there are, and a gradient on two entries is seen best.
    feature_bounds   the bound is J max|x_j|, or sqrt(J) max|x_j| in l2, and only a corner of the box reaches it. Noise
                     on few entries hides least, so J = 1: x a^T is two entries of full size. Under replace-one the
                     model must tell two records near that corner apart, which takes J = 2.
    otherwise        the scale is read from the data: a record far longer than all others, in five features, whose
                     noise shows the scale.
    """
    low, high = _range(spec)
    m = high if abs(high) >= abs(low) else low
    if spec.privacy.sensitivity == "feature_bounds" and spec.privacy.adjacency == "replace_one":
        near = m - math.copysign(min(0.2 * abs(m), 0.5 * (high - low)), m)
        between = (1 + near / m) / 2
        return Canary(np.array([m, near]), np.array([m, m]), np.array([np.multiply(between, _TO_ONE), _TO_ZERO]))
    if spec.privacy.sensitivity == "feature_bounds":
        return Canary(np.array([m]), np.array([m]), np.array([_TO_ONE]))
    sparse = spec.data.row_norm != "none" or spec.privacy.sensitivity == "clip"
    if sparse and spec.privacy.adjacency != "replace_one":
        return Canary(np.array([0.0, 0.0, m]), np.zeros(3), np.array([_NOWHERE, _NOWHERE, _TO_ONE]))
    body, tail = ([0.0, 0.0, m], 0.01 * m) if sparse else ([m, m, m], m)
    x, opposite = np.array([*body, tail, 0.0]), np.array([*body, 0.0, tail])
    return Canary(x, opposite, np.array([_NOWHERE] * 3 + [_TO_ONE, _TO_ZERO]))


def _federation(spec: Spec, canary: Canary) -> Federation:
    """Return two agents with OTHERS small records each; after these, the first has the canary and its opposite."""
    d, features = spec.data, len(canary.x)
    low, high = _range(spec)
    largest = float(np.abs(canary.x).max())
    x, used = np.zeros((2 * OTHERS + 2, features)), min(2, features)  # other records are zero in the canary's features
    x[:, :used] = np.sign(canary.x.sum()) * largest / 2 * np.random.default_rng(0).random((len(x), used))
    x[OTHERS : OTHERS + 2] = canary.x, canary.opposite
    if d.row_norm == "none":
        x = np.clip(x, low, high)
    else:
        x[OTHERS : OTHERS + 2] *= 10 * d.row_bound / largest  # too long: rescaled to the allowed norm below
    y = np.array([*range(OTHERS), 0, 1, *range(OTHERS)]) % CLASSES
    empty = Shard(np.zeros((0, features)), np.zeros(0, dtype=np.int64))
    cut = OTHERS + 2
    bounds = (low, high) if d.row_norm == "none" else None
    made = Federation((Shard(x[:cut], y[:cut]), Shard(x[cut:], y[cut:])), empty, CLASSES, "canary", bounds=bounds)
    return made if d.row_norm == "none" else rescale_rows(made, d.row_norm, d.row_bound, d.row_mode)


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
