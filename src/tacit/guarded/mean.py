"""What a secure sum of gradients is, apart from masks and ledgers: its public numbers, and what the server makes of it.

The step of ADMM needs the sum alone. Linearised at w, an agent's step is z_p = w + (dual_p - f'_p(w) - xi_p) / rho
(with a proximal term, as linear in z_p, dual_p and f'_p(w) + xi_p). (4a) and (4c) are linear too. So the means of z_p
and dual_p, which are all that the server needs, follow from the mean of f'_p(w) + xi_p: `Mean` is the agent that has
the means of all. Where W or a trust region binds, `Mean` is projected, and not each agent. An agent needs no state.

Linearised at z_p this fails: a z_p that stays hidden carries 1/P of the noise, f'_p(z_p) then moves through z_p as well
as through the record's own gradient, and clip / I no longer bounds it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from tacit.admm.messages import Broadcast, Local, Replies
from tacit.errors import IncompatibleError
from tacit.guarded.gate import Question
from tacit.guarded.half import AdmmHalf
from tacit.message import Form, Names, Numbers, Whole
from tacit.privacy.exact import Law
from tacit.privacy.noise import stream
from tacit.privacy.summed import Peers, Summed, attempt_of
from tacit.rounds import Trace
from tacit.types import Array


def public(halves: Sequence[AdmmHalf], releases: int) -> Summed:
    """The numbers of a run that all agents agree on, from the halves of all of them, here or elsewhere."""
    first = halves[0]
    if first.law is not Law.GAUSSIAN or not first.gradient.query.additive:
        raise IncompatibleError("a secure sum takes Gaussian noise, and gradients at w: use the sound preset.")
    most = max(len(half.agent.shard) for half in halves)
    sensitivity = max(half.sensitivity for half in halves)  # it has room for what float64 adds to a sum
    return Summed(first.multiplier, sensitivity, most * sensitivity, first.dimension, releases)


class Adds(Protocol):
    """An agent of a secure sum, deployed or simulated."""

    @property
    def name(self) -> str: ...

    def words(self, question: Question) -> Array:
        """What the agent adds to the sum, (d,) uint64."""


@dataclass(frozen=True, eq=False)
class Simulated:
    """An agent of a simulation: the same integers with noise of a seed, no masks, which cancel, and no ledger."""

    name: str
    half: AdmmHalf
    summed: Summed
    colluding: int

    def words(self, question: Question) -> Array:
        t, body = question.t, question.body
        assert isinstance(t, int)
        assert isinstance(body, dict)
        attempt = attempt_of(self.summed, Peers(len(body["peers"]), self.colluding))
        with np.errstate(all="ignore"):
            bits = stream(self.half.agent.stream, t, body["attempt"])
            return attempt.share(value_at(self.half, t, body["w"]), bits).ravel()


def asked_of(shape: tuple[int, int], repetitions: int) -> Form:
    """What an agent is asked: a model, and an attempt over peers."""
    return Form({"w": Numbers(shape), "attempt": Whole(repetitions), "peers": Names()})


def value_at(half: AdmmHalf, t: int, w: Array) -> Array:
    """What the records say at w, before noise."""
    nothing = Local(w, w)  # a gradient at w asks for no state of the agent
    return half.value(nothing, t, {"w": w, "rho": half.rho(t)})


@dataclass(frozen=True, eq=False)
class Mean:
    """The agent that has the means of all, at the server: it moves by totals alone."""

    half: AdmmHalf  # of any agent: what it uses is public
    summed: Summed
    sizes: dict[str, int]  # records of each agent, by name
    own: Local
    binding: float | None = None  # the share of the entries of the last step that a constraint stopped

    @classmethod
    def zero(cls, half: AdmmHalf, summed: Summed, sizes: dict[str, int]) -> Mean:
        """Before the first round."""
        return cls(half, summed, sizes, half.start)

    def at(self, own: Local) -> Mean:
        """The same with another state: that of a checkpoint."""
        return replace(self, own=own)

    def after(self, msg: Broadcast, total: Array, present: Sequence[str]) -> Mean:
        """The mean agent after a round in which `present` added up to `total`, (d,) or (J, K).

        Where agents are missing, the gradient of all is taken to be that of the records that are present.
        """
        half, body = self.half, msg.body()
        whole = sum(self.sizes.values()) / sum(self.sizes[name] for name in present)
        own = half.take_up(self.own, msg.t, body)
        z, binding = half.step(own, msg.t, body, total.reshape(half.shape) * (whole / len(self.sizes)))
        return replace(self, own=half.carry(own, body, z), binding=binding)

    def replies(self, msg: Broadcast, present: int, colluding: int, seconds: dict[str, float]) -> Replies:
        """What the server concludes the round with; how far single agents are from w is hidden."""
        trace = self._trace(msg, Peers(present, colluding), seconds)
        return Replies(self.own.z, None, trace, number_bytes=8.0)

    def _trace(self, msg: Broadcast, peers: Peers, seconds: dict[str, float]) -> Trace:
        scale = self.summed.scale * math.sqrt(peers.present / peers.honest)  # of the whole sum
        size = scale * math.sqrt(2 / math.pi) / len(self.sizes)
        sensitivity = self.summed.scale / self.summed.multiplier
        mu = self.half.stiffness(msg.t, msg.body())
        return Trace(size, size / mu, scale, sensitivity, self.binding, seconds)
