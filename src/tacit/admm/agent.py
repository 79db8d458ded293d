"""One agent's half of a round: Broadcast in, Reply out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter

import numpy as np

from tacit.admm.messages import Broadcast, Local, Order, Reply
from tacit.admm.rule import Perturbation, Rule
from tacit.admm.updates import ascent
from tacit.errors import IncompatibleError
from tacit.privacy.mechanism import Mechanism
from tacit.problem.objective import Problem
from tacit.problem.sensitivity import Adjacency, RecordBound
from tacit.rounds import Trace
from tacit.types import Array, Shard

# float32 sums over n records move a difference of neighbours by up to 7e-7 n of the bound, the worst a search found for
# one form of the records (an engine may take another for other records); simulated noise is scaled for it. Deployed
# agents sum in float64, in a form that the number of features decides, with a proved bound (query.gradient)
ROUNDING = 1e-6


@dataclass(frozen=True)
class Variant:
    """The choices that make one variant of ADMM; they combine freely (admm.compatible refuses the impossible)."""

    rule: Rule
    perturbation: Perturbation
    mechanism: Mechanism
    bound: RecordBound
    adjacency: Adjacency = Adjacency.ZERO_OUT
    order: Order = Order.WZD
    regularize_global: bool = False  # `released`: beta r'(w) in place of (beta / P) r'(z_p)


@dataclass(frozen=True, eq=False)
class Agent:
    """An agent's private shard, and how it answers. `key` = (seed, agent) names its stream of simulated noise."""

    shard: Shard
    problem: Problem
    variant: Variant
    key: tuple[int, int] | None = (0, 0)  # None: no seed was given, so that no noise can be simulated

    @property
    def stream(self) -> tuple[int, int]:
        """The key of the agent's simulated noise; refused where there is no seed."""
        if self.key is None:
            raise IncompatibleError("simulated noise needs a seed, and this run has none: set run.seed.")
        return self.key

    @cached_property
    def x_norm(self) -> Array:
        """|x_i| in the norm of the bound, (I_p,)."""
        return self.variant.bound.norm.of_rows(self.shard.at_hand().x)

    def in_double(self) -> Agent:
        """The same agent over records in float64."""
        return replace(self, shard=replace(self.shard.at_hand(), dtype=np.float64))

    def start(self, shape: tuple[int, int]) -> Local:
        """What the agent carries into its first round."""
        return Local.first(self.problem.start(shape))

    @property
    def constant_bound(self) -> float:
        """The bound of a record's gradient, where that is a constant which asks nothing of the records."""
        return self.variant.bound.bound(np.zeros((0, 1)), np.zeros(0))

    @property
    def calibration(self) -> float:
        """The scale of noise that a bound of one on a record's gradient would need."""
        own = self.variant.mechanism.multiplier * self.problem.weight * self.variant.adjacency.value
        return own * (1 + ROUNDING * len(self.shard)) if self.variant.bound.public else own

    def gradient(self, u: Array, w: Array) -> tuple[Array, float]:
        """f'_p(u), every record shrunk to its bound, and that bound."""
        data, bound = self.data_gradient(u)
        return data + self.regular_slope(u, w), bound

    def data_gradient(self, u: Array) -> tuple[Array, float]:
        """weight sum_i x_i a_i^T, every record shrunk to its bound, and that bound: all that is read of records."""
        p, shard, bound = self.problem, self.shard.at_hand(), self.variant.bound
        residual = p.loss.residual(shard.x @ u, shard.y)
        return p.data_gradient(bound.shrink(residual, self.x_norm), shard), bound.bound(residual, self.x_norm)

    def regular_slope(self, u: Array, w: Array) -> Array:
        """(beta / P) r'(u); with the switch of `released`, beta r'(w)."""
        p = self.problem
        if self.variant.regularize_global:
            return p.beta * p.regularizer.gradient(w)
        return p.regularization * p.regularizer.gradient(u)

    def respond(self, own: Local, msg: Broadcast) -> tuple[Local, Reply, Trace]:
        """One round: ask the data once, add noise, step, and update the dual from what was released."""
        own = self.caught_up(own, msg)
        start = perf_counter()
        gradient, bound = self.gradient(self.variant.rule.at.of(own, msg), msg.w)
        asked = perf_counter() - start
        after, trace = self.move(own, msg, gradient, bound)
        return after, Reply(after.z), replace(trace, seconds={"gradient": asked} | trace.seconds)

    def caught_up(self, own: Local, msg: Broadcast) -> Local:
        """The agent after the dual step that it owes: with z first, the w of the last round has only now arrived."""
        if self.variant.order is Order.WZD:
            return own
        return Local(own.z, ascent(own.dual, msg.w, own.z, own.rho), msg.rho)

    def move(self, own: Local, msg: Broadcast, gradient: Array, bound: float) -> tuple[Local, Trace]:
        """The step from an answer of the records; what is released depends on them through gradient + noise."""
        m = self.variant
        start = perf_counter()
        mu = m.rule.stiffness(msg.rho, msg.t)
        scale = m.perturbation.scale(self.calibration * bound, mu)
        xi = scale * m.mechanism.sample(self.stream, msg.t, 0, gradient.shape).astype(gradient.dtype)
        drawn = perf_counter()

        def field(u: Array) -> Array:
            return m.perturbation.slope(self.gradient(u, msg.w)[0], xi)

        z, binding = m.rule.solve(m.perturbation.slope(gradient, xi), field, own, msg, self.problem.domain)
        z = m.perturbation.release(z, xi, mu)
        dual = ascent(own.dual, msg.w, z, msg.rho) if m.order is Order.WZD else own.dual
        clock = {"noise": drawn - start, "update": perf_counter() - drawn}
        noise = float(np.abs(xi).mean())
        sensitivity = self.problem.weight * m.adjacency.value * bound
        return Local(z, dual, msg.rho), Trace(noise, noise / mu, scale, sensitivity, binding, clock)
