"""A method at an agent, cut in two where noise goes in: `value` asks the records, `step` sees the noisy value alone.

`value` is the gradient query (tacit.query.gradient), which is total and whose sensitivity is proved there. Everything
else is a function of public numbers and of earlier releases. For the ADMM family this is why it does not fail either:

* Constants of the run (penalty, radius, weight, W) are held to [1e-50, 1e50], and an agent's own z and dual to 1e150:
  the step and the next dual are finite too. z and dual follow from releases, so that refusing them tells no more.
* A projection takes a bounded number of steps and does not fail (PROJECTED). It sees the noisy value and public numbers
  alone, so that neither its result nor its time tells more of the records than the noisy value does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tacit.admm.agent import Agent
from tacit.admm.compatible import release
from tacit.admm.messages import Broadcast, Local, Order, Reply
from tacit.admm.rule import Objective, Point, Prox, Trust
from tacit.admm.updates import ascent
from tacit.errors import DataError, IncompatibleError, Unfit
from tacit.message import Body, Form, Numbers
from tacit.privacy.exact import Law
from tacit.privacy.mechanism import Laplace
from tacit.privacy.release import Release
from tacit.problem.ball_around import BallAround
from tacit.problem.bounds import Bounds
from tacit.problem.domain import Ball, Box, Domain, Everywhere
from tacit.problem.simplex import Simplex
from tacit.query.gradient import Gradient, evaluator
from tacit.query.query import LARGEST_CONSTANT, SMALLEST_CONSTANT, AgentQuery
from tacit.query.records import InMemory
from tacit.query.sums import Summing
from tacit.schedule import Schedule
from tacit.types import Array, Norm

LARGEST_STATE = 1e150
# sets W that a deployed agent can project onto: in a number of steps that is bounded whatever the point is, and without
# an error, which would tell of a noisy value that is not on record
PROJECTED = Everywhere | Box | Bounds | Ball | BallAround | Simplex


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
        query = self.gradient  # which refuses constants of its own
        if self.agent.shard.here:
            query.check()
        elif self.agent.shard.x.shape[1] != self.shape[0]:
            raise DataError(f"records elsewhere do not fit a model of shape {self.shape}: check their columns.")

    @cached_property
    def gradient(self) -> AgentQuery[Gradient]:
        """The gradient query of the agent's records."""
        return gradient_of(self.agent, self.shape, self.summing)

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
        """How far one record moves `value`, as it is computed."""
        return self.gradient.sensitivity(self.norm, self.agent.variant.adjacency)

    def take_up(self, own: Local, t: int, body: Body) -> Local:
        """The agent's state, brought up to date by the question; Unfit where that state left the range."""
        self.state.checked({"z": own.z, "dual": own.dual}, t)
        if not 0 <= own.rho <= LARGEST_CONSTANT:
            raise Unfit("the penalty of the agent's last round is out of range.")
        own = self.agent.caught_up(own, self._message(t, body))
        self.gradient.query.point.checked("the model that the agent linearises at", self._point(own, t, body), t)
        return own

    def value(self, own: Local, t: int, body: Body) -> Array:
        """What the records say, before noise: the one place that touches them."""
        return self.gradient.value({"point": self._point(own, t, body)})

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
        constants += [problem.beta or 1.0]
        for constant in constants:
            if not SMALLEST_CONSTANT <= constant <= LARGEST_CONSTANT:
                raise IncompatibleError(
                    f"a deployed agent takes constants from {SMALLEST_CONSTANT:g} to {LARGEST_CONSTANT:g}, and one of "
                    f"its run (penalty, radius, eta, beta) is {constant:g}: change it."
                )


def gradient_of(agent: Agent, shape: tuple[int, int], summing: Summing) -> AgentQuery[Gradient]:
    """The gradient query that an agent's step asks of its records; at a shared point if it is linearised at w."""
    problem, variant = agent.problem, agent.variant
    shared = isinstance(variant.rule, Prox | Trust) and variant.rule.at is Point.GLOBAL
    query = Gradient(shape, problem.loss, variant.bound, problem.weight, shared)
    return AgentQuery(query, InMemory.of(agent.shard), evaluator(summing))


def _sizes(domain: Domain) -> list[float]:
    """The sizes of the numbers that a set is made of; a bound of zero or of inf enters no product."""
    if isinstance(domain, Bounds):
        bounds = np.abs(np.concatenate([np.ravel(domain.low), np.ravel(domain.high)]))
        return [float(bound) for bound in np.unique(bounds) if 0 < bound < math.inf]
    center = [float(np.abs(domain.center).max()) or 1.0] if isinstance(domain, BallAround) else []
    return center + ([domain.radius] if isinstance(domain, Box | Ball | BallAround | Simplex) else [])
