"""What crosses the wall between the server and an agent, as types.

A Broadcast goes out, a Reply comes back; nothing else leaves an agent. Multipliers never travel: an
agent keeps its own, and the server needs only their mean, which it derives from the replies.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.message import Body, Form, Numbers, Scheduled
from tacit.schedule import Schedule
from tacit.types import Array


class Order(enum.Enum):
    """Which of w and z moves first in a round; the dual is always last."""

    WZD = "wzd"  # the paper
    ZWD = "zwd"  # Huang et al. 2019, and so OutP


@dataclass(frozen=True, eq=False)
class Broadcast:
    """Round t, the global model and the penalty."""

    t: int
    w: Array
    rho: float

    @staticmethod
    def form(shape: tuple[int, int], rho: Schedule) -> Form:
        """What a deployed agent takes: a model of its shape, and the agreed penalty of the round."""
        return Form({"w": Numbers(shape), "rho": Scheduled(rho)})

    def body(self) -> Body:
        """The parts of the message, by name."""
        return {"w": self.w, "rho": self.rho}


@dataclass(frozen=True, eq=False)
class Reply:
    """The released local model z_p, and nothing more."""

    z: Array

    @staticmethod
    def form(shape: tuple[int, int]) -> Form:
        """All that leaves a deployed agent."""
        return Form({"z": Numbers(shape, 1e300)})  # finite: steps are (tacit.guarded.half)


@dataclass(frozen=True, eq=False)
class Local:
    """What an agent carries from one round to the next; rho is that of its last round."""

    z: Array
    dual: Array
    rho: float = 0.0


@dataclass(frozen=True)
class Trace:
    """What a simulation may look at and a deployment must not send: noise and clock, of one agent or of the mean."""

    noise: float  # mean |xi|, gradient units
    noise_parameter: float  # mean |xi| in the units of z
    scale: float  # Laplace b or Gaussian sigma, gradient units
    sensitivity: float
    seconds: dict[str, float]


def mean_trace(traces: Sequence[Trace]) -> Trace:
    """The mean over agents; seconds are summed."""

    def mean(name: str) -> float:
        return float(sum(getattr(trace, name) for trace in traces) / len(traces))

    parts = {part: sum(trace.seconds[part] for trace in traces) for part in traces[0].seconds}
    return Trace(mean("noise"), mean("noise_parameter"), mean("scale"), mean("sensitivity"), parts)


@dataclass(frozen=True, eq=False)
class Replies:
    """What an engine hands back: the mean of the released z_p, how far they are from w, and a trace."""

    z_mean: Array
    violation: Callable[[Array], float]  # w -> sum_p |w - z_p|_1
    trace: Trace
    precision: type[np.floating[Any]] = np.float64  # in which agents compute

    def heard(self, w: Array) -> Array:
        """w as the agents have it: rounded as theirs is, so that server and agents raise the duals by the same."""
        return w.astype(self.precision).astype(np.float64)
