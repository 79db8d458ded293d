"""What is measured at a recorded round."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from tacit.rounds import Info, State
from tacit.run.build import Setup
from tacit.types import Array, Federation, Shard

TRACED = {
    "noise_gradient_units": "noise", "noise_parameter_units": "noise_parameter", "noise_scale": "scale",
    "sensitivity": "sensitivity",
}  # fmt: skip


def error_rate(w: Array, shard: Shard) -> float | None:
    """The share of records whose label is not the class of the highest score; None without records."""
    if not len(shard):
        return None
    return float(np.mean((shard.x @ w.astype(shard.x.dtype)).argmax(axis=1) != shard.y))


def objective(w: Array, setup: Setup, over: Federation) -> float:
    """sum_p f_p(w)."""
    return sum(setup.problem.value(w.astype(np.float32), shard) for shard in over.shards)


@dataclass
class Clock:
    """Seconds spent so far in each part of a round, summed over agents."""

    seconds: dict[str, float]

    def add(self, info: Info) -> None:
        for part, spent in info.trace.seconds.items() if info.trace else ():
            self.seconds[part] = self.seconds.get(part, 0.0) + spent


def measure(state: State, info: Info, setup: Setup, over: Federation, clock: Clock) -> dict[str, Any]:
    """One row of rounds.jsonl. Models are projected onto W first: the server's w may leave W."""
    start = perf_counter()
    w, averaged = (setup.problem.domain.project(u) for u in (state.w, state.average))
    violation = info.violation() if info.violation else None
    with np.errstate(all="ignore"):  # no record decides whether a run warns or ends: what is not finite is null
        row = {
            "t": info.t,
            "test_error": error_rate(w, over.test),
            "test_error_averaged": error_rate(averaged, over.test),
            "objective": objective(w, setup, over),
            "consensus_violation": violation,
            "consensus_violation_per_agent": None if violation is None else violation / over.n_agents,
            **{name: getattr(info.trace, part) if info.trace else None for name, part in TRACED.items()},
            "step": info.step,
            "rho": info.rho,
        }
    clock.seconds["evaluation"] = clock.seconds.get("evaluation", 0.0) + perf_counter() - start
    return row | {f"seconds_{part}": round(spent, 6) for part, spent in clock.seconds.items()}
