"""The variants of the sound preset that benchmarks.tune_tables compares: the default, and one choice changed at a time.

Without momentum the largest stable step is smaller, and the preset takes that one by itself (tacit.run.rules).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.study_tables import Table, bins, federation, splines
from tacit.data.transform import rescale_rows
from tacit.run.presets import preset
from tacit.run.spec import Spec
from tacit.types import Federation


def in_bins(table: Table) -> Federation:
    return federation(table, bins)


def on_splines(table: Table) -> Federation:
    return federation(table, splines)


def of_norm_one(table: Table) -> Federation:
    return rescale_rows(federation(table), "l2", 1.0, "unit")


@dataclass(frozen=True)
class Variant:
    """Values of the spec that differ from the preset, and the records before the feature map."""

    values: Mapping[str, Any] = field(default_factory=dict)
    records: Callable[[Table], Federation] = federation

    def spec(self, epsilon: float, seed: int) -> Spec:
        usual = preset("sound", "objt", "x.csv")
        rounds = self.values.get("run.rounds", usual.run.rounds)
        own = {"privacy.epsilon": epsilon, "run.seed": seed, "run.record_every": rounds}
        return usual.with_values({**self.values, **own})


VARIANTS = {
    "default": Variant(),
    # what the preset was until features came; the largest step, 1000, is that of records whose norm is not declared
    "before": Variant({
        "features.map": "none", "data.row_norm": "none", "privacy.clip": 0.35, "schedule.score_noise": 1.5,
        "run.rounds": 300, "algorithm.momentum": 0.0,
    }, of_norm_one),
    "momentum 0": Variant({"algorithm.momentum": 0.0}),
    "clip 0.35": Variant({"privacy.clip": 0.35}),
    "clip 1.4": Variant({"privacy.clip": 1.4}),
    "score_noise 0.5": Variant({"schedule.score_noise": 0.5}),
    "score_noise 2": Variant({"schedule.score_noise": 2.0}),
    "4 waves": Variant({"features.size": 4}),
    "32 waves": Variant({"features.size": 32}),
    "200 rounds": Variant({"run.rounds": 200}),
    "16 bins": Variant(records=in_bins),
    "splines, 5 knots": Variant(records=on_splines),
}  # fmt: skip
LARGE_VARIANTS = ("default", "before", "momentum 0", "clip 0.35")
CONVERGED = "1000 rounds"  # without noise, on large tables: what the model of the default can reach
SHORT = {f"{rounds} rounds": Variant({"run.rounds": rounds}) for rounds in (10, 25, 50)}  # benchmarks.rounds --drawn
ALL = VARIANTS | SHORT | {CONVERGED: Variant({"run.rounds": 1000})}
