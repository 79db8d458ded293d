"""The server's half of the ADMM family.

The server never sees a multiplier. Because every agent shares rho, (4a) and (4c) are linear in z_p and lambda_p, and
the server needs their means alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from tacit.admm.messages import Broadcast, Order, Replies
from tacit.admm.updates import ascent, consensus, heavy_ball
from tacit.problem.domain import Domain, Everywhere, nearest_to_zero
from tacit.rounds import Info, State
from tacit.schedule import Schedule
from tacit.types import Array


@dataclass(frozen=True)
class Consensus:
    """A tacit.rounds.Server for T rounds, in either order of w and z. Its state holds the means of z_p and lambda_p."""

    rounds: int
    shape: tuple[int, int]
    rho: Schedule
    order: Order
    momentum: float = 0.0  # only where z moves first: what the server does with releases costs no privacy
    domain: Domain = Everywhere()

    def start(self) -> State:
        """Every variable is zero, as the authors start; but models are the point of W that is nearest to zero."""
        zero, first = np.zeros(self.shape), nearest_to_zero(self.domain, self.shape)
        own = {"z_mean": first, "dual_mean": zero} | ({"moved": zero} if self.momentum else {})
        return State(0, first, zero, own)

    def ask(self, state: State) -> Broadcast:
        """The server sends the new w if w moves first, else the last one."""
        t = state.t + 1
        rho = self.rho(t)
        first = self.order is Order.WZD
        return Broadcast(t, consensus(state.own["z_mean"], state.own["dual_mean"], rho) if first else state.w, rho)

    def conclude(self, state: State, msg: Broadcast, replies: Replies) -> tuple[State, Info]:
        """The server moves w if z moved first, and the mean of the duals after both."""
        z, dual = replies.z_mean, state.own["dual_mean"] if replies.dual_mean is None else replies.dual_mean
        w = msg.w if self.order is Order.WZD else consensus(z, dual, msg.rho)
        w = replies.heard(heavy_ball(w, state.own["moved"], self.momentum) if self.momentum else w)
        step = math.sqrt(np.square(w - state.w).sum())  # a norm through BLAS would wake its threads beside an engine's
        apart = None if replies.violation is None else partial(replies.violation, w)
        info = Info(msg.t, step, msg.rho, replies.trace, apart, sent=replies.number_bytes * z.size)
        own = {"z_mean": z, "dual_mean": ascent(dual, w, z, msg.rho)}
        return state.next(w, **own, **({"moved": self._moved(state.w, w)} if self.momentum else {})), info

    def _moved(self, before: Array, after: Array) -> Array:
        """The move inside W: a w that is pressed against the faces of W has not moved, and repeats nothing."""
        return self.domain.project(after) - self.domain.project(before)
