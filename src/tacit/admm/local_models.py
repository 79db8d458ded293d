"""The agents' half of a deployed ADMM round, at the server: z_p, dual_p and the last noisy gradient of every agent.

A deployed agent answers with the gradient of its records plus noise, and keeps no state. z_p and dual_p are functions
of this noisy gradient and of earlier ones, so that the server computes them as `admm.agent.Agent` does in a simulation.

Behind a secure sum there is one row, the mean. Linearised at w, the step of an agent is
z_p = w + (dual_p - f'_p(w) - xi_p) / rho (with a proximal term, as linear in z_p, dual_p and f'_p(w) + xi_p), and (4a)
and (4c) are linear too. So the means of z_p and dual_p, which are all that the server needs, follow from the mean of
f'_p(w) + xi_p. If W or a trust region binds, the mean is projected, and not each agent.

Linearised at z_p this fails: a z_p that stays hidden carries 1/P of the noise, f'_p(z_p) then moves through z_p as well
as through the record's own gradient, and clip / I no longer bounds it.

A missing agent is counted with the noisy gradient that it last released, halved with every round that it misses. That
costs nothing: what was released is used again. (4a) takes z_p - lambda_p / rho of each agent, where
z_p = w + (lambda_p - slope_p) / rho, so that lambda_p cancels and w moves as gradient descent does, on gradients of
which some are old. Halving bounds what the noise of one release can do: used again in full, it would pull w the same
way round after round; so it counts 1 + 1/2 + 1/4 + ... < 2 times in all, however long the agent is away
(docs/missing.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tacit.admm.agent import Agent
from tacit.admm.messages import Broadcast, Local, Order, Replies
from tacit.admm.updates import ascent, trust_center
from tacit.message import Body
from tacit.rounds import FADING, Spread, Trace, mean_trace
from tacit.types import Array


@dataclass(eq=False)
class LocalModels:
    """z, dual and slope (R, J, K), rho and accepted (R,), moved in place: R is the number of agents, or 1 for a mean.

    `agents` has the rule and the objective of each row, and no record of it is read. An answer is a noisy gradient at
    the point of its row. `slope` is kept if agents may be missing (`fades`).
    """

    agents: Sequence[Agent]
    shape: tuple[int, int]
    n_agents: int  # of the run; a single row is their mean
    fades: bool = False
    z: Array = field(init=False)
    dual: Array = field(init=False)
    slope: Array | None = field(init=False)
    rho: Array = field(init=False)
    accepted: Array = field(init=False)
    binding: Array = field(init=False)  # the share of the entries of z that a constraint stopped

    def __post_init__(self) -> None:
        rows = len(self.agents)
        first = [agent.start(self.shape) for agent in self.agents]
        self.z, self.dual = np.stack([own.z for own in first]), np.stack([own.dual for own in first])
        self.slope = np.zeros((rows, *self.shape)) if self.fades else None
        self.rho, self.accepted, self.binding = np.zeros(rows), np.zeros(rows, np.int64), np.zeros(rows)

    @property
    def is_mean(self) -> bool:
        """Whether the one row is the mean of several agents."""
        return len(self.agents) < self.n_agents

    def parameters(self, msg: Broadcast, p: int) -> Body:
        """Return what agent p is asked: the gradient at z_p or at w."""
        return {"point": self.agents[p].variant.rule.at.of(self._own(p), msg)}

    def move(self, p: int, msg: Broadcast, answer: Array, whole: float = 1.0) -> None:
        """Take the step of row p, from its noisy gradient only.

        `whole` is the number of all records over that of the records that were summed: it scales the sum up to all.
        """
        agent, own = self.agents[p], self._own(p)
        noisy = answer.reshape(self.shape)
        if self.is_mean:
            noisy = noisy * (whole / self.n_agents)
        rule, owed = agent.variant.rule, agent.caught_up(own, msg)
        slope = noisy + agent.regular_slope(rule.at.of(owed, msg), msg.w)
        z, self.binding[p] = rule.solve(slope, lambda _: slope, owed, msg, agent.problem.domain)
        if self.slope is not None:
            self.slope[p] = owed.dual + msg.rho * (msg.w - z)
        self.dual[p] = ascent(owed.dual, msg.w, z, msg.rho) if agent.variant.order is Order.WZD else owed.dual
        self.z[p], self.rho[p], self.accepted[p] = z, msg.rho, msg.t

    def replies(
        self, msg: Broadcast, spreads: Sequence[Spread], seconds: Mapping[str, float], in_step: bool = True
    ) -> Replies:
        """Return what the server concludes a round with.

        Agents that have missed the round are counted with their last slope, faded. `in_step`: no agent has missed this
        round or the one before, so that the server's own mean of the duals is right.
        """
        trace = self._trace(msg, spreads, dict(seconds))
        if self.is_mean:
            return Replies(self.z[0], None, trace, number_bytes=8.0)
        z, duals = self._present(msg), None
        if not in_step:
            fresh = self.accepted == msg.t
            # an answer has moved its dual already; a missing agent still owes the dual step of its last z
            duals = np.stack([self.dual[p] if there else self._owed(p, msg).dual for p, there in enumerate(fresh)])
        mean = None if duals is None else duals.mean(0)
        return Replies(z.mean(0), lambda u: float(np.abs(u - z).sum()), trace, dual_mean=mean)

    def save(self) -> dict[str, Array]:
        """Return copies of the arrays, by name."""
        return {name: array.copy() for name, array in self._arrays().items()}

    def load(self, saved: Mapping[str, Array]) -> None:
        """Continue from what `save` returned."""
        for name, array in self._arrays().items():
            array[...] = saved[name]

    def _arrays(self) -> dict[str, Array]:
        found = {"z": self.z, "dual": self.dual, "rho": self.rho, "accepted": self.accepted}
        return found if self.slope is None else {**found, "slope": self.slope}

    def _own(self, p: int) -> Local:
        return Local(self.z[p], self.dual[p], float(self.rho[p]))

    def _owed(self, p: int, msg: Broadcast) -> Local:
        return self.agents[p].caught_up(self._own(p), msg)

    def _present(self, msg: Broadcast) -> Array:
        """Return z with the step of a faded slope in the rows of agents that have missed the round."""
        missed = np.flatnonzero(self.accepted != msg.t)
        if not len(missed):
            return self.z
        assert self.slope is not None, "agents may be missing only if their last slopes are kept"
        z = self.z.copy()
        for p in missed:
            left = FADING ** int(msg.t - self.accepted[p])
            z[p] = trust_center(msg.w, self._owed(int(p), msg).dual, left * self.slope[p], msg.rho)
        return z

    def _trace(self, msg: Broadcast, spreads: Sequence[Spread], seconds: dict[str, float]) -> Trace:
        """Return numbers that a run may plot, all of them public: a deployed agent keeps its noise to itself."""
        traces = []
        for agent, spread, binding in zip(self.agents, spreads, self.binding, strict=True):
            size = spread.scale * spread.mean_size
            if self.is_mean:
                size /= self.n_agents
            mu = agent.variant.rule.stiffness(msg.rho, msg.t)
            traces.append(Trace(size, size / mu, spread.scale, spread.sensitivity, float(binding), {}))
        one = mean_trace(traces)
        return Trace(one.noise, one.noise_parameter, one.scale, one.sensitivity, one.binding, seconds)

