"""What a chart shows: chart.js draws the description on the page, and `tacit.report.figures` draws it for print."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from tacit.measures import MEASURES, Measure
from tacit.report.runs import Spread

# Okabe and Ito's colours, told apart by colour-blind readers, without yellow; None is the colour of the text
COLOURS = ("#0072B2", "#D55E00", "#009E73", None, "#CC79A7", "#E69F00", "#56B4E9")
DASHES = ((), (7, 3), (2, 2.5), (9, 3, 2, 3), (6, 2, 1.5, 2, 1.5, 2))  # on and off, in widths of a hairline
ASIDE = (12, 5)  # of a line that is no run, or has no place on the x axis
FEW = 8  # points up to which each point is marked: the line between few points is a guess
MOST = 5  # lines of a chart, where that can be chosen: the last two colours are faint on white
DIGITS = 7  # of a number on the page, more than a screen can show


OF_TESTS = "exact (test records)"
OF_TRAINING = "exact (training records)"


@dataclass(frozen=True)
class Quantity:
    """How a measured quantity is shown: its title, its label with unit, the factor to that unit, and a warning."""

    title: str
    label: str
    log: bool = False
    factor: float = 1.0
    note: str = ""


def _title(measure: Measure) -> str:
    return measure.name[0].upper() + measure.name[1:]


# by the name that a quantity has in records
KNOWN = {
    **{one.key: Quantity(_title(one), one.label, factor=one.factor, note=OF_TESTS) for one in MEASURES},
    **{one.averaged: Quantity(f"{_title(one)}, averaged iterate", one.label, factor=one.factor, note=OF_TESTS)
       for one in MEASURES},
    "objective": Quantity("Training objective", "objective (mean loss and penalty)", note=OF_TRAINING),
    "noise_gradient_units": Quantity("Noise in gradient units", "mean |noise| (gradient units)", log=True),
    "noise_parameter_units": Quantity("Noise in parameter units", "mean |noise| (parameter units)", log=True),
    "binding": Quantity("Where W or the trust region binds", "entries of z that it stops (%)", factor=100.0),
    "consensus_violation": Quantity("Consensus violation", "sum of |w - z| (parameter units)", log=True),
}
AVERAGED = {one.key: one.averaged for one in MEASURES}  # what the averaged iterate is measured by
CHARTED = tuple(name for name in KNOWN if name not in AVERAGED.values())  # each has a chart over rounds


def factor(quantity: str) -> float:
    """Return the factor from the unit of the records to the unit shown: errors are shown in per cent."""
    return KNOWN[quantity].factor if quantity in KNOWN else 1.0


@dataclass(frozen=True)
class Line:
    """A named line, with a band where it is a mean over several; `style` chooses its colour and dashes."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    style: int = 0
    aside: bool = False
    missing: tuple[float, ...] = ()  # y, low and high of a point without a place on the x axis: a missing cell

    @property
    def colour(self) -> str | None:
        return COLOURS[self.style % len(COLOURS)]

    @property
    def dashes(self) -> tuple[float, ...]:
        return ASIDE if self.aside else DASHES[self.style % len(DASHES)]

    @property
    def marked(self) -> bool:
        return len(self.x) <= FEW and not self.aside

    def kept(self, log_x: bool, log_y: bool) -> Line:
        """Return the line with the points that exist on these axes; its band is cut at its lowest visible mean."""
        seen = [n for n, (x, y) in enumerate(zip(self.x, self.y, strict=True))
                if math.isfinite(x) and math.isfinite(y) and (x > 0 or not log_x) and (y > 0 or not log_y)]  # fmt: skip
        x, y, low, high = (tuple(column[n] for n in seen if column) for column in (self.x, self.y, self.low, self.high))
        if log_y:
            low = tuple(value if value > 0 else min(y) for value in low)
        return replace(self, x=x, y=y, low=low, high=high)

    def description(self) -> dict[str, Any]:
        """Return the line as chart.js reads it."""
        columns = {"x": self.x, "y": self.y, "low": self.low, "high": self.high, "missing": self.missing}
        points = {key: [float(f"{value:.{DIGITS}g}") for value in column] for key, column in columns.items()}
        return {"name": self.name, **points, "colour": self.colour, "dashes": self.dashes, "marked": self.marked}


@dataclass(frozen=True)
class Chart:
    """Lines on two labelled axes; `averaged` are the same lines for the averaged iterate, where that is measured.

    levels    names in place of numbers x = 0, 1, ...: they stand below one another, and each has a mark of its own
    y_ends    what the y axis of every chart of a set holds, so that they can be compared. The y axis is then linear,
              and the set says what the charts have in common: the y axis, and what a single line is
    odds      y is a logarithm of odds: whoever points at it is told the factor
    note      what a reader must know of the numbers, such as that they are exact
    """

    key: str
    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    averaged: tuple[Line, ...] = ()
    log_x: bool = False
    log_y: bool = False
    levels: tuple[str, ...] = ()
    y_ends: tuple[float, float] | None = None
    odds: bool = False
    note: str = ""

    def visible(self, lines: Sequence[Line], log_y: bool) -> list[Line]:
        """Return the parts of `lines` that these axes can show."""
        return [kept for kept in (line.kept(self.log_x, log_y) for line in lines) if kept.x]

    @property
    def empty(self) -> bool:
        return not self.visible(self.lines, False)

    @property
    def blank(self) -> bool:
        """Whether there is no line, or zeros alone: so is the noise of a run without noise."""
        return self.empty or not any(y for line in self.lines for y in line.y)

    def description(self) -> dict[str, Any]:
        """Return the chart as chart.js reads it."""
        lines, averaged = ([line.description() for line in lines] for lines in (self.lines, self.averaged))
        return asdict(self) | {"lines": lines, "averaged": averaged}


@dataclass(frozen=True)
class Dot:
    """One row of a dot chart: a value, and a range around it. A hollow dot is in the second colour."""

    label: str
    low: float
    value: float
    high: float
    hollow: bool = False


@dataclass(frozen=True)
class DotChart:
    """Rows from the top, on one labelled axis; the two meanings stand in the legend where they occur."""

    title: str
    x_label: str
    rows: tuple[Dot, ...]
    full_means: str
    hollow_means: str


def over_rounds(quantity: str, lines: Callable[[str, float], tuple[Line, ...]]) -> Chart:
    """Return the chart of a quantity over rounds; `lines` makes the lines of a name in records, times a factor."""
    known = KNOWN[quantity]
    averaged = lines(AVERAGED[quantity], known.factor) if quantity in AVERAGED else ()
    return Chart(
        quantity.replace("_", "-"), known.title, "round", known.label, lines(quantity, known.factor), averaged,
        log_y=known.log, note=known.note,
    )  # fmt: skip


def shortened(name: str, most: int) -> str:
    """Cut a name that has more letters than there is room for."""
    return name if len(name) <= most else name[: most - 1] + "\u2026"


def banded(name: str, x: Sequence[float], points: Sequence[Spread], style: int, factor: float = 1.0,
           aside: bool = False) -> Line:  # fmt: skip
    """Return the means as a line, with the percentiles as its band where there are several seeds."""
    over_seeds = points if any(point.count > 1 for point in points) else ()
    low, high = tuple(factor * point.low for point in over_seeds), tuple(factor * point.high for point in over_seeds)
    return Line(name, tuple(map(float, x)), tuple(factor * point.mean for point in points), low, high, style, aside)
