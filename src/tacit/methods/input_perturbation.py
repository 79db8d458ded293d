"""Input perturbation: agents put noise on each record once, send the records, and nobody asks them again.

    z_i = ( x_i, balance R Y_i ) + xi_i,    xi_i ~ N(0, (multiplier s)^2),    Y_ik = [y_i = k] - 1/K,    |x_i| <= R

(Fukuchi, Tran & Sakuma 2017; Kang et al. 2020.) All that follows is made of the z_i, and tells nothing more.

Privacy. A record that is absent is z = 0 with noise: a row without features has no label either. So a record moves z_i,
and nothing else, by

    | ( x, balance R e ) | <= R sqrt( 1 + balance^2 (1 - 1/K) ) = s

and a run is one Gaussian release with `multiplier`, of each record by itself: local differential privacy for those who
are in the data, whoever collects the z_i. An agent shrinks a row that is longer than R. Two records that are both there
lie up to 2 s apart: hiding which of two a record is takes half of the multiplier into account. The papers claim more,
for the model alone: Fukuchi et al. that the noises of all records add up to that of an objective, Kang et al. that I
records hide each other. Here the server sees every z_i, and only what holds for it is claimed.

What the server does. The noise of the records enters X'X as I std^2 on the diagonal, in the mean; it is known, and is
taken off (the quadratic term by which Fukuchi et al. correct the loss). The noises of x and of Y are independent, so
that X'Y needs nothing. What is left has mean zero and is large: sqrt(I) std^2 in every entry. Ridge regression follows
as for one message (tacit.methods.noisy_ridge); the two halves that choose its penalty are every other record.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.admm.messages import Broadcast
from tacit.errors import IncompatibleError
from tacit.methods.method import Answers, Budget, Choice, Entry, Own, Stateless, grid
from tacit.methods.noisy_ridge import Known, NoisyMoments, fit
from tacit.methods.onemessage import MOST_FEATURES, MOST_NUMBERS, check_squares, label_square
from tacit.methods.promise import Promise, gaussian_releases
from tacit.methods.solve import convexity
from tacit.methods.task import Facts, Task
from tacit.problem.loss import Softmax
from tacit.query.moments import outcomes
from tacit.rounds import State
from tacit.types import Array, Norm, blocks


@dataclass(frozen=True)
class InputPerturbation(Stateless):
    """Agents send noisy records, in float32: (P, max_p I_p, J + K), and zeros after the last of an agent's."""

    multiplier: float
    balance: float
    rounds: int = 1

    def promise(self, facts: Facts) -> Promise:  # noqa: ARG002
        return gaussian_releases(self.multiplier)

    def noise_std(self, facts: Facts) -> float:
        """multiplier s."""
        return self.multiplier * sensitivity(facts, self.balance)

    def answer(self, agents: Task, own: Own, msg: Broadcast) -> tuple[Own, Answers]:
        sent = np.zeros((len(agents.index), *message_shape(agents)), np.float32)
        for rows, row in enumerate(sent):
            for block, at in enumerate(blocks(len(agents.shards[rows]))):
                row[at][: len(agents.shards[rows]) - at.start] = self.noisy(agents, rows, at, msg.t, block)
        return own, {"records": sent}

    def noisy(self, agents: Task, which: int, at: slice, t: int, block: int) -> Array:
        """z_i of some records of one agent."""
        shard, classes = agents.shards[which], agents.shape[1]
        x = shard.x[at].astype(np.float64)
        norms = Norm.L2.of_rows(x)
        x *= (agents.row_norm / np.maximum(norms, agents.row_norm))[:, None]
        labels = self.balance * agents.row_norm * outcomes(shard.y[at], classes) * (norms > 0)[:, None]
        z = np.hstack([x, labels])
        if self.multiplier:
            key = (agents.seed, agents.index[which])
            z += self.noise_std(agents) * agents.normals(key, t, block, z.shape).astype(np.float64)
        return z

    def conclude(self, facts: Facts, state: State, msg: Broadcast, answers: Answers) -> State:  # noqa: ARG002
        std, (features, _), count = self.noise_std(facts), facts.shape, facts.n_records
        halves = [self.moments(facts, answers["records"], first) for first in (0, 1)]
        whole = NoisyMoments(halves[0].gram + halves[1].gram, halves[0].cross + halves[1].cross)
        shares = [max(half_size(facts, first), 1) / count for first in (0, 1)]
        first, second = (NoisyMoments(h.gram / share, h.cross / share) for h, share in zip(halves, shares, strict=True))
        known = Known(
            count,
            facts.row_norm,
            count * label_square(facts),
            2 * math.sqrt(count * features) * std * (std + facts.row_norm) + features * std**2,
            count * convexity(facts, 0.0, pooled=True),
        )
        return state.next(fit(whole, (first, second), known, isinstance(facts.problem.loss, Softmax)))

    def moments(self, facts: Facts, records: Array, first: int) -> NoisyMoments:
        """X'X, less what the noise adds in the mean, and X'Y of every other record, from this one on."""
        features, classes = facts.shape
        gram, cross = np.zeros((features, features)), np.zeros((features, classes))
        for rows in records:
            for at in blocks(len(rows)):
                z = rows[at][first::2].astype(np.float64)  # blocks begin at even records
                gram += z[:, :features].T @ z[:, :features]
                cross += z[:, :features].T @ z[:, features:]
        gram[np.diag_indices(features)] -= half_size(facts, first) * self.noise_std(facts) ** 2
        cross /= self.balance * facts.row_norm
        return NoisyMoments(gram, cross - cross.mean(1, keepdims=True) if classes > 1 else cross)


def half_size(facts: Facts, first: int) -> int:
    """How many records are every other one of an agent's, from its first or its second on."""
    return sum((size + 1 - first) // 2 for size in facts.sizes)


def message_shape(facts: Facts) -> tuple[int, int]:
    """max_p I_p records of J + K numbers."""
    return max(facts.sizes), sum(facts.shape)


def sensitivity(facts: Facts, balance: float) -> float:
    """s, and what the norm of a row in float64 may be off by."""
    rounding = 1 + facts.shape[0] * 2.0**-51
    return rounding * facts.row_norm * math.sqrt(1 + balance**2 * label_square(facts))


def build(facts: Facts, budget: Budget, choice: Choice) -> InputPerturbation:
    """The method at the budget; it refuses what public numbers make too large."""
    check_squares(facts, choice["balance"])
    features, numbers = facts.shape[0], facts.n_agents * math.prod(message_shape(facts))
    if features > MOST_FEATURES or numbers > MOST_NUMBERS:
        raise IncompatibleError(
            f"{facts.n_agents} agents with up to {max(facts.sizes)} records of {features} features send {numbers:.3g} "
            f"numbers. Up to {MOST_FEATURES} features and {MOST_NUMBERS:.3g} numbers are taken: use fewer features, or "
            "a method that sends models."
        )
    return InputPerturbation(budget.multiplier(1), choice["balance"])


ENTRY = Entry(
    "input-perturbation", "ridge regression on records that carry Gaussian noise, each sent once",
    build, grid(balance=(1.0, 0.7, 1.4, 2.0)),
    constants={"balance": "weight of the label beside the features in a noisy record; the noise covers both"},
)  # fmt: skip
