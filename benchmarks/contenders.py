"""The same experiment in several ways.

naive, naive64      research style (benchmarks/naive.py), records in float32 or float64
plain, torch        other engines of tacit
fast, fast10        the fast engine, with one seed and with ten seeds at once
before, before10    the fast engine of another checkout, in a process of its own (benchmarks/before.py)
now, now10          that of this checkout, in such a process too: where memory lies changes a round by some percent
read                no experiment: every record is read once, and nothing else
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.before import Before, Worker
from benchmarks.interleave import interleaved, ratio, summary
from benchmarks.machine import Read
from benchmarks.naive import Naive
from tacit.engine.registry import ENGINES
from tacit.rounds import rounds
from tacit.run.build import Setup, setup
from tacit.run.spec import Spec
from tacit.types import Federation

SEEDS = 10


class Rounds:
    """Rounds of some runs on one engine, as `tacit.run.train` makes them, without records."""

    def __init__(self, engine: str, setups: Sequence[Setup]) -> None:
        self.setups = setups
        servers = [replace(own.server, rounds=10**9) for own in setups]
        self.states = [own.start() for own in servers]
        self.engine: Any = ENGINES[engine]([own.agents for own in setups], setups[0].shape, "cpu")
        self.going = rounds(servers, self.states, self.engine.exchange_all)

    def __call__(self) -> None:
        """One round of every run."""
        self.states = [state for state, _ in next(self.going)]

    @property
    def path(self) -> str:
        """Which code computes a round."""
        return str(self.engine.path)


def fast(spec: Spec, over: Federation, runs: int = 1) -> Rounds:
    """The fast engine with as many seeds."""
    return Rounds("fast", [setup(spec.with_values({"run.seed": seed}), over) for seed in range(runs)])


Player = Naive | Rounds | Before | Read


def contenders(
    spec: Spec, over: Federation, names: Sequence[str], workers: Mapping[str, Worker] | None = None
) -> dict[str, Player]:
    """Those of `names`, over the same records; where workers are given, they play with as many seeds as fast does."""
    one = setup(spec, over)
    make: dict[str, Callable[[], Player]] = {
        "naive": lambda: Naive(one),
        "naive64": lambda: Naive(one, np.float64),
        "plain": lambda: Rounds("plain", [one]),
        "torch": lambda: Rounds("torch", [one]),
        "fast": lambda: fast(spec, over),
        "fast10": lambda: fast(spec, over, SEEDS),
        "read": lambda: Read([shard.x for shard in over.shards]),
    }
    players = {name: make[name]() for name in names}
    for own in (own for own in ("fast", "fast10") if own in names):
        players |= {own.replace("fast", name): Before(worker, _runs(own)) for name, worker in (workers or {}).items()}
    return players


def _runs(name: str) -> int:
    return SEEDS if name.endswith("10") else 1


def compare(players: Mapping[str, Player], over: Federation, seconds: float) -> dict[str, Any]:
    """Every contender of one instance: ms a round and run, ratios to the naive style, and the path taken.

    `before` has the other checkout's time / this one's; `over_read` has a round's time / that of reading the records.
    """
    turns, runs = interleaved(players, seconds), {name: _runs(name) for name in players}
    nonzero = sum(int(np.count_nonzero(shard.x)) for shard in over.shards)
    table = summary(turns, runs, "naive")
    found: dict[str, Any] = {
        "shape": {
            "agents": over.n_agents, "records": over.n_records, "features": over.n_features,
            "classes": over.n_classes, "density": round(nonzero / (over.n_records * over.n_features), 3),
        },
        "repetitions": len(turns["naive"]),
        "contenders": table,
        "path": {name: player.path for name, player in players.items()},
    }  # fmt: skip
    apart = [own for own in ("fast", "fast10") if own.replace("fast", "before") in players]
    if apart:
        found["before"] = {
            own: ratio(turns, runs, own.replace("fast", "before"), own.replace("fast", "now")) for own in apart
        }
    if "read" in players:
        best = {name: min(wall for wall, _ in turns[name]) for name in ("fast", "read")}
        found["over_read"] = {
            "best": float(f"{best['fast'] / best['read']:.3g}"), **ratio(turns, runs, "fast", "read"),
        }  # fmt: skip
    return found
