"""The same experiment, five ways: naive, naive in float64, plain, fast, and fast with ten seeds at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.interleave import interleaved, summary
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


def contenders(spec: Spec, over: Federation, names: Sequence[str]) -> dict[str, Naive | Rounds]:
    """Those of `names`, over the same records."""
    one = setup(spec, over)
    make: dict[str, Callable[[], Naive | Rounds]] = {
        "naive": lambda: Naive(one),
        "naive64": lambda: Naive(one, np.float64),
        "plain": lambda: Rounds("plain", [one]),
        "fast": lambda: fast(spec, over),
        "fast10": lambda: fast(spec, over, SEEDS),
    }
    return {name: make[name]() for name in names}


def compare(players: Mapping[str, Naive | Rounds], over: Federation, seconds: float) -> dict[str, Any]:
    """Every contender of one instance: ms a round and run, ratios to the naive style, and the path taken."""
    turns = interleaved(players, seconds)
    nonzero = sum(int(np.count_nonzero(shard.x)) for shard in over.shards)
    return {
        "shape": {
            "agents": over.n_agents, "records": over.n_records, "features": over.n_features,
            "classes": over.n_classes, "density": round(nonzero / (over.n_records * over.n_features), 3),
        },
        "repetitions": len(turns["naive"]),
        "contenders": summary(turns, {name: SEEDS if name == "fast10" else 1 for name in players}, "naive"),
        "path": {name: player.path for name, player in players.items()},
    }  # fmt: skip
