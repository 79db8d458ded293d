"""Engines by name, each for a batch of runs over the same shards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from tacit.admm.messages import Broadcast, Replies
from tacit.admm.rule import Exact
from tacit.engine.fast import FastEngine
from tacit.engine.gradients import Lane
from tacit.engine.plain import PlainEngine, Responder
from tacit.errors import IncompatibleError
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


def _fast(lanes: Sequence[Lane], shape: tuple[int, int], _device: str) -> Batch:
    return Separately(lanes, shape) if _exact(lanes) else FastEngine(lanes, shape)


def _torch(lanes: Sequence[Lane], shape: tuple[int, int], device: str) -> Batch:
    from tacit.engine.torch import TorchEngine  # torch takes seconds to import, and may not be there

    return Separately(lanes, shape) if _exact(lanes) else TorchEngine(lanes, shape, device)


def _exact(lanes: Sequence[Lane]) -> bool:
    """Exact local solves need float64 to reach their tolerance: those runs stay with the plain engine."""
    return any(isinstance(run[0].method.rule, Exact) for run in lanes)


ENGINES: dict[str, Callable[[Sequence[Lane], tuple[int, int], str], Batch]] = {
    "plain": lambda lanes, shape, _device: Separately(lanes, shape),
    "fast": _fast,
    "torch": _torch,
}


def require(engine: str, device: str) -> None:
    """Refuse an engine or a device that is not on this machine, before anything is written."""
    if engine == "torch":
        from tacit.engine.torch import find_device

        find_device(device)
    elif device != "cpu":
        raise IncompatibleError(f"the {engine} engine runs on the cpu, not on {device!r}: add --engine torch.")
