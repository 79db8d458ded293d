"""What a model is measured by on test records: the names that measures have in records, and how they are shown.

Every run has one measure that it is judged by, the first of JUDGES that its rows hold; the least is the best.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Measure:
    """One measure: its key in rounds.jsonl and result.json, its name for people, its unit and the factor to that."""

    key: str
    name: str
    unit: str = ""
    factor: float = 1.0

    @property
    def averaged(self) -> str:
        """The key of the same measure of the averaged iterate."""
        return f"{self.key}_averaged"

    @property
    def label(self) -> str:
        """The name with its unit."""
        return f"{self.name} ({self.unit})" if self.unit else self.name

    def number(self, value: float) -> str:
        """Write a value without its unit: per cent with two decimals, what has another unit in four digits."""
        return f"{self.factor * value:.2f}" if self.factor == 100 else f"{value:.4g}"

    def shown(self, value: float | None) -> str:
        """Write a value with its unit; a dash where there is none."""
        if value is None or not math.isfinite(value):
            return "-"
        return self.number(value) + ("%" if self.factor == 100 else "")


ERROR = Measure("test_error", "test error", "%", 100.0)
RMSE = Measure("test_rmse", "test RMSE", "units of the label")
AUC = Measure("test_auc", "test AUC")
R2 = Measure("test_r2", "test R2")

JUDGES = (ERROR, RMSE)
MEASURES = (*JUDGES, AUC, R2)
KEYS = tuple(key for measure in MEASURES for key in (measure.key, measure.averaged))


def judge(row: Mapping[str, Any]) -> Measure | None:
    """The measure that a run is judged by, from a row, a result or a record of it; None where it holds none."""
    return next((measure for measure in JUDGES if measure.key in row), None)


def measured(row: Mapping[str, Any]) -> dict[str, Any]:
    """All measures that a row, a result or a record holds, by their keys."""
    return {key: row[key] for key in KEYS if key in row}
