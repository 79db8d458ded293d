"""The loop of every run: the server asks, the agents answer, the server concludes.

Training, sweeps, cost estimates, convergence studies, audits and distributed runs all consume `rounds`. They differ in
the exchange, which carries questions to agents and brings the answers back, and in who listens.
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

    `own` holds, by name, everything else that a method needs.
    """

    t: int
    w: Array
    average: Array
    own: Mapping[str, Array] = field(default_factory=dict)

    @classmethod
    def zero(cls, shape: tuple[int, ...], **own: Array) -> State:
        """Return the state before the first round; its model is zero."""
        return cls(0, np.zeros(shape), np.zeros(shape), own)

    def next(self, w: Array, **own: Array) -> State:
        """Return the state after one more round, which ended with the model w."""
        t = self.t + 1
        return State(t, w, self.average + (w - self.average) / t, own)


@dataclass(frozen=True)
class Trace:
    """The noise and the seconds of one agent, or of the mean agent; a deployed agent must not send its trace."""

    noise: float  # mean |xi|, gradient units
    noise_parameter: float  # mean |xi| in the units of z
    scale: float  # Laplace b or Gaussian sigma, gradient units
    sensitivity: float
    binding: float | None  # share of the entries of z that W or the trust region stops; None where nobody counted
    seconds: dict[str, float]

    @classmethod
    def of(cls, numbers: Sequence[float], seconds: dict[str, float]) -> Trace:
        """Return the trace with these numbers, in the order of NUMBERS."""
        noise, noise_parameter, scale, sensitivity, binding = numbers
        return cls(noise, noise_parameter, scale, sensitivity, binding, seconds)


@dataclass(frozen=True)
class Spread:
    """The noise of one answer, from public numbers: its scale, E|xi| in units of the scale, and the sensitivity."""

    scale: float
    mean_size: float
    sensitivity: float


FADING = 0.5  # of a noisy answer that is used again, for each round since it was released (benchmarks/stale.py)
NUMBERS = ("noise", "noise_parameter", "scale", "sensitivity", "binding")  # of a Trace, in its order


def mean_trace(traces: Sequence[Trace]) -> Trace:
    """Return the mean of the traces of all agents; seconds are summed."""

    def mean(name: str) -> float:
        return float(sum(getattr(trace, name) for trace in traces) / len(traces))

    parts = {part: sum(trace.seconds[part] for trace in traces) for part in traces[0].seconds}
    binding = None if any(trace.binding is None for trace in traces) else mean("binding")
    return Trace(mean("noise"), mean("noise_parameter"), mean("scale"), mean("sensitivity"), binding, parts)


@dataclass(frozen=True, eq=False)
class Info:
    """What one would plot of a round. Read an Info before the next round, when an engine may reuse its arrays.

    A field is None if the method has no such thing: a penalty, a trace of noise, local models that differ from w.
    """

    t: int
    step: float  # |w+ - w|_F
    rho: float | None = None
    trace: Trace | None = None
    violation: Callable[[], float] | None = None  # sum_p |w - z_p|_1, computed on call: it passes over every z_p
    seen: tuple[Array, ...] = ()  # everything of this round that parties who are not trusted saw
    sent: float = 0.0  # bytes that an agent sent, on average: of float32, or of words of a secure sum


class Server(Protocol[Q, A]):
    """The server's half of a method, for one run: the server asks a question Q and gets the answers A."""

    @property
    def rounds(self) -> int: ...

    def start(self) -> State:
        """Return the state before the first round."""

    def ask(self, state: State) -> Q:
        """Return the question that the server sends to the agents."""

    def conclude(self, state: State, question: Q, answers: A) -> tuple[State, Info]:
        """Return the next state, and what one would plot of the round."""


Exchange = Callable[[Sequence[Any]], Sequence[Any]]  # the questions of all runs -> the answers of all runs


def rounds(
    servers: Sequence[Server[Any, Any]], states: Sequence[State], exchange: Exchange
) -> Iterator[list[tuple[State, Info]]]:
    """Compute runs of equal length in lockstep; yield the state and the info of every run after each round."""
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
