"""Message types exchanged between the server and the agents of a simulation.

A Broadcast goes out, a Reply comes back. Multipliers never travel: an agent keeps its own, and the server needs only
their mean, which it derives from the replies. Deployed agents answer queries instead (tacit.agent).
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.rounds import Trace
from tacit.types import Array


class Order(enum.Enum):
    """Which of w and z moves first in a round; the dual is always last."""

    WZD = "wzd"  # the paper
    ZWD = "zwd"  # Huang et al. 2019, and so OutP


@dataclass(frozen=True, eq=False)
class Broadcast:
    """Round t, the global model, and the penalty where a method has one; `to` lists the agents asked, None for all.

    A method without a global model passes on the models that agents released last as w, (P, J, K).
    """

    t: int
    w: Array
    rho: float = 0.0
    to: Array | None = None


@dataclass(frozen=True, eq=False)
class Reply:
    """The released local model z_p, and nothing more."""

    z: Array


@dataclass(frozen=True, eq=False)
class Local:
    """What an agent carries from one round to the next; rho is that of its last round."""

    z: Array
    dual: Array
    rho: float = 0.0

    @classmethod
    def first(cls, z: Array) -> Local:
        """What an agent carries into its first round: its dual is zero."""
        return cls(z, np.zeros_like(z))


@dataclass(frozen=True, eq=False)
class Replies:
    """What an engine hands back: the mean of the released z_p, how far they are from w, and a trace."""

    z_mean: Array
    violation: Callable[[Array], float] | None  # w -> sum_p |w - z_p|_1; None where single z_p are hidden
    trace: Trace
    precision: type[np.floating[Any]] = np.float64  # in which agents compute
    number_bytes: float = 4.0  # of one number that an agent sent: float32, or a masked word
    dual_mean: Array | None = None  # of the lambda_p that these z_p were made with, if an agent has missed a round

    def heard(self, w: Array) -> Array:
        """w as the agents have it: rounded as theirs is, so that server and agents raise the duals by the same."""
        return w.astype(self.precision).astype(np.float64)
