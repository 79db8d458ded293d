"""What the server knows of each agent, as arrays with a row for each: arithmetic alone, no messages and no clocks.

z, dual and rho are those of the last answer that the server took, in round `accepted`. They stay as they are while an
agent is missing, on both sides: an agent that is asked again is told `accepted`, and goes on from there.

A missing agent is counted with the noisy gradient that it last released, halved with every round that it misses. That
costs nothing: what was released is used again. (4a) takes z_p - lambda_p / rho of each agent, where
z_p = w + (lambda_p - slope_p) / rho, so that lambda_p cancels and w moves as gradient descent does, on gradients of
which some are old. Halving bounds what the noise of one release can do: used again in full, it would pull w the same
way round after round; so it counts 1 + 1/2 + 1/4 + ... < 2 times in all, however long the agent is away
(docs/missing.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from tacit.admm.messages import Order, Replies
from tacit.admm.updates import ascent, trust_center
from tacit.message import fingerprint
from tacit.rounds import Trace
from tacit.types import Array

FADING = 0.5  # of a gradient that is used again, for each round since it was released (benchmarks/stale.py)


@dataclass(frozen=True, eq=False)
class Taken:
    """An answer that the server takes: z of agent p, to the question of round t at w."""

    p: int
    t: int
    w: Array
    rho: float
    z: Array


@dataclass(frozen=True, eq=False)
class Account:
    """z, dual and slope (P, J, K); rho and accepted (P,). `slope` is the noisy gradient that an answer stands for."""

    z: Array
    dual: Array
    slope: Array
    rho: Array
    accepted: Array
    order: Order = Order.ZWD

    @classmethod
    def zero(cls, n_agents: int, shape: tuple[int, int], order: Order) -> Account:
        """Nobody has answered yet."""
        z, dual, slope = (np.zeros((n_agents, *shape)) for _ in range(3))
        return cls(z, dual, slope, np.zeros(n_agents), np.zeros(n_agents, np.int64), order)

    def dual_for(self, p: int, w: Array) -> Array:
        """The dual with which agent p answers a question at w: with z first, it owes the step that w brings."""
        if self.order is Order.WZD:
            return np.asarray(self.dual[p])
        return np.asarray(ascent(self.dual[p], w, self.z[p], float(self.rho[p])))

    def kept_dual(self, one: Taken) -> Array:
        """The dual that agent p keeps with its answer: with w first, it has taken the step of this round."""
        dual = self.dual_for(one.p, one.w)
        return dual if self.order is Order.ZWD else np.asarray(ascent(dual, one.w, one.z, one.rho))

    def hash_of_dual(self, one: Taken) -> str:
        """What an agent says of that dual with its answer, if both sides have the same."""
        return fingerprint(one.t, {"dual": self.kept_dual(one)})

    def after(self, taken: Iterable[Taken]) -> Account:
        """The account after these answers, at most one of each agent."""
        new = self.load({name: array.copy() for name, array in self.save().items()})
        for one in taken:
            p = one.p
            new.slope[p] = self.dual_for(p, one.w) + one.rho * (one.w - one.z)
            new.dual[p] = self.kept_dual(one)
            new.z[p], new.rho[p], new.accepted[p] = one.z, one.rho, one.t
        return new

    def replies(self, t: int, w: Array, rho: float, trace: Trace, before: Account) -> Replies:
        """What the server concludes round t with; `before` is the account when the round began.

        Agents that did not answer in round t are counted with their last slope, faded.
        """
        answered = self.accepted == t
        everybody = bool(answered.all())
        # with w first, the dual of an answer is raised already; then everybody has answered, and none of these is used
        duals = [self.dual[p] if fresh else self.dual_for(p, w) for p, fresh in enumerate(answered)]
        left = FADING ** (t - self.accepted)
        z = np.stack([
            self.z[p] if fresh else trust_center(w, duals[p], left[p] * self.slope[p], rho)
            for p, fresh in enumerate(answered)
        ])  # fmt: skip
        # where nobody has missed a round, the server's own mean of duals is theirs
        in_step = everybody and bool((before.accepted == t - 1).all())
        mean = None if in_step else np.stack(duals).mean(0)
        return Replies(z.mean(0), lambda u: float(np.abs(u - z).sum()), trace, dual_mean=mean)

    def save(self) -> dict[str, Array]:
        """The arrays, by name."""
        return {"z": self.z, "dual": self.dual, "slope": self.slope, "rho": self.rho, "accepted": self.accepted}

    def load(self, saved: Mapping[str, Array]) -> Account:
        """The account that `save` gave."""
        z, dual, slope, rho, accepted = (saved[name] for name in ("z", "dual", "slope", "rho", "accepted"))
        return Account(z, dual, slope, rho, accepted, self.order)
