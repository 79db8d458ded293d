"""What a chart shows: page.js draws the description on the page, and `tacit.report.figures` draws it for print."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from tacit.report.runs import Spread

# Okabe and Ito's colours, told apart by colour-blind readers, without yellow; None is the colour of the text
COLOURS = ("#0072B2", "#D55E00", "#009E73", None, "#CC79A7", "#E69F00", "#56B4E9")
DASHES = ((), (7, 3), (2, 2.5), (9, 3, 2, 3), (6, 2, 1.5, 2, 1.5, 2))  # on and off, in widths of a hairline
ASIDE = (12, 5)  # of a line that is no run, or has no place on the x axis
FEW = 8  # points up to which each point is marked: the line between few points is a guess
MOST = 5  # lines of a chart, where that can be chosen: the last two colours are faint on white
DIGITS = 7  # of a number on the page, more than a screen can show


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
        """The line with the points that exist on these axes; its band is cut at its lowest visible mean."""
        seen = [n for n, (x, y) in enumerate(zip(self.x, self.y, strict=True))
                if math.isfinite(x) and math.isfinite(y) and (x > 0 or not log_x) and (y > 0 or not log_y)]  # fmt: skip
        floor = min((self.y[n] for n in seen), default=0.0) if log_y else -math.inf
        low = tuple(self.low[n] if not log_y or self.low[n] > 0 else floor for n in seen) if self.low else ()
        high = tuple(self.high[n] for n in seen) if self.high else ()
        return replace(self, x=tuple(self.x[n] for n in seen), y=tuple(self.y[n] for n in seen), low=low, high=high)

    def description(self) -> dict[str, Any]:
        """The line as page.js reads it."""
        columns = {"x": self.x, "y": self.y, "low": self.low, "high": self.high}
        points = {key: [float(f"{value:.{DIGITS}g}") for value in column] for key, column in columns.items()}
        return {"name": self.name, **points, "colour": self.colour, "dashes": self.dashes, "marked": self.marked}


@dataclass(frozen=True)
class Chart:
    """Lines on two labelled axes; `averaged` are the same lines for the averaged iterate, where that is measured."""

    key: str
    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    averaged: tuple[Line, ...] = ()
    log_x: bool = False
    log_y: bool = False

    def visible(self, lines: Sequence[Line], log_y: bool) -> list[Line]:
        """The parts of `lines` that these axes can show."""
        kept = [line.kept(self.log_x, log_y) for line in lines]
        return [line for line in kept if line.x]

    @property
    def empty(self) -> bool:
        return not self.visible(self.lines, False)

    def description(self) -> dict[str, Any]:
        """The chart as page.js reads it."""
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


def banded(name: str, x: Sequence[float], points: Sequence[Spread], style: int, factor: float = 1.0,
           aside: bool = False) -> Line:  # fmt: skip
    """The means as a line, the percentiles as its band where there are several seeds."""
    several = any(point.count > 1 for point in points)
    low = tuple(factor * point.low for point in points) if several else ()
    high = tuple(factor * point.high for point in points) if several else ()
    return Line(name, tuple(map(float, x)), tuple(factor * point.mean for point in points), low, high, style, aside)
