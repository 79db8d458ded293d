"""What the model of a run has learnt: the effect of each column as a small chart, all on one scale.

The shapes come from the model alone, never from a record: whoever may see the model may see them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.errors import InputError
from tacit.report.chart import MOST, Chart, Line
from tacit.report.markup import figures, html
from tacit.report.runs import Recorded

if TYPE_CHECKING:
    from tacit.run.shapes import Shape, Shapes

SHOWN = 24  # charts at most
LEVELS = 10  # levels of a chart at most
COLUMNS = 3  # charts beside one another
SIGMAS = 2.0  # of a band
ROOM = 0.04  # share of its range that the scale adds at either end
MISSING = "missing"


@dataclass(frozen=True)
class Learnt:
    """The shapes of the last iterate and of the averaged one, or the reason why there are none."""

    reason: str
    last: Shapes | None = None
    averaged: Shapes | None = None
    loss: str = "softmax"
    classes: tuple[str, ...] = ()

    @property
    def log_odds(self) -> bool:
        """Whether effects are on the log-odds of a class against the only other one."""
        return self.loss == "softmax" and len(self.classes) == 2

    @property
    def number(self) -> str:
        """What is predicted, where that is a number."""
        return "" if self.classes or self.last is None else self.last.outputs[0]

    def plain(self) -> dict[str, Any]:
        """Return all shapes as JSON has them."""
        return {
            "reason": self.reason or None, "classes": self.classes,
            "last": None if self.last is None else asdict(self.last),
            "averaged": None if self.averaged is None else asdict(self.averaged),
        }  # fmt: skip


def learnt(path: Path, run: Recorded) -> Learnt | None:
    """Read the shapes of the model of a finished run; None where the directory holds no model."""
    if run.diverged or not (path / "model.npz").is_file():
        return None
    if ":" in str(run.values.get("features.map", "")):  # a recipe must not decide what code a report runs
        return Learnt("its feature map is a function of the user's own, which may mix the columns.")
    from tacit.run.model import Model  # a report of records needs no model

    loss = str(run.values.get("problem.loss", "softmax"))
    try:
        model = Model.read(path)
        return Learnt("", model.shapes(), model.shapes(averaged=True), loss, model.classes)
    except InputError as error:  # the curves of the run can be shown still
        return Learnt(str(error))


def charts(found: Learnt) -> list[Chart]:
    """Return a chart for each of the largest shapes, on one scale."""
    if found.last is None or found.averaged is None:
        return []
    outputs = _outputs(found.last)
    averaged = {shape.column: shape for shape in found.averaged.columns}
    drawn = [
        _chart(n, shape, averaged[shape.column], [(k, found.last.outputs[k]) for k in outputs], found)
        for n, shape in enumerate(found.last.columns[:SHOWN], 1)
    ]
    ends = _ends([line for chart in drawn for line in (*chart.lines, *chart.averaged)])
    return [replace(chart, y_ends=ends) for chart in drawn]


def section(found: Learnt, key: str) -> str:
    """Return the charts of all shapes with what they mean, or the reason why there are none."""
    if found.last is None:
        return f'<p class="hint">The effect of each column is not drawn: {html(found.reason)}</p>'
    hints = "".join(f'<p class="hint">{html(hint)}</p>' for hint in _hints(found.last))
    drawn = figures(charts(found), f"{key}-shape", COLUMNS)
    return f"<h3>What the model has learnt</h3><p>{_meaning(found)}</p>{hints}{drawn}"


def _meaning(found: Learnt) -> str:
    """Say in HTML what a chart shows."""
    adds = "the score of each class, less the mean of all classes."
    if found.number:
        adds = f"the predicted <b>{html(found.number)}</b>, in its unit."
    if found.log_odds:
        first, second = map(html, found.classes)
        adds = (
            f"the log-odds of <b>{second}</b> (against <b>{first}</b>): higher, or further right, means that {second} "
            "is more likely. +0.69 doubles the odds, -0.69 halves them."
        )
    return (
        f"The model adds up one effect for each column. A chart shows what each value of a column adds to {adds} Zero "
        "is the mean over the values declared for the column. All charts have one scale, and the largest effect comes "
        "first."
    )


def _hints(shapes: Shapes) -> list[str]:
    """Say what a band is, and what is not drawn."""
    columns, undrawn, told = shapes.columns, shapes.undrawn, []
    if any(any(shape.noise) for shape in columns[:SHOWN]):
        told.append(
            f"The band shows how far the noise for privacy alone can have moved an effect ({SIGMAS:g} standard "
            "deviations either way). It does not show how few records there were."
        )
    if len(columns) > SHOWN:
        told.append(f"{SHOWN} of {len(columns)} columns are drawn. All are in the output of tacit report --json.")
    if len(_outputs(shapes)) < len(shapes.outputs):
        told.append(f"Of {len(shapes.outputs)} classes, the {MOST} with the largest effects are drawn.")
    if undrawn:
        names = ", ".join(undrawn[:SHOWN]) + (", ..." if len(undrawn) > SHOWN else "")
        told.append(f"These columns have effects too, which cannot be drawn: {names}.")
    return told


def _outputs(shapes: Shapes) -> list[int]:
    """Return the outputs to draw: those with the largest effects, in order."""
    sizes = [max((max(own.effects[k]) - min(own.effects[k]) for own in shapes.columns), default=0.0)
             for k in range(len(shapes.outputs))]  # fmt: skip
    return sorted(sorted(range(len(sizes)), key=lambda k: -sizes[k])[:MOST])


def _chart(n: int, last: Shape, averaged: Shape, outputs: Sequence[tuple[int, str]], found: Learnt) -> Chart:
    kept = _kept(last)
    levels = () if last.number else (*(str(last.values[i]) for i in kept), *([MISSING] if last.missing else []))
    own, mean = (
        tuple(
            _line(shape, k, name if len(outputs) > 1 else last.column, style, kept)
            for style, (k, name) in enumerate(outputs)
        )
        for shape in (last, averaged)
    )
    more = len(last.values) - len(kept)
    title = f"{last.column} (the strongest {len(kept)} of {len(last.values)} levels)" if more else last.column
    label = f"effect on {'log-odds' if found.log_odds else found.number or 'score'}"
    return Chart(str(n), title, last.column, label, own, mean, log_x=last.log, levels=levels, odds=found.log_odds)


def _kept(shape: Shape) -> list[int]:
    """Return which values to draw: all of a number, and the levels with the largest effects."""
    every = list(range(len(shape.values)))
    if shape.number:
        return every
    return sorted(sorted(every, key=lambda i: -max(abs(own[i]) for own in shape.effects))[:LEVELS])


def _line(shape: Shape, k: int, name: str, style: int, kept: Sequence[int]) -> Line:
    """Return the effects on one output; a missing cell is a level among levels, and beside the axis of a number."""
    noise = [SIGMAS * shape.noise[i] for i in kept] if any(shape.noise) else []
    y = [shape.effects[k][i] for i in kept]
    x = [float(shape.values[i]) for i in kept] if shape.number else [float(n) for n in range(len(kept))]
    beside: tuple[float, ...] = ()
    if shape.missing:
        own, around = shape.missing[k], SIGMAS * (shape.missing_noise or 0.0)
        if shape.number:
            beside = (own, own - around, own + around) if noise else (own,)
        else:
            x, y, noise = [*x, float(len(kept))], [*y, own], [*noise, around] if noise else []
    low = tuple(value - around for value, around in zip(y, noise, strict=False))
    high = tuple(value + around for value, around in zip(y, noise, strict=False))
    return Line(name, tuple(x), tuple(y), low, high, style, missing=beside)


def _ends(lines: Sequence[Line]) -> tuple[float, float]:
    """Return the ends of the scale that holds all lines and zero, with a little room."""
    every = [0.0, *(value for line in lines for value in (*line.y, *line.low, *line.high, *line.missing))]
    room = ROOM * ((max(every) - min(every)) or 1.0)
    return min(every) - room, max(every) + room
