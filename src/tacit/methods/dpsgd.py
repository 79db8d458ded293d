"""DP-SGD (Abadi et al. 2016): a curator with all records takes noisy steps on Poisson lots of them.

    w+ = w - step^t ( (sum_{i in lot} x_i a_i^T + xi) / (rate I) + beta r'(w) )
    |x_i a_i^T| <= clip,   xi ~ N(0, (multiplier clip)^2),   each record in the lot with probability `rate`

The sum is divided by the expected size of a lot: the size of the lot that was drawn is private. step^t falls in a
straight line to zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.admm.messages import Broadcast
from tacit.methods.method import Budget, Choice, Entry
from tacit.methods.noisy_gradients import noise_std
from tacit.methods.promise import Promise, Trusted, gaussian_releases
from tacit.methods.sampling import lot_sums
from tacit.methods.task import Facts, Task
from tacit.problem.sensitivity import Clipped
from tacit.schedule import Cooling, cooled_step
from tacit.types import Array, Norm


@dataclass(frozen=True)
class DPSGD:
    """The curator adds one noise for all records."""

    rounds: int
    rate: float
    clip: float
    multiplier: float
    step: float

    def promise(self, facts: Facts) -> Promise:  # noqa: ARG002
        # the law of a Poisson sample is known for a record that is there or not, and for no other neighbour
        return gaussian_releases(self.multiplier, rate=self.rate, trusted=Trusted.CURATOR)

    def train(self, records: Task, msg: Broadcast) -> Array:
        t, w, problem = msg.t, msg.w, records.problem
        lot = lot_sums(records, w, Clipped(Norm.L2, self.clip), t, self.rate).sum(0)
        noise = noise_std(records, self.multiplier, self.clip) * records.gaussian(records.n_agents, t)
        slope = (problem.weight * lot + noise) / self.rate + problem.beta * problem.regularizer.gradient(w)
        return np.asarray(w - 1 / Cooling(1 / self.step, self.rounds)(t) * slope)


def build(facts: Facts, budget: Budget, choice: Choice) -> DPSGD:
    """The method with the step with which a score of w gathers noise of std choice["score_noise"] over the run."""
    rounds, rate, clip = int(choice["rounds"]), choice["rate"], choice["clip"]
    multiplier = budget.multiplier(rounds, rate)
    std = noise_std(facts, multiplier, clip) / rate * facts.row_norm
    return DPSGD(rounds, rate, clip, multiplier, cooled_step(choice["score_noise"], std, rounds))


ENTRY = Entry(
    "dpsgd",
    "DP-SGD by a curator who holds all records",
    build,
    (
        {"rounds": 300, "rate": 1.0, "clip": 0.35, "score_noise": 1.5},
        {"rounds": 300, "rate": 1.0, "clip": 0.7, "score_noise": 1.5},
        {"rounds": 600, "rate": 0.05, "clip": 0.35, "score_noise": 1.5},
        {"rounds": 600, "rate": 0.05, "clip": 0.7, "score_noise": 1.5},
    ),
)
