"""An agent as it is deployed: exact noise from the operating system, and a ledger that may refuse.

What it computes is what its Agent computes; what differs is where noise comes from (tacit.privacy.lattice: no seed,
no floating-point trace of the gradient) and that every answer is in the agent's own ledger before it leaves.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter

import numpy as np

from tacit.admm.agent import Agent
from tacit.admm.messages import Broadcast, Local, Order, Reply, Trace
from tacit.admm.perturbation import Objective
from tacit.admm.price import release
from tacit.admm.updates import ascent
from tacit.errors import DataError, IncompatibleError, RefusalWarning, Refused
from tacit.privacy import lattice
from tacit.privacy.book import Key
from tacit.privacy.exact import Law
from tacit.privacy.ledger import Ledger, question
from tacit.privacy.mechanism import Laplace
from tacit.types import LARGEST, Array

DELTA_FOR_THE_GRID = 1e-4  # share of dp_delta kept back for discrete noise in place of continuous


@dataclass(frozen=True, eq=False)
class Guarded:
    """An agent with a ledger (or none), under the name of its data and of the run."""

    agent: Agent
    name: str
    dimension: int  # J K
    ledger: Ledger | None = None
    data_id: str = ""
    run: str = ""

    def __post_init__(self) -> None:
        method = self.agent.method
        if release(method) is None:
            raise IncompatibleError(
                "exact noise needs a public bound and a linearised step: use the sound preset, or sensitivity clip."
            )
        if not isinstance(method.perturbation, Objective):
            raise IncompatibleError("exact noise is added to gradients: use perturbation = objective, not output.")

    def in_double(self) -> Guarded:
        """The same over records in float64."""
        return replace(self, agent=self.agent.in_double())

    @cached_property
    def scale(self) -> float:
        """The noise scale, for a sensitivity that counts the grid and the rounding of the sum over records."""
        agent = self.agent
        n = len(agent.shard)
        bound = agent.problem.weight * agent.method.adjacency.value * agent.constant_bound
        rounding = 1 + 4 * n * n * 2.0**-53  # |fl(sum) - sum| <= n u sum |g_i|, at both neighbours
        mechanism = agent.method.mechanism
        return lattice.calibrate(mechanism.norm, mechanism.multiplier, bound * rounding, self.dimension)

    def respond(self, own: Local, msg: Broadcast) -> tuple[Local, Reply, Trace]:
        """One round; or Refused, with nothing sent and nothing spent."""
        try:
            return self._respond(own, msg)
        except (Refused, DataError) as error:
            warnings.warn(f"agent {self.name}: {error}", RefusalWarning, stacklevel=2)  # stays with the agent
            raise Refused(f"agent {self.name}: {Refused.public}") from None  # all that the server is told

    def _respond(self, own: Local, msg: Broadcast) -> tuple[Local, Reply, Trace]:
        agent, m = self.agent, self.agent.method
        _check_model(msg.w)
        own = agent.caught_up(own, msg)
        point = m.rule.point(own, msg)
        _check_model(point)
        seconds = {"gradient": 0.0, "noise": 0.0, "update": 0.0}
        law = Law.LAPLACE if isinstance(m.mechanism, Laplace) else Law.GAUSSIAN

        def answer() -> Array:
            start = perf_counter()
            gradient, _ = agent.gradient(point, msg.w)
            asked = perf_counter()
            noisy = lattice.release(gradient, self.scale, law)
            drawn = perf_counter()
            z = m.rule.solve(noisy, lambda _: noisy, own, msg, agent.problem.domain)
            seconds.update(gradient=asked - start, noise=drawn - asked, update=perf_counter() - drawn)
            return z

        z = self._through_the_ledger(msg, answer)
        dual = ascent(own.dual, msg.w, z, msg.rho) if m.order is Order.WZD else own.dual
        size = self.scale * (1.0 if law is Law.LAPLACE else math.sqrt(2 / math.pi))  # E|xi|: the draw is not kept
        sensitivity = self.scale / m.mechanism.multiplier
        trace = Trace(size, size / m.rule.stiffness(msg.rho, msg.t), self.scale, sensitivity, seconds)
        return Local(z, dual, msg.rho), Reply(z), trace

    def _through_the_ledger(self, msg: Broadcast, answer: Callable[[], Array]) -> Array:
        if self.ledger is None:
            return answer()
        method = self.agent.method
        one = release(method)
        assert one is not None
        key = Key(self.data_id, self.run, msg.t)
        return self.ledger.release(key, question(msg.w, msg.t, msg.rho), one, answer, method.adjacency.name.lower())


def _check_model(u: Array) -> None:
    """Refuse a model so large that a gradient overflows: by itself alone, whatever the records are."""
    if not np.abs(u).max() <= LARGEST:  # NaN is refused too
        raise Refused(f"asked at a model that is not finite, or beyond {LARGEST:g}: there is no gradient.")
