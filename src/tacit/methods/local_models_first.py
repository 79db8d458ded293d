"""ADMM in which the local models z_p move before w, as in Huang et al. (2019): what such methods have in common.

    z_p    = what the method makes of (w, z_p, lambda_p)        at agent p, which sends z_p
    w+     = 1/P sum_p (z_p - lambda_p / rho)                   (4a), at the server
    lambda_p += rho (w+ - z_p)                                  (4c), at agent p, once w+ has arrived

The multipliers lambda_p start at zero, and the two updates leave sum_p lambda_p = 0 after every round. So (4a) is the
mean of the z_p, and the server keeps no multiplier.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from tacit.admm.messages import Broadcast
from tacit.admm.updates import ascent
from tacit.methods.method import Answers, AsksEveryone, Own, StartsInW
from tacit.methods.task import Facts, Task
from tacit.rounds import State
from tacit.types import Array


class LocalModelsFirst(StartsInW, AsksEveryone, ABC):
    """Both halves of such a method, but for what agents carry, their step, and the penalty."""

    @abstractmethod
    def penalty(self, facts: Facts, t: int) -> float:
        """The penalty rho of round t."""

    @abstractmethod
    def released(self, agents: Task, z: Array, dual: Array, msg: Broadcast) -> Array:
        """The next z_p, with its noise: all that leaves agent p."""

    def answer(self, agents: Task, own: Own, msg: Broadcast) -> tuple[Own, Answers]:
        dual = caught_up(own, msg, lambda t: self.penalty(agents, t))
        z = self.released(agents, own["z"], dual, msg)
        return {"z": z, "dual": dual}, {"z": z}

    def conclude(self, facts: Facts, state: State, msg: Broadcast, answers: Answers) -> State:  # noqa: ARG002
        return state.next(answers["z"].mean(0))


def caught_up(own: Own, msg: Broadcast, rho: Callable[[int], float]) -> Array:
    """lambda_p after the last round, whose w+ this message brings (4c); before round 1 there was no such round."""
    dual: Array = ascent(own["dual"], msg.w, own["z"], rho(msg.t - 1) if msg.t > 1 else 0.0)
    return dual
