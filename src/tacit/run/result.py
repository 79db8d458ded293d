"""What a finished run says: result.json, and its model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tacit._version import __version__
from tacit.run.build import Setup
from tacit.run.guarantee import stated
from tacit.run.presets import preset
from tacit.run.spec import Spec
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
    return {
        "algorithm": spec.algorithm.name,
        "preset": spec.run.preset,
        "changed": changed(spec),
        "dataset": over.name,
        "agents": over.n_agents,
        "records": over.n_records,
        "rounds": spec.run.rounds,
        "seed": spec.run.seed,
        **{key: last[key] for key in ("test_error", "test_error_averaged", "objective", "consensus_violation")},
        **stated(spec, setup),
        "engine": spec.run.engine,
        "path": path,
        "seconds": round(seconds, 3),
        "version": __version__,
    }


def changed(spec: Spec) -> dict[str, Any]:
    """The values that are not the preset's, but for the data, the length and the seed, which it does not fix."""
    open_keys = ("epsilon", "dp_delta", "adjacency", "noise", "ledger", "limit")
    free = ("data.", "run.", *(f"privacy.{key}" for key in open_keys))
    fixed = ("data.row_norm", "data.row_bound", "data.row_mode")
    usual = preset(spec.run.preset, spec.algorithm.name, spec.data.source).values()
    return {
        key: value
        for key, value in spec.values().items()
        if value != usual[key] and (key in fixed or not key.startswith(free))
    }
