"""The result of a finished run: its summary, its recorded rounds, its weights and its model."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from tacit.measures import MEASURES, judge
from tacit.run.model import Columns, Model
from tacit.types import Array

PLOT = "tacit.report.figures:plot"  # by name: reports are made of runs, and no run needs one
WIDTH = 100  # letters in a line of a repr


@dataclass(frozen=True, eq=False)
class Result:
    """A finished run: its summary (result.json), its recorded rounds, its weights and the model that predicts."""

    summary: dict[str, Any]
    rounds: list[dict[str, Any]]
    w: Array
    w_average: Array
    model: Model
    notes: tuple[str, ...] = ()  # what public numbers say against the run; empty for one read from its directory

    @property
    def test_error(self) -> float | None:
        """Return the test error of the last iterate, between 0 and 1; None where the target is a number."""
        value: float | None = self.summary.get("test_error")
        return value

    @property
    def judged(self) -> float | None:
        """Return what the last iterate is judged by: its test error, or its test RMSE where the target is a number."""
        measure = judge(self.summary)
        value: float | None = self.summary[measure.key] if measure else None
        return value

    @property
    def guarantee(self) -> str:
        """Return the guarantee of the run in one sentence."""
        return str(self.summary["guarantee"])

    def predict(self, data: str | Path | Columns | Any, averaged: bool = False) -> list[str] | list[float]:
        """Return the most likely class, or the number, of each record: a path, columns by name or an array."""
        return self.model.predict(data, averaged)

    def predict_proba(self, data: str | Path | Columns | Any, averaged: bool = False) -> Array:
        """Return the probability of each class (n, K), in the order of `model.classes`."""
        return self.model.predict_proba(data, averaged)

    def plot(self, path: Path | str | None = None) -> Any:
        """Draw the curves of the run (extra `figures`); return the figure, and write it to `path` if one is given."""
        return resolve_name(PLOT)(self, path)

    def __repr__(self) -> str:
        told = self.summary
        measured = [f"{one.name} {one.shown(told[one.key])}" for one in MEASURES if told.get(one.key) is not None]
        lines = [
            f"Result({told['algorithm']} on {told['dataset']}, {told['agents']} agents, {told['rounds']} rounds",
            records_in_words(told), *measured[:3],
            *textwrap.wrap(f"{self.guarantee})", WIDTH, max_lines=4, placeholder=" ... )", break_on_hyphens=False),
        ]  # fmt: skip
        return "\n  ".join(lines)


def records_in_words(summary: Mapping[str, Any]) -> str:
    """Say how many records train and, if the summary has the number, how many are held out for tests."""
    train = summary["records"]
    if "agent_records" not in summary:  # of a run without a directory, whose summary has no breakdown
        return f"{train} training records"
    held_out = (summary.get("test") or {"records": 0})["records"]
    return f"{train + held_out} records: {train} train, {held_out} held out"
