"""One minimiser of a noisy objective, by a curator who holds all records: what chaudhuri, kifer and amp have in common.

    w = argmin_w sum_p f_p(w) + Lambda/2 |w|^2 + <b, w>  +  c

b hides the records (tacit.methods.perturb), and c where the solve ended: at a gradient of norm tau = tolerance c / I.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.methods.method import Info, State, start
from tacit.methods.perturb import Noise, Silent, check, record_gradient
from tacit.methods.promise import Promise, Trusted, Unit, no_privacy
from tacit.methods.pvp import tau
from tacit.methods.solve import convexity, minimise
from tacit.methods.task import Task

MASK_SHARE = 0.01  # of the budget, for hiding where the solve ended
TOLERANCE = 3e-4  # with it that noise adds less than a hundredth to the variance


@dataclass(frozen=True)
class NoisyMinimum:
    """One release in all."""

    convexity: float  # Lambda
    inside: Noise
    outside: Noise
    tolerance: float = TOLERANCE
    rounds: int = 1

    @property
    def private(self) -> bool:
        return self.inside.multiplier > 0

    def promise(self, task: Task) -> Promise:
        if not self.private:
            return no_privacy(Trusted.CURATOR)
        once = (self.inside.inside(task, convexity(task, self.convexity, pooled=True)), self.outside.outside())
        return Promise(Unit.RECORD, Trusted.CURATOR, once=tuple((release, 1) for release in once))

    def init(self, task: Task) -> State:
        if self.private:
            check(task)
        return start(task)

    def run_round(self, task: Task, state: State) -> tuple[State, Info]:
        t, curator, limit = state.t + 1, task.n_agents, tau(task, self.tolerance)
        b = record_gradient(task) * self.inside.draw(task, curator, t, 0) if self.private else np.zeros(task.shape)
        w = minimise(task, lambda u: self.convexity * u + b, self.convexity, state.w[None], limit)[0]
        mu = convexity(task, self.convexity, pooled=True)
        w = w + 2 * limit / mu * self.outside.draw(task, curator, t, 1)
        return State(t, w), Info((w,), 0.0)


def without_noise(lam: float) -> NoisyMinimum:
    """The minimiser itself, to a gradient that one record could have."""
    return NoisyMinimum(lam, Silent(), Silent(), 1.0)
