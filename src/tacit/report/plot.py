"""`result.plot()`: the curves of one run as a figure of matplotlib, for a notebook or a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit import toml
from tacit.arguments import path_text
from tacit.errors import RunDirectoryError, SpecError
from tacit.report import figures
from tacit.report.curves import standard
from tacit.report.runs import Recorded

if TYPE_CHECKING:
    from tacit.run.result import Result

COLUMNS = 2  # charts beside one another


def plot(result: Result, path: Path | str | None = None) -> Any:
    """Return the charts that a report has of a run: measures, objective, budget, noise, consensus."""
    summary = result.summary
    spec = toml.text({"algorithm.name": summary["algorithm"], "run.rounds": summary["rounds"]})
    curve = {name: [row.get(name) for row in result.rounds] for name in (result.rounds[0] if result.rounds else ())}
    figure = figures.figure_of(standard([Recorded(str(summary["dataset"]), spec, summary, curve)]), COLUMNS)
    if path is not None:
        _write(figure, Path(path_text("path", path)))
    return figure


def _write(figure: Any, path: Path) -> None:
    kinds = figure.canvas.get_supported_filetypes()
    if path.suffix and path.suffix[1:].lower() not in kinds:  # a name without a dot becomes one in .png
        raise SpecError(f"{path}: no figure can be written as {path.suffix}: choose from {', '.join(sorted(kinds))}.")
    try:
        figure.savefig(path)
    except OSError as error:
        raise RunDirectoryError(
            f"{path} cannot be written ({error.strerror or error}): name a file in a folder that is there and is yours."
        ) from None
