"""The server's half: init, and run_round -> (state, info).

The server never sees a multiplier. Because every agent shares rho, (4a) and (4c) are linear in z_p and
lambda_p, and the server needs their means alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tacit.admm.messages import Broadcast, Order, Replies, Trace
from tacit.admm.updates import ascent, consensus
from tacit.schedule import Schedule
from tacit.types import Array


@dataclass(frozen=True, eq=False)
class State:
    """What the next round needs, and the running mean of w; t rounds are done."""

    t: int
    w: Array
    z_mean: Array
    dual_mean: Array
    w_average: Array


@dataclass(frozen=True, eq=False)
class Info:
    """What one would plot of a round; to be read before the next one, when an engine may reuse its arrays."""

    t: int
    rho: float
    step: float  # |w+ - w|_F
    trace: Trace
    measure_violation: Callable[[], float]

    @property
    def consensus_violation(self) -> float:
        """sum_p |w - z_p|_1: a pass over every z_p, so only where it is read."""
        return self.measure_violation()


Exchange = Callable[[Broadcast], Replies]


def init(shape: tuple[int, int]) -> State:
    """Every variable zero, as the authors start."""
    zero = np.zeros(shape)
    return State(0, zero, zero, zero, zero)


def run_round(state: State, exchange: Exchange, rho: Schedule, order: Order) -> tuple[State, Info]:
    """One round of the ADMM family, in either order of w and z."""
    msg = ask(state, rho, order)
    return conclude(state, msg, exchange(msg), order)


def ask(state: State, rho: Schedule, order: Order) -> Broadcast:
    """What the server sends: the new w if it moves first, else the last one."""
    t = state.t + 1
    w = consensus(state.z_mean, state.dual_mean, rho(t)) if order is Order.WZD else state.w
    return Broadcast(t, w, rho(t))


def conclude(state: State, msg: Broadcast, replies: Replies, order: Order) -> tuple[State, Info]:
    """What the server makes of the replies."""
    z = replies.z_mean
    w = replies.heard(msg.w if order is Order.WZD else consensus(z, state.dual_mean, msg.rho))
    dual = ascent(state.dual_mean, w, z, msg.rho)
    average = state.w_average + (w - state.w_average) / msg.t
    step = math.sqrt(np.square(w - state.w).sum())  # a norm through BLAS would wake its threads beside an engine's
    return State(msg.t, w, z, dual, average), Info(msg.t, msg.rho, step, replies.trace, lambda: replies.violation(w))
