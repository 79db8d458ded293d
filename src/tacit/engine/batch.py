"""Engines by name, each for a batch of runs over the same shards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from tacit.admm.messages import Broadcast, Replies
from tacit.admm.rule import Exact
from tacit.engine.fast import FastEngine
from tacit.engine.gradients import Lane
from tacit.engine.plain import PlainEngine, Responder
from tacit.types import Array


class Batch(Protocol):
    """R runs in lockstep; run r is saved and loaded by itself."""

    @property
    def path(self) -> str: ...

    def exchange_all(self, msgs: Sequence[Broadcast]) -> list[Replies]: ...

    def save(self, r: int) -> dict[str, Array]: ...

    def load(self, r: int, saved: dict[str, Array]) -> None: ...


class Separately:
    """Plain engines, one a run."""

    path = "plain"

    def __init__(self, lanes: Sequence[Sequence[Responder]], shape: tuple[int, int]) -> None:
        self.engines = [PlainEngine(run, shape) for run in lanes]

    def exchange_all(self, msgs: Sequence[Broadcast]) -> list[Replies]:
        return [engine.exchange(msg) for engine, msg in zip(self.engines, msgs, strict=True)]

    def save(self, r: int) -> dict[str, Array]:
        return self.engines[r].save()

    def load(self, r: int, saved: dict[str, Array]) -> None:
        self.engines[r].load(saved)


def _fast(lanes: Sequence[Lane], shape: tuple[int, int]) -> Batch:
    """Exact local solves need float64 to reach their tolerance: those runs stay with the plain engine."""
    exact = any(isinstance(run[0].method.rule, Exact) for run in lanes)
    return Separately(lanes, shape) if exact else FastEngine(lanes, shape)


ENGINES: dict[str, Callable[[Sequence[Lane], tuple[int, int]], Batch]] = {"plain": Separately, "fast": _fast}
