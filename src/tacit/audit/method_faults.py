"""Methods broken on purpose, by mistakes that the author of a method makes. Each promises what the correct one does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tacit.admm.messages import Broadcast
from tacit.methods.gradient_descent import FEDGD, FedGD, build_fedgd
from tacit.methods.method import Answers, Budget, Choice, Entry, Own
from tacit.methods.task import Facts, Task
from tacit.problem.objective import Problem
from tacit.problem.sensitivity import Observed, RecordBound
from tacit.types import Array, Shard

BUDGET = Budget(3.0, 1e-5)


@dataclass(frozen=True)
class ReusedNoise(FedGD):
    """Draw the same noise in every round: the difference of two rounds has none."""

    def answer(self, agents: Task, own: Own, msg: Broadcast) -> tuple[Own, Answers]:
        def first(key: tuple[int, int], _t: int, step: int, shape: tuple[int, ...]) -> Array:
            return agents.normals(key, 1, step, shape)

        return FedGD.answer(self, replace(agents, normals=first), own, msg)


@dataclass(frozen=True)
class Unclipped(FedGD):
    """Add the noise of clipped gradients to gradients that are not clipped."""

    def answer(self, agents: Task, own: Own, msg: Broadcast) -> tuple[Own, Answers]:
        def whole(shards: Sequence[Shard], problem: Problem, points: Array, bound: RecordBound) -> Array:
            return agents.sums(shards, problem, points, Observed(bound.norm))

        return FedGD.answer(self, replace(agents, sums=whole), own, msg)


def _broken(name: str, about: str, kind: type[FedGD]) -> Entry:
    """Return the entry of a broken fedgd, as a registry would hold it."""

    def build(facts: Facts, budget: Budget, choice: Choice) -> FedGD:
        return kind(**vars(build_fedgd(facts, budget, choice)))

    return Entry(name, about, build, FEDGD.grid)


ENTRIES = (
    _broken("method-reused-noise", "a method: the same noise in every round", ReusedNoise),
    _broken("method-unclipped", "a method: noise for clipped gradients, which are not clipped", Unclipped),
)
