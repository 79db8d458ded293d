"""The oracle: NumPy float64, one agent after another, nothing clever. Every other engine is tested against it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tacit.admm.agent import Agent
from tacit.admm.messages import Broadcast, Local, Replies
from tacit.rounds import mean_trace
from tacit.types import Array


class PlainEngine:
    """Any number of runs, one after another; `locals` is what the agents of each run carry between rounds."""

    path = "plain"

    def __init__(self, runs: Sequence[Sequence[Agent]], shape: tuple[int, int]) -> None:
        self.runs = [[agent.in_double() for agent in agents] for agents in runs]
        self.locals = [[agent.start(shape) for agent in agents] for agents in runs]

    def exchange_all(self, msgs: Sequence[Broadcast]) -> list[Replies]:
        return [self._exchange(r, msg) for r, msg in zip(range(len(self.runs)), msgs, strict=True)]

    def _exchange(self, r: int, msg: Broadcast) -> Replies:
        """The answers of all agents of run r."""
        answers = [agent.respond(own, msg) for agent, own in zip(self.runs[r], self.locals[r], strict=True)]
        self.locals[r] = [own for own, _, _ in answers]
        z = np.stack([reply.z for _, reply, _ in answers])
        trace = mean_trace([trace for _, _, trace in answers])
        return Replies(z.mean(0), lambda w: float(np.abs(w - z).sum()), trace)

    def save(self, r: int) -> dict[str, Array]:
        return {name: np.stack([getattr(own, name) for own in self.locals[r]]) for name in ("z", "dual", "rho")}

    def load(self, r: int, saved: dict[str, Array]) -> None:
        z, dual, rho = (saved[name] for name in ("z", "dual", "rho"))
        self.locals[r] = [Local(*own) for own in zip(z, dual, rho.tolist(), strict=True)]
