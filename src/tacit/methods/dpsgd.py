"""DP-SGD (Abadi et al. 2016): a curator with all records takes noisy steps on Poisson lots of them.

    w+ = w - step^t ( (sum_{i in lot} x_i a_i^T + xi) / (rate I) + beta r'(w) )
    |x_i a_i^T| <= clip,   xi ~ N(0, (multiplier clip)^2),   each record in the lot with probability `rate`

It divides by the size expected of a lot: the size of the lot drawn is private. step^t falls in a straight line to zero.
"""

from __future__ import annotations

from dataclasses import dataclass

from tacit.methods.fedgd import noise_std
from tacit.methods.method import Budget, Choice, Entry, Info, State, start
from tacit.methods.promise import Promise, Trusted, gaussian_releases
from tacit.methods.sampling import lot_sums
from tacit.methods.task import Task
from tacit.problem.sensitivity import Clipped
from tacit.schedule import Cooling, cooled_step
from tacit.types import Norm


@dataclass(frozen=True)
class DPSGD:
    """One noise for all records, added by the curator."""

    rounds: int
    rate: float
    clip: float
    multiplier: float
    step: float

    def promise(self, task: Task) -> Promise:  # noqa: ARG002
        # the law of a Poisson sample is known for a record that is there or not, and for no other neighbour
        return gaussian_releases(self.multiplier, rate=self.rate, trusted=Trusted.CURATOR)

    def init(self, task: Task) -> State:
        return start(task)

    def run_round(self, task: Task, state: State) -> tuple[State, Info]:
        t, problem = state.t + 1, task.problem
        lot = lot_sums(task, state.w, Clipped(Norm.L2, self.clip), t, self.rate).sum(0)
        noise = noise_std(task, self.multiplier, self.clip) * task.gaussian(task.n_agents, t)
        slope = (problem.weight * lot + noise) / self.rate + problem.beta * problem.regularizer.gradient(state.w)
        w = state.w - 1 / Cooling(1 / self.step, self.rounds)(t) * slope
        return State(t, w), Info((w,), 0.0)  # the records are with the curator before the first round


def build(task: Task, budget: Budget, choice: Choice) -> DPSGD:
    """The step with which a score of w gathers noise of std choice["score_noise"] over the run."""
    rounds, rate, clip = int(choice["rounds"]), choice["rate"], choice["clip"]
    multiplier = budget.multiplier(rounds, rate)
    std = noise_std(task, multiplier, clip) / rate * task.row_norm
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
