"""cpSGD (Agarwal et al. 2018): agents send gradients as small whole numbers with binomial noise.

    v_p = (1/s) sum_i x_i a_i^T / I,    |x_i a_i^T| <= clip
    q_p = round(v_p) + n_p              each entry up or down at random, so that its mean is v_p; n_p is binomial
    w+  = w - step^t ( s sum_p q_p + beta r'(w) )

n_p is the number of heads of m fair coins less m/2, afresh for every entry, agent and round. An agent sends q_p with
`bits` bits an entry; what is larger is sent as the largest number there is, after the noise, which tells nothing more.

Privacy. One record moves v_p by c = clip / (I s) steps in l2. tacit.privacy.binomial has the theorem: a round is one
BinomialRelease(m, c, J K, cut), at each agent by itself. So the server may see every q_p, and nobody is trusted. The
regulariser is public, and the server adds its part.

The step s. Rounding costs as if c^2 were c^2 + J K / 4 at most. With c = fineness sqrt(J K) that is c^2 times
1 + 1 / (4 fineness^2). Where FITS times the std of the noise, c times the multiplier, would not fit into `bits` bits, c
is smaller. But c is no less than COARSEST, and the std no less than about LEAST steps: below these the bound is far
from that of a Gaussian release.

What is left out. The paper rotates v_p at random, so that no entry is large and few levels hold all of them. Noise
follows the l2 norm here, which a rotation keeps; it would save bits and no noise, and cost a transform of J K numbers
for each agent and round. The paper also lets clients share the noise of one release, and the server then sees the sum
alone: secure-sum does that, with discrete Gaussian noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.admm.messages import Broadcast
from tacit.errors import SpecError
from tacit.methods.gradient_descent import cooled
from tacit.methods.method import Answers, Budget, Choice, Entry, Own, Stateless, grid
from tacit.methods.promise import Promise, Trusted, Unit, no_privacy
from tacit.methods.task import Facts, Task, noise_std
from tacit.privacy import noise
from tacit.privacy.budget import calibrate
from tacit.privacy.release import BinomialRelease
from tacit.problem.sensitivity import Clipped
from tacit.rounds import State
from tacit.schedule import cooled_step
from tacit.types import Array, Norm

WORDS = (8, 16, 32)
LEAST = 32.0  # steps in the std of the noise: 4096 coins, with which x of the bound is 1 % above a Gaussian's
FITS = 4.0
COARSEST = 16.0  # steps that a record moves: where rounds are few, the term x^2 of the bound is large below it
MOST_COINS = 2**60  # which a whole number of 64 bits holds with room
CUT = 0.01  # of delta, for noise that is larger than the bound allows for
BINOMIAL, ROUNDING = 0, 1  # the streams of an agent in a round


@dataclass(frozen=True)
class CPSGD(Stateless):
    """Agents send whole numbers, and the server sums them."""

    rounds: int
    clip: float
    release: BinomialRelease | None  # of a round; None: there is no noise
    moved: float  # c: how many steps one record moves v_p
    step: float
    bits: int

    def promise(self, facts: Facts) -> Promise:  # noqa: ARG002
        if self.release is None:
            return no_privacy(Trusted.NOBODY)
        return Promise(Unit.RECORD, Trusted.NOBODY, ((self.release, 1),))

    def grain(self, facts: Facts) -> float:
        """s."""
        return noise_std(facts, 1.0, self.clip) / self.moved

    def answer(self, agents: Task, own: Own, msg: Broadcast) -> tuple[Own, Answers]:
        values = agents.data_gradients(msg.w, Clipped(Norm.L2, self.clip)) / self.grain(agents)
        words = [self.word(agents, p, v, msg.t) for p, v in zip(agents.index, values, strict=True)]
        return own, {"gradient": np.stack(words)}

    def word(self, facts: Facts, agent: int, value: Array, t: int) -> Array:
        """q_p."""
        key, most = (facts.seed, agent), largest(self.bits)
        whole = noise.rounded(value.astype(np.float64), key, t, ROUNDING)
        if self.release is not None:
            whole = whole + noise.binomial(key, t, BINOMIAL, self.release.coins, value.shape)
        return np.asarray(whole.clip(-most, most).astype(f"i{self.bits // 8}"))

    def conclude(self, facts: Facts, state: State, msg: Broadcast, answers: Answers) -> State:
        slope = self.grain(facts) * answers["gradient"].sum(0, dtype=np.int64)
        slope += facts.problem.beta * facts.problem.regularizer.gradient(msg.w)
        return state.next(state.w - cooled(self.step, self.rounds, msg.t) * slope)


def build(facts: Facts, budget: Budget, choice: Choice) -> CPSGD:
    """The method at the budget; with its first step a score gathers noise of std choice["score_noise"] over the run."""
    rounds, clip, bits, entries = int(choice["rounds"]), choice["clip"], int(choice["bits"]), math.prod(facts.shape)
    if bits not in WORDS:
        raise SpecError(f"method.bits of cpsgd must be one of {', '.join(map(str, WORDS))}: got {bits}.")
    moved, release, std = max(choice["fineness"] * math.sqrt(entries), COARSEST), None, 0.0
    if budget.private:
        multiplier = budget.multiplier(rounds)
        moved = max(min(moved, largest(bits) / (FITS * multiplier)), COARSEST, LEAST / multiplier)
        release = _calibrated(moved, multiplier, entries, budget, rounds)
        std = math.sqrt(release.coins) / 2 / moved * noise_std(facts, 1.0, clip)
    total = math.sqrt(facts.n_agents) * std * facts.row_norm
    step = cooled_step(choice["score_noise"], total, rounds, facts.largest_step)
    return CPSGD(rounds, clip, release, moved, step, bits)


def largest(bits: int) -> int:
    """The largest number that an answer holds."""
    return int(2 ** (bits - 1) - 1)


def _calibrated(moved: float, multiplier: float, entries: int, budget: Budget, rounds: int) -> BinomialRelease:
    """The fewest coins that keep the budget; Gaussian noise of this multiplier would."""
    coins = 2 * math.ceil(2 * (moved * multiplier) ** 2)
    first = BinomialRelease(coins, moved, entries, CUT * budget.dp_delta / rounds)
    found = calibrate(first, budget.epsilon, budget.dp_delta, rounds)
    assert isinstance(found, BinomialRelease)
    if found.coins > MOST_COINS:
        raise SpecError(
            f"a total of {budget.epsilon:g} over {rounds} rounds takes {found.coins:.3g} coins an entry, more than "
            "2^60: raise privacy.epsilon, or take fewer rounds."
        )
    return found


ENTRY = Entry("cpsgd", "gradient descent on small whole numbers, binomial noise at each agent", build, grid(
    rounds=100, clip=(0.7, 0.7, 0.35, 0.35), score_noise=(1.0, 0.5, 1.0, 2.0), fineness=2.0, bits=16,
), constants={
    "fineness": "steps of the grid, over sqrt(J K), that one record may move a gradient; more steps round less",
    "bits": "bits that an agent sends per entry of a gradient: 8, 16 or 32",
})  # fmt: skip
