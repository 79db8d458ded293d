"""`result.plot()`: the curves of one run as a figure of matplotlib, for a notebook or a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit import toml
from tacit.report import figures
from tacit.report.curves import standard
from tacit.report.runs import Recorded

if TYPE_CHECKING:
    from tacit.run.run import Result

COLUMNS = 2  # charts beside one another


def plot(result: Result, path: Path | str | None = None) -> Any:
    """Return the charts that a report has of a run: measures, objective, budget, noise, consensus."""
    summary = result.summary
    spec = toml.text({"algorithm.name": summary["algorithm"], "run.rounds": summary["rounds"]})
    curve = {name: [row.get(name) for row in result.rounds] for name in (result.rounds[0] if result.rounds else ())}
    figure = figures.figure_of(standard([Recorded(str(summary["dataset"]), spec, summary, curve)]), COLUMNS)
    if path is not None:
        figure.savefig(path)
    return figure
