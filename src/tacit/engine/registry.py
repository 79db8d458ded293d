"""What an engine is, and the engines by name. Another engine is one file with a Builder, and one line in ENGINES.

The loop of tacit.run builds one engine for all runs of a batch, and calls `exchange_all` once a round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from tacit.admm.agent import Agent
from tacit.admm.messages import Broadcast, Replies
from tacit.admm.rule import Exact
from tacit.engine.plain import PlainEngine
from tacit.errors import IncompatibleError
from tacit.registry import Registry
from tacit.types import Array

DEVICES = ("cpu", "cuda", "mps")

Agents = Sequence[Agent]  # of one run


class Engine(Protocol):
    """R runs over the same shards, in lockstep; run r is saved and loaded by itself."""

    @property
    def path(self) -> str:
        """Which code computes a round, for the result of a run."""

    def exchange_all(self, msgs: Sequence[Broadcast]) -> list[Replies]:
        """One round of every run: msgs and replies in the order of the runs."""

    def save(self, r: int) -> dict[str, Array]:
        """All that `load` needs to go on with run r."""

    def load(self, r: int, saved: dict[str, Array]) -> None:
        """Go on from what `save` gave."""


@dataclass(frozen=True)
class Builder:
    """How an engine is built: build(runs, (J, K), device).

    `find_device` refuses a device that is not there; without it the engine runs on the cpu alone.
    """

    build: Callable[[Sequence[Agents], tuple[int, int], str], Engine]
    find_device: Callable[[str], object] | None = None

    def __call__(self, runs: Sequence[Agents], shape: tuple[int, int], device: str = "cpu") -> Engine:
        """The engine; runs that solve exactly stay with the plain one: their tolerance needs float64."""
        for agent in runs[0]:  # all runs are over the same shards
            agent.shard.at_hand()
        exact = any(isinstance(run[0].variant.rule, Exact) for run in runs)
        return PlainEngine(runs, shape) if exact else self.build(runs, shape, device)


ENGINES: Registry[Builder] = Registry("engine", {
    "plain": Builder(lambda runs, shape, _device: PlainEngine(runs, shape)),
    "fast": "tacit.engine.fast:BUILDER",
    "torch": "tacit.engine.torch:BUILDER",
})  # fmt: skip


def require(engine: str, device: str) -> None:
    """Refuse an engine or a device that is not on this machine, before anything is written."""
    find_device = ENGINES[engine].find_device
    if find_device is not None:
        find_device(device)
    elif device != "cpu":
        raise IncompatibleError(f"the {engine} engine runs on the cpu, not on {device!r}: add --engine torch.")
