"""What a finished run says: result.json, and its guarantee in a sentence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tacit._version import __version__
from tacit.admm import compatible
from tacit.experiments.build import Setup
from tacit.experiments.spec import Spec
from tacit.types import Array, Federation


@dataclass(frozen=True, eq=False)
class Result:
    """A finished run: its summary (result.json), its recorded rounds and its models."""

    summary: dict[str, Any]
    rounds: list[dict[str, Any]]
    w: Array
    w_average: Array

    @property
    def test_error(self) -> float | None:
        """Of the last iterate, between 0 and 1."""
        value: float | None = self.summary["test_error"]
        return value

    @property
    def guarantee(self) -> str:
        """What the run promises, in a sentence."""
        return str(self.summary["guarantee"])


def summarize(
    spec: Spec, over: Federation, setup: Setup, last: dict[str, Any], seconds: float, path: str
) -> dict[str, Any]:
    """The content of result.json."""
    epsilon = None if math.isinf(spec.privacy.epsilon) else spec.privacy.epsilon
    gaussian = epsilon is not None and spec.privacy.mechanism == "gaussian"
    return {
        "algorithm": spec.algorithm.name,
        "preset": spec.run.preset,
        "dataset": over.name,
        "agents": over.n_agents,
        "records": over.n_records,
        "rounds": spec.run.rounds,
        "seed": spec.run.seed,
        **{key: last[key] for key in ("test_error", "test_error_averaged", "objective", "consensus_violation")},
        "epsilon_per_round": epsilon,
        "dp_delta": spec.privacy.dp_delta if gaussian else 0.0 if epsilon else None,
        "guarantee": guarantee(spec, setup),
        "simulated_noise": epsilon is not None,
        "engine": spec.run.engine,
        "path": path,
        "seconds": round(seconds, 3),
        "version": __version__,
    }


def guarantee(spec: Spec, setup: Setup) -> str:
    """What the run promises, and the reasons where it promises nothing."""
    reasons = compatible.caveats(setup.agents[0].method)
    if reasons:
        return " ".join(["not private:", *reasons, "For reproduction only."])
    p, rounds = spec.privacy, spec.run.rounds
    gaussian = p.mechanism == "gaussian"
    each, total = (
        f"({p.epsilon * n:g}, {p.dp_delta * n:g})-DP" if gaussian else f"{p.epsilon * n:g}-DP" for n in (1, rounds)
    )
    return (
        f"{each} in each of {rounds} rounds, {total} for the run by basic composition, "
        f"{p.adjacency.replace('_', '/')} one record; simulated noise."
    )
