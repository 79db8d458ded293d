"""One message: each agent releases its second moments with noise once, and the server solves ridge regression.

    v_p = ( upper(X'X), balance R X'Y ) + xi_p,    xi_p ~ N(0, (multiplier s)^2),    Y_ik = [y_i = k] - 1/K

R = row_norm bounds the rows. upper(A) holds A_jj, and sqrt 2 A_jk for j < k, so that |upper(A)|_2 = |A|_F. The server
adds the v_p up and works with their sum alone: tacit.methods.noisy_ridge. Agents compute v_p by tacit.query.moments.

Sensitivity. A record x with label y in the place of zeros adds ( upper(x x^T), balance R x e^T ) to v_p, e = Y_i, and

    |x x^T|_F = |x|^2,    |x e^T|_F = |x| |e|,    |e|^2 = (1 - 1/K)^2 + (K - 1) / K^2 = 1 - 1/K
    |x x^T|^2 + (balance R)^2 |x e^T|^2  <=  R^4 ( 1 + balance^2 (1 - 1/K) )  =  s^2

with equality for every record of norm R: R = balance = 1 and K = 10 have s = 1.38. No label has another norm, and an
agent shrinks a row that is longer than R, whatever was declared. Both moments are one vector with noise of one std, so
a run is one Gaussian release with `multiplier`. One-hot labels in place of Y would have |e| = 1, and give the same
predictions: w is linear in Y, and a number taken from all of its columns moves all scores of a record alike.

Sums are in float64. A sum of n terms is off by n 2^-53 of the sum of their sizes at most: v_p by n^2 2^-53 s, and two
neighbours by twice that; a norm of J numbers is off by J 2^-53 of it. `sensitivity` has room for all of them.

onemessage trusts nobody. In onemessage-sum the server sees sum_p v_p alone: v_p without noise is what agents put into
the sum of tacit.methods.behind_sum, and the agents that do not collude have the noise of one release together.

A number to predict is one column of Y, and lies in [-1, 1]: |e| <= 1. The server takes I for y'y, which it does not
know: the penalty is then no smaller than with it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.admm.messages import Broadcast
from tacit.errors import IncompatibleError, SpecError
from tacit.message import Body
from tacit.methods import behind_sum
from tacit.methods.method import Answers, Budget, Choice, Entry, grid, summed
from tacit.methods.noisy_ridge import Known, NoisyMoments, fit
from tacit.methods.queried import QueryMethod
from tacit.methods.solve import convexity
from tacit.methods.task import Facts
from tacit.privacy.summed import InSum
from tacit.problem.loss import Softmax, Squared
from tacit.problem.regularizer import L2, NoRegularizer
from tacit.query.moments import Moments, off_diagonal
from tacit.rounds import State
from tacit.types import Array

MOST_FEATURES = 4096  # the server keeps a few J x J matrices, of 134 MB each there, and takes a minute for their axes
MOST_NUMBERS = 2**28  # of all messages, which the server of a simulation has at once: 2 GiB
BALANCES = (1e-3, 1e3)


@dataclass(frozen=True)
class OneMessage(QueryMethod):
    """Agents answer with noisy moments, or put their moments into a secure sum."""

    multiplier: float
    balance: float
    in_sum: InSum | None = None  # None: there is no secure sum, and each agent has the whole noise
    rounds: int = 1

    def query(self, facts: Facts) -> Moments:
        return Moments(facts.shape, facts.row_norm, gram=1.0, cross=self.balance)

    def parameters(self, facts: Facts, msg: Broadcast, p: int) -> Body:  # noqa: ARG002
        return {}

    def conclude(self, facts: Facts, state: State, msg: Broadcast, answers: Answers) -> State:
        total = self.total(facts, answers)
        std, weight = self.total_std(facts), self.weight(facts)
        more = std * _normals(facts, facts.n_agents, msg.t) if std else 0.0
        released, first, second = (unpacked(v, facts.shape, weight) for v in (total, total + more, total - more))
        known = Known(
            facts.n_records,
            facts.row_norm,
            facts.n_records * label_square(facts),
            std * math.sqrt(2 * facts.shape[0]),  # 2 sqrt(J) times the std off the diagonal
            facts.n_records * convexity(facts, 0.0, pooled=True),
        )
        return state.next(fit(released, (first, second), known, isinstance(facts.problem.loss, Softmax)))

    def weight(self, facts: Facts) -> float:
        """What X'Y is multiplied by: balance R, so that a unit for the features changes nothing."""
        return self.balance * facts.row_norm

    def noise_std(self, facts: Facts) -> float:
        """The std of an entry of xi_p, where there is no secure sum."""
        return self.multiplier * self.sensitivity(facts)

    def total_std(self, facts: Facts) -> float:
        """The std of the noise on an entry of the sum of all messages."""
        sum_ = self.behind(facts)
        return math.sqrt(facts.n_agents) * self.noise_std(facts) if sum_ is None else sum_.std


