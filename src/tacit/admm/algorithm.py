"""The server's half: init, and run_round -> (state, info).

The server never sees a multiplier. Because every agent shares rho, (4a) and (4c) are linear in z_p and
lambda_p, and the server needs their means alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tacit.admm.messages import Broadcast, Order, Trace
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
class Replies:
    """What an engine hands back: the mean of the released z_p, sum_p |w - z_p|_1, and its traces."""

    z_mean: Array
    violation: Callable[[Array], float]
    traces: tuple[Trace, ...]


@dataclass(frozen=True, eq=False)
class Info:
    """What one would plot of a round."""

    t: int
    rho: float
    step: float  # |w+ - w|_F
    consensus_violation: float
    traces: tuple[Trace, ...]


Exchange = Callable[[Broadcast], Replies]


def init(shape: tuple[int, int]) -> State:
    """Every variable zero, as the authors start."""
    zero = np.zeros(shape)
    return State(0, zero, zero, zero, zero)


def run_round(state: State, exchange: Exchange, rho: Schedule, order: Order) -> tuple[State, Info]:
    """One round of the ADMM family, in either order of w and z."""
    t = state.t + 1
    penalty = rho(t)
    w = consensus(state.z_mean, state.dual_mean, penalty) if order is Order.WZD else state.w
    replies = exchange(Broadcast(t, w, penalty))
    z_mean = replies.z_mean
    if order is Order.ZWD:
        w = consensus(z_mean, state.dual_mean, penalty)
    dual_mean = ascent(state.dual_mean, w, z_mean, penalty)
    average = state.w_average + (w - state.w_average) / t
    info = Info(t, penalty, float(np.linalg.norm(w - state.w)), replies.violation(w), replies.traces)
    return State(t, w, z_mean, dual_mean, average), info
