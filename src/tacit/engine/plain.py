"""The oracle: NumPy float64, one agent after another, nothing clever. Every other engine is tested against it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from tacit.admm.messages import Broadcast, Local, Replies, Reply
from tacit.rounds import Trace, mean_trace
from tacit.types import Array


class Responder(Protocol):
    """An agent, simulated (admm.agent) or guarded (guarded.agent)."""

    def in_double(self) -> Responder:
        """The same agent over records in float64."""

    def respond(self, own: Local, msg: Broadcast) -> tuple[Local, Reply, Trace]:
        """One round: what the agent carries on, what it releases, and what a simulation may look at."""


class PlainEngine:
    """Any number of runs, one after another."""

    path = "plain"

    def __init__(self, runs: Sequence[Sequence[Responder]], shape: tuple[int, int]) -> None:
        self.runs = [PlainRun(agents, shape) for agents in runs]

    def exchange_all(self, msgs: Sequence[Broadcast]) -> list[Replies]:
        """One round of every run: msgs and replies in the order of the runs."""
        return [run.exchange(msg) for run, msg in zip(self.runs, msgs, strict=True)]

    def save(self, r: int) -> dict[str, Array]:
        """All that `load` needs to go on with run r."""
        return self.runs[r].save()

    def load(self, r: int, saved: dict[str, Array]) -> None:
        """Go on from what `save` gave."""
        self.runs[r].load(saved)


class PlainRun:
    """The agents of one run, asked in turn, and what each carries between rounds."""

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
        return {name: np.stack([getattr(own, name) for own in self.locals]) for name in ("z", "dual", "rho")}

    def load(self, saved: dict[str, Array]) -> None:
        """Go on from what `save` gave."""
        z, dual, rho = (saved[name] for name in ("z", "dual", "rho"))
        self.locals = [Local(*own) for own in zip(z, dual, rho.tolist(), strict=True)]
