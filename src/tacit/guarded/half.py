"""A method at an agent, cut in two where noise goes in: `value` asks the records, `step` sees the noisy value alone.

Everything but `value` is a function of public numbers and of earlier releases. `value` is total: once a question has
passed the gate, no record decides whether, or in which way, it is computed. For the ADMM family this is why:

* A model that is asked at, and a feature, are at most LARGEST = 1e50. Scores are at most 1e100 J, their squares and the
  norms made of them 1e200 J^2 K, the product of a record's norm with that of its residual 1e150 J^2 K: all are finite
  for any J and K that fit a memory. Softmax subtracts its largest score, so its exponentials lie in [0, 1] and their
  sum in [1, K]; that of Poisson is of a number of at most 0. Numbers that underflow become zero, and floating-point
  flags are ignored on the way.
* Labels lie in 0 .. K-1, and numbers to predict in [-1, 1], which is checked when the agent is built; the gate has
  fixed the shape (J, K).
* A declared bound is made true, not checked: rows that are longer are shortened when the agent is built, and residuals
  that are longer in every answer.
* What goes into the noise is the sum over records alone. The slope of the regulariser, which depends on the model and
  could be so large that adding it rounds a record away or up, is added after the noise.
* Scores and sums run over features and records in an order that J alone decides. Were it chosen by what the records
  hold, one record could change how the scores of all others are rounded, and a model with terms that cancel makes any
  residual of that. Time is no part of the claim: groups of zeros are left out, so that an answer takes longer the fewer
  there are, in every round alike.
* Constants of the run (penalty, radius, weight, W) are held to [1e-50, 1e50], and an agent's own z and dual to 1e150:
  the step and the next dual are finite too. z and dual follow from releases, so that refusing them tells no more.
* A projection takes a bounded number of steps and does not fail (PROJECTED). It sees the noisy value and public numbers
  alone, so that neither its result nor its time tells more of the records than the noisy value does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tacit.admm.agent import Agent
from tacit.admm.compatible import release
from tacit.admm.messages import Broadcast, Local, Order, Reply
from tacit.admm.rule import Objective, Prox, Trust
from tacit.admm.updates import ascent
from tacit.errors import DataError, IncompatibleError, Unfit
from tacit.guarded.sums import Summing, Sums
from tacit.message import Body, Form, Numbers
from tacit.privacy.exact import Law
from tacit.privacy.mechanism import Laplace
from tacit.privacy.release import Release
from tacit.problem.ball_around import BallAround
from tacit.problem.bounds import Bounds
from tacit.problem.domain import Ball, Box, Domain, Everywhere
from tacit.problem.sensitivity import Clipped
from tacit.problem.simplex import Simplex
from tacit.schedule import Schedule
from tacit.types import Array, Norm, fits

SMALLEST_CONSTANT, LARGEST_CONSTANT = 1e-50, 1e50
LARGEST_STATE = 1e150
# sets W that a deployed agent can project onto: in a number of steps that is bounded whatever the point is, and without
# an error, which would tell of a noisy value that is not on record
PROJECTED = Everywhere | Box | Bounds | Ball | BallAround | Simplex
UNIT_ROUNDOFF = 2.0**-53


@dataclass(frozen=True, eq=False)
class AdmmHalf:
    """An agent's half of the ADMM family with noise in the objective: ObjP, ObjT, and both orders of w and z."""

    agent: Agent
    shape: tuple[int, int]
    rho: Schedule
    rounds: int
    summing: Summing  # who sums over the records

    def __post_init__(self) -> None:
        variant = self.agent.variant
        if release(variant) is None:
            raise IncompatibleError(
                "exact noise needs a public bound and a linearised step: use the sound preset, or sensitivity clip."
            )
        if not isinstance(variant.perturbation, Objective):
            raise IncompatibleError("exact noise is added to gradients: use perturbation = objective, not output.")
        if not isinstance(self.agent.problem.domain, PROJECTED):
            raise IncompatibleError(
                "a deployed agent needs a set W whose projection ends after a known number of steps: everywhere, box, "
                "ball or simplex. Others train with simulated noise (--seed)."
            )
        self._check_constants()
        x, y = self.agent.shard.x, self.agent.shard.y
        if x.shape[1] != self.shape[0] or not fits(y, self.shape[1]):
            raise DataError(f"records and labels do not fit a model of shape {self.shape}: encode labels as 0..K-1.")

    @cached_property
    def held(self) -> Agent:
        """The agent over records for which its declared bound is true; they are float64 where rows may be shortened.

        Whether they may is public: a bound that clips declares nothing of the records, and leaves them as they are.
        """
        if isinstance(self.agent.variant.bound, Clipped):
            return self.agent
        shard = replace(self.agent.shard, dtype=np.float64)
        return replace(self.agent, shard=replace(shard, x=self.agent.variant.bound.hold(shard.x)))

    @cached_property
    def sums(self) -> Sums:
        """The sums over the records that are held."""
        self.agent.shard.at_hand()
        return self.summing(self.held)

    @cached_property
    def start(self) -> Local:
        """What the agent carries into its first round."""
        return self.agent.start(self.shape)

    @cached_property
    def state(self) -> Form:
        """The agent's own z and dual."""
        return Form({"z": Numbers(self.shape, LARGEST_STATE), "dual": Numbers(self.shape, LARGEST_STATE)})

    @cached_property
    def asked(self) -> Form:
        """What the agent is asked in a round."""
        return Broadcast.form(self.shape, self.rho)

    @cached_property
    def answered(self) -> Form:
        """What the agent answers: the parts that leave it."""
        return Reply.form(self.shape)

    @cached_property
    def release(self) -> Release:
        """What one answer costs."""
        found = release(self.agent.variant)
        assert found is not None
        return found

    @property
    def adjacency(self) -> str:
        return self.agent.variant.adjacency.name.lower()

    @property
    def law(self) -> Law:
        return Law.LAPLACE if isinstance(self.agent.variant.mechanism, Laplace) else Law.GAUSSIAN

    @property
    def norm(self) -> Norm:
        return self.agent.variant.mechanism.norm

    @property
    def multiplier(self) -> float:
        """The scale of the noise in sensitivities."""
        return self.agent.variant.mechanism.multiplier

    @property
    def dimension(self) -> int:
        return math.prod(self.shape)

    @cached_property
    def sensitivity(self) -> float:
        """How far one record moves `value`, as it is computed: weight * (1 or 2) * bound, and what float64 adds.

        `value` is weight sum_i x_ij a_ik, where a_i was clipped before it is summed, with u = 2^-53:

        * The clip. |x_i|, |a_i|, their product, C over it and a_ik times that are each rounded, so that the numbers
          x_ij and a_ik as they are have |x_i| |a_i| <= C (1 + (J + K + 8) u), and C = ROOM bound is less than the bound
          by 1e-5 of it: |g_i| = |x_i a_i^T| <= bound, exactly, for any J + K below 1e10. (A norm whose squares
          underflow belongs to a record smaller than 1e-160, which needs no clip.) A declared bound has |x_i| <= B and
          |a_i| <= ROUNDED A, B A = ROOM bound: their product is less than the bound by 4e-6 of it.
        * The sum. Each term is rounded at most n times in sums, in any order, in blocks or not, and once in its
          product or, fused, not at all; the weight is one more: |fl(sum) - sum| <= (n + 4) u sum_i |g_i|, entry by
          entry in |x_ij| |a_ik| and so in any of our norms. sum_i |g_i| <= n bound: at both neighbours, at most
          2 n (n + 4) u bound.

        Where Laplace noise is charged in l1 and in l2 at once, the grid's g d in l1 covers its g sqrt(d) in l2: the
        bounds have |s|_2 / |s|_1 >= 1 / sqrt(2 J), and d = J K >= 2 J. Where K = 1, a residual is one number, of one
        size in every norm, so that |s|_2 / |s|_1 >= 1 / sqrt(J) = 1 / sqrt(d).
        """
        n = len(self.agent.shard)
        bound = self.agent.problem.weight * self.agent.variant.adjacency.value * self.agent.constant_bound
        return bound * (1 + 4 * (n + 4) ** 2 * UNIT_ROUNDOFF)

    def take_up(self, own: Local, t: int, body: Body) -> Local:
        """The agent's state, brought up to date by the question; Unfit where that state left the range."""
        self.state.checked({"z": own.z, "dual": own.dual}, t)
        if not 0 <= own.rho <= LARGEST_CONSTANT:
            raise Unfit("the penalty of the agent's last round is out of range.")
        own = self.agent.caught_up(own, self._message(t, body))
        Numbers(self.shape).checked("the model that the agent linearises at", self._point(own, t, body), t)
        return own

    def value(self, own: Local, t: int, body: Body) -> Array:
        """What the records say, before noise: the one place that touches them."""
        return np.asarray(self.agent.problem.weight * self.sums(self._point(own, t, body)))

    def step(self, own: Local, t: int, body: Body, noisy: Array) -> tuple[Array, float]:
        """What the agent answers, from the noisy value alone, and the share of its entries that a constraint stops."""
        msg = self._message(t, body)
        slope = noisy + self.agent.regular_slope(self._point(own, t, body), msg.w)
        return self.agent.variant.rule.solve(slope, lambda _: slope, own, msg, self.agent.problem.domain)

    def carry(self, own: Local, body: Body, answer: Array) -> Local:
        """What the agent carries on to the next round, from what it answered."""
        rho = body["rho"]
        dual = ascent(own.dual, body["w"], answer, rho) if self.agent.variant.order is Order.WZD else own.dual
        return Local(answer, dual, rho)

    def stiffness(self, t: int, body: Body) -> float:
        """mu of the step, rho and the proximal term where there is one: noise xi moves the answer by xi / mu."""
        return self.agent.variant.rule.stiffness(body["rho"], t)

    def _message(self, t: int, body: Body) -> Broadcast:
        return Broadcast(t, body["w"], body["rho"])

    def _point(self, own: Local, t: int, body: Body) -> Array:
        """Where the gradient is asked for."""
        return self.agent.variant.rule.at.of(own, self._message(t, body))

    def _check_constants(self) -> None:
        """Refuse constants so far out that a step of float64 could overflow; schedules are monotone in t."""
        rule, problem = self.agent.variant.rule, self.agent.problem
        schedules = [self.rho]
        schedules += [rule.radius] if isinstance(rule, Trust) else [rule.eta] if isinstance(rule, Prox) else []
        constants = [schedule(t) for schedule in schedules for t in (1, self.rounds)]
        constants += _sizes(problem.domain)
        constants += [problem.beta or 1.0, problem.weight, self.agent.constant_bound]
        for constant in constants:
            if not SMALLEST_CONSTANT <= constant <= LARGEST_CONSTANT:
                raise IncompatibleError(
                    f"a deployed agent takes constants from {SMALLEST_CONSTANT:g} to {LARGEST_CONSTANT:g}, and one of "
                    f"its run (penalty, radius, eta, beta, weight, bound) is {constant:g}: change it."
                )


def _sizes(domain: Domain) -> list[float]:
    """The sizes of the numbers that a set is made of; a bound of zero or of inf enters no product."""
    if isinstance(domain, Bounds):
        bounds = np.abs(np.concatenate([np.ravel(domain.low), np.ravel(domain.high)]))
        return [float(bound) for bound in np.unique(bounds) if 0 < bound < math.inf]
    center = [float(np.abs(domain.center).max()) or 1.0] if isinstance(domain, BallAround) else []
    return center + ([domain.radius] if isinstance(domain, Box | Ball | BallAround | Simplex) else [])
