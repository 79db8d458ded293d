"""Methods made of queries: agents only answer a query with noise, and the method is a program at the server.

Such a method names its queries, asks them, and concludes from the noisy answers. What follows from the queries is here:
the privacy claim, the answers of a simulation, the secure sum, and the agreement of deployed agents.

    answer_p = value_p + xi_p,   xi_p ~ N(0, (multiplier s)^2),   s the sensitivity of the query in l2

A simulation computes the values on the engine of the host, in float32 if that engine is, and s has room for its
rounding. Deployed agents compute in float64 (tacit.query). Behind a secure sum the server has the total of the values
with the noise of one release.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from tacit.admm.messages import Broadcast
from tacit.agent.agreement import Agreement, Noise, NoisyQuery
from tacit.errors import IncompatibleError
from tacit.message import Body
from tacit.methods import behind_sum
from tacit.methods.behind_sum import BehindSum
from tacit.methods.method import Answers, Own, Stateless
from tacit.methods.promise import Promise, Unit, gaussian_releases
from tacit.methods.task import Facts, Task
from tacit.privacy.exact import Law
from tacit.privacy.summed import InSum
from tacit.problem.sensitivity import Adjacency
from tacit.query.query import Query
from tacit.rounds import FADING, Spread, State
from tacit.types import Array, Norm


class QueryMethod(Stateless, ABC):
    """A method made of one query, which every agent is asked in every round. Its noise is Gaussian.

    A subclass is a dataclass with the fields `rounds`, `multiplier` (0: no noise) and `in_sum`.
    """

    rounds: int
    multiplier: float
    in_sum: InSum | None
    adjacency: ClassVar[Adjacency] = Adjacency.ZERO_OUT
    fades: ClassVar[bool] = False  # whether the last answer of a missing agent can stand for a new one

    @abstractmethod
    def query(self, facts: Facts) -> Query:
        """Return the query of every round."""

    def parameters(self, facts: Facts, msg: Broadcast, p: int) -> Body:  # noqa: ARG002
        """Return the parameters of the query for agent p: the point w, or its own point if w has a row for each."""
        return {"point": msg.w if msg.w.ndim == 2 else msg.w[p]}

    def promise(self, facts: Facts) -> Promise:
        unit = Unit.RECORD if self.adjacency is Adjacency.ZERO_OUT else Unit.REPLACED
        return behind_sum.promised(facts, self.in_sum, gaussian_releases(self.multiplier, unit=unit))

    def behind(self, facts: Facts) -> BehindSum | None:
        query, moved = self.query(facts), self.sensitivity(facts)
        return behind_sum.behind(facts, self.in_sum, self.multiplier, moved, query.size, self.rounds)

    def sensitivity(self, facts: Facts) -> float:
        """Return how far one record moves a value in l2, as a simulation computes it."""
        return facts.sensitivity(self.query(facts), self.adjacency)

    def answer(self, agents: Task, own: Own, msg: Broadcast) -> tuple[Own, Answers]:
        each = [self.parameters(agents, msg, p) for p in agents.index]
        values, sum_ = agents.values(self.query(agents), each), self.behind(agents)
        if sum_ is not None:
            return own, {"answer": sum_.words(agents, values, msg.t)}
        if self.multiplier:
            std = self.multiplier * self.sensitivity(agents)
            for row, p in zip(values, agents.index, strict=True):  # in place: with many agents it is large
                row += std * agents.normals((agents.seed, p), msg.t, 0, row.shape).astype(np.float64)
        return own, {"answer": values}

    def total(self, facts: Facts, answers: Answers) -> Array:
        """Return the sum of all answers, (size,), whether they came alone or as a total."""
        return np.asarray(answers["answer"].reshape(-1, self.query(facts).size).sum(0))

    def agreement(self, facts: Facts) -> Agreement:
        """Return what deployed agents agree to."""
        if not self.multiplier:
            raise IncompatibleError("without noise there is nothing to deploy: give a finite epsilon.")
        noise = Noise(Law.GAUSSIAN, Norm.L2, self.multiplier)
        asked = (NoisyQuery(self.query(facts), noise, self.rounds),)
        return Agreement(asked, self.adjacency, max(facts.sizes), self.in_sum)

    @abstractmethod
    def conclude(self, facts: Facts, state: State, msg: Broadcast, answers: Answers) -> State:
        """Return the server's next state."""


class Gathered:
    """The noisy answers of deployed agents, at the server of a method made of queries (tacit.run.deployment.Program).

    `last` has the answer of every agent, (P, size), or their total. An agent that misses a round is counted with its
    last answer, faded, if the method allows it.
    """

    def __init__(self, method: QueryMethod, facts: Facts) -> None:
        self.method, self.facts = method, facts
        rows = facts.n_agents if method.in_sum is None else 1
        self.last = np.zeros((rows, method.query(facts).size))
        self.accepted = np.zeros(rows, np.int64)

    def parameters(self, msg: Broadcast, p: int) -> Body:
        """Return what agent p is asked."""
        return self.method.parameters(self.facts, msg, p)

    def move(self, p: int, msg: Broadcast, answer: Array, whole: float = 1.0) -> None:
        """Take an answer, or a total, which `whole` scales up from the records that are present to all."""
        self.last[p] = whole * answer.ravel()
        self.accepted[p] = msg.t

    def replies(
        self, msg: Broadcast, spreads: Sequence[Spread], seconds: Mapping[str, float], in_step: bool = True  # noqa: ARG002
    ) -> Answers:
        """Return the answers of all agents."""
        left = FADING ** (msg.t - self.accepted)
        return {"answer": self.last if in_step else left[:, None] * self.last}

    def save(self) -> dict[str, Array]:
        """Return copies of the arrays, by name."""
        return {"last": self.last.copy(), "accepted": self.accepted.copy()}

    def load(self, saved: Mapping[str, Any]) -> None:
        """Continue from what `save` returned."""
        self.last[...], self.accepted[...] = saved["last"], saved["accepted"]
