"""The oracle: NumPy float64, one agent after another, nothing clever."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from tacit.admm.messages import Broadcast, Local, Replies, Reply
from tacit.rounds import Trace, mean_trace
from tacit.types import Array


class Responder(Protocol):
    """An agent, simulated (admm.agent) or guarded (guarded.agent)."""

    def in_double(self) -> Responder: ...

    def respond(self, own: Local, msg: Broadcast) -> tuple[Local, Reply, Trace]: ...


class PlainEngine:
    """Agents in one process, asked in turn. It holds what each carries between rounds."""

    def __init__(self, agents: Sequence[Responder], shape: tuple[int, int]) -> None:
        self.agents = tuple(agent.in_double() for agent in agents)
        zero = np.zeros(shape)
        self.locals = [Local(zero, zero) for _ in self.agents]

    def exchange(self, msg: Broadcast) -> Replies:
        """Every agent's answer to one broadcast."""
        answers = [agent.respond(own, msg) for agent, own in zip(self.agents, self.locals, strict=True)]
        self.locals = [own for own, _, _ in answers]
        z = np.stack([reply.z for _, reply, _ in answers])
        trace = mean_trace([trace for _, _, trace in answers])
        return Replies(z.mean(0), lambda w: float(np.abs(w - z).sum()), trace)

    def save(self) -> dict[str, Array]:
        """All that `load` needs to go on from here."""
        return {
            "z": np.stack([own.z for own in self.locals]),
            "dual": np.stack([own.dual for own in self.locals]),
            "rho": np.array([own.rho for own in self.locals]),
        }

    def load(self, saved: dict[str, Array]) -> None:
        """Go on from what `save` gave."""
        self.locals = [
            Local(z, dual, float(rho)) for z, dual, rho in zip(saved["z"], saved["dual"], saved["rho"], strict=True)
        ]
