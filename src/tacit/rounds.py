"""The one loop: the server asks, agents answer, the server concludes.

Training, sweeps, cost estimates, convergence studies, audits and distributed runs all consume `rounds`. They differ in
the exchange, which carries questions to agents and brings their answers back, and in who listens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np

from tacit.types import Array

Q = TypeVar("Q")
A = TypeVar("A", contravariant=True)


@dataclass(frozen=True, eq=False)
class State:
    """What the server carries to the next round: t rounds are done, w is the model, `average` the mean of all w.

    `own` holds what else a method needs, by name.
    """

    t: int
    w: Array
    average: Array
    own: Mapping[str, Array] = field(default_factory=dict)

    @classmethod
    def zero(cls, shape: tuple[int, ...], **own: Array) -> State:
        """The state before the first round, with a model that is zero."""
        return cls(0, np.zeros(shape), np.zeros(shape), own)

    def next(self, w: Array, **own: Array) -> State:
        """The state after one more round, which ended with the model w."""
        t = self.t + 1
        return State(t, w, self.average + (w - self.average) / t, own)


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
class Info:
    """What one would plot of a round. Read an Info before the next round, when an engine may reuse its arrays.

    What a method does not have is None: a penalty, a trace of its noise, local models that differ from w.
    """

    t: int
    step: float  # |w+ - w|_F
    rho: float | None = None
    trace: Trace | None = None
    violation: Callable[[], float] | None = None  # sum_p |w - z_p|_1: a pass over every z_p, so only where it is read
    seen: tuple[Array, ...] = ()  # everything that those who are not trusted saw of this round
    sent: float = 0.0  # bytes that an agent sent, on average, in float32


class Server(Protocol[Q, A]):
    """The server's half of a method, for one run: it asks Q, and is answered A."""

    @property
    def rounds(self) -> int: ...

    def start(self) -> State:
        """The state before the first round."""

    def ask(self, state: State) -> Q:
        """What the server sends to agents."""

    def conclude(self, state: State, question: Q, answers: A) -> tuple[State, Info]:
        """The next state, and what one would plot of the round."""


Exchange = Callable[[Sequence[Any]], Sequence[Any]]  # the questions of all runs -> the answers to each


def rounds(
    servers: Sequence[Server[Any, Any]], states: Sequence[State], exchange: Exchange
) -> Iterator[list[tuple[State, Info]]]:
    """Runs of equal length in lockstep: the state and the info of every run, after each round that is left."""
    current = list(states)
    while current[0].t < servers[0].rounds:
        questions = [server.ask(state) for server, state in zip(servers, current, strict=True)]
        answers = exchange(questions)
        ended = [
            server.conclude(state, question, answer)
            for server, state, question, answer in zip(servers, current, questions, answers, strict=True)
        ]
        current = [state for state, _ in ended]
        yield ended