def _normals(facts: Facts, agent: int, t: int) -> Array:
    """Standard Gaussian noise for one message; in float64, where R^2 may be as small as 1e-60."""
    return facts.normals((facts.seed, agent), t, 0, (message_size(facts.shape),)).astype(np.float64)


def message_size(shape: tuple[int, int]) -> int:
    """The numbers in a message: J (J + 1) / 2 + J K."""
    return shape[0] * (shape[0] + 1) // 2 + math.prod(shape)


def unpacked(v: Array, shape: tuple[int, int], weight: float) -> NoisyMoments:
    """The moments in a message or in a sum of messages; rows of Y of classes sum to zero, and so do those of X'Y."""
    at = np.triu_indices(shape[0])
    gram = np.empty((shape[0], shape[0]))
    gram[at] = gram.T[at] = v[: len(at[0])] / off_diagonal(at)
    cross = v[len(at[0]) :].reshape(shape) / weight
    return NoisyMoments(gram, cross - cross.mean(1, keepdims=True) if shape[1] > 1 else cross)


def label_square(facts: Facts) -> float:
    """|e|^2, at most one for a number."""
    return 1 - 1 / facts.shape[1] if facts.shape[1] > 1 else 1.0


def check_squares(facts: Facts, balance: float) -> None:
    """Refuse what ridge regression does not stand for, and a balance that leaves one of the moments nothing."""
    if not isinstance(facts.problem.loss, Softmax | Squared):
        raise IncompatibleError("ridge regression knows squares alone: use problem.loss = softmax or squared.")
    if type(facts.problem.regularizer) not in (L2, NoRegularizer):
        raise IncompatibleError("ridge regression knows squares alone: use problem.regularizer = l2 or none.")
    if not BALANCES[0] <= balance <= BALANCES[1]:
        raise SpecError(f"method.balance must be from {BALANCES[0]:g} to {BALANCES[1]:g}: got {balance:g}.")


def build(facts: Facts, budget: Budget, choice: Choice) -> OneMessage:
    """The method at the budget; it refuses what public numbers make too large."""
    features, numbers, balance = facts.shape[0], facts.n_agents * message_size(facts.shape), choice["balance"]
    check_squares(facts, balance)
    if features > MOST_FEATURES or numbers > MOST_NUMBERS:
        raise IncompatibleError(
            f"{features} features and {facts.n_agents} agents are too many for one message each: it holds the products "
            f"of all pairs of features, {numbers:.3g} numbers in all. Up to {MOST_FEATURES} features and "
            f"{MOST_NUMBERS:.3g} numbers are taken: use fewer features, or a method of many rounds."
        )
    made = OneMessage(budget.multiplier(behind_sum.counted(1, budget.in_sum)), balance, budget.in_sum)
    made.behind(facts)  # which refuses what no word holds, before the round begins
    return made


ENTRY = Entry(
    "onemessage", "ridge regression from one release of second moments, Gaussian noise at each agent",
    build, grid(balance=(1.0, 0.7, 1.4, 2.0)), sums=True, queries=True,
    constants={"balance": "weight of X'Y beside X'X in the released moments; the noise covers both"},
)  # fmt: skip
SUM = Entry(
    "onemessage-sum", "the same behind a secure sum: agents share Gaussian noise", summed(build), ENTRY.grid,
    values={"privacy.trust": "sum"}, sums=True, queries=True, constants=ENTRY.constants,
)  # fmt: skip
