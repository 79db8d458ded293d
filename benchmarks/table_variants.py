"""The variants of the sound preset that benchmarks.tune_tables compares: the default, and one choice changed at a time.

Without momentum the largest stable step is smaller, and the preset takes that one by itself (tacit.run.rules).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.study_tables import Encoding, bins, splines
from tacit.run.presets import preset
from tacit.run.spec import Spec


@dataclass(frozen=True)
class Variant:
    """Values of the spec that differ from the preset, and how numbers are encoded before the feature map."""

    values: Mapping[str, Any] = field(default_factory=dict)
    encoding: Encoding | None = None

    def spec(self, epsilon: float, seed: int) -> Spec:
        usual = preset("sound", "objt", "x.csv")
        rounds = self.values.get("run.rounds", usual.run.rounds)
        own = {"privacy.epsilon": epsilon, "run.seed": seed, "run.record_every": rounds}
        return usual.with_values({**self.values, **own})


VARIANTS = {
    "default": Variant(),
    "before": Variant({  # what the preset was until features came: columns in [0, 1], each record of norm one
        "features.map": "none", "data.row_mode": "unit", "privacy.clip": 0.35, "schedule.score_noise": 1.5,
        "run.rounds": 300, "algorithm.momentum": 0.0,
    }),
    "momentum 0": Variant({"algorithm.momentum": 0.0}),
    "clip 0.35": Variant({"privacy.clip": 0.35}),
    "clip 1.4": Variant({"privacy.clip": 1.4}),
    "score_noise 0.5": Variant({"schedule.score_noise": 0.5}),
    "score_noise 2": Variant({"schedule.score_noise": 2.0}),
    "4 waves": Variant({"features.size": 4}),
    "32 waves": Variant({"features.size": 32}),
    "200 rounds": Variant({"run.rounds": 200}),
    "16 bins": Variant(encoding=bins),
    "splines, 5 knots": Variant(encoding=splines),
}  # fmt: skip
LARGE_VARIANTS = ("default", "before", "momentum 0", "clip 0.35")
CONVERGED = "1000 rounds"  # without noise, on large tables: what the model of the default can reach
ALL = VARIANTS | {CONVERGED: Variant({"run.rounds": 1000})}
