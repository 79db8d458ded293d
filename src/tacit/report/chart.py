"""What a chart shows, whoever draws it: `tacit.report.curve` as SVG on a page, `tacit.report.figures` as files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tacit.report.axis import Axis
from tacit.report.runs import Spread

# Okabe and Ito's colours, told apart by colour-blind readers, without yellow; None is the colour of the text
COLOURS = ("#0072B2", "#D55E00", "#009E73", None, "#CC79A7", "#E69F00", "#56B4E9")
DASHES = ((), (7, 3), (2, 2.5), (9, 3, 2, 3), (6, 2, 1.5, 2, 1.5, 2))  # on and off, in widths of a hairline
ASIDE = (12, 5)  # of a line that is no run, or has no place on the x axis
MOST = 5  # lines of a chart, where that can be chosen: the last two colours are faint on white


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
        """Whether each point gets a mark: where they are few, the line between them is a guess."""
        return len(self.x) <= 8 and not self.aside

    def kept(self, log_x: bool, log_y: bool) -> Line:
        """The points that exist on these axes; a band is cut at its lowest visible mean."""
        seen = [n for n, (x, y) in enumerate(zip(self.x, self.y, strict=True))
                if math.isfinite(x) and math.isfinite(y) and (x > 0 or not log_x) and (y > 0 or not log_y)]  # fmt: skip
        floor = min((self.y[n] for n in seen), default=0.0) if log_y else -math.inf
        low = tuple(self.low[n] if not log_y or self.low[n] > 0 else floor for n in seen) if self.low else ()
        high = tuple(self.high[n] for n in seen) if self.high else ()
        return replace(self, x=tuple(self.x[n] for n in seen), y=tuple(self.y[n] for n in seen), low=low, high=high)


@dataclass(frozen=True)
class Chart:
    """Lines on two labelled axes; `averaged` are the same lines for the averaged iterate, where that is measured."""

    key: str
    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    averaged: tuple[Line, ...] = field(default=())
    log_x: bool = False
    log_y: bool = False

    def visible(self, lines: Sequence[Line], log_y: bool) -> list[Line]:
        """Of `lines`, what these axes can show."""
        kept = [line.kept(self.log_x, log_y) for line in lines]
        return [line for line in kept if line.x]

    @property
    def empty(self) -> bool:
        return not self.visible(self.lines, False)


def axes(lines: Sequence[Line], log_x: bool, log_y: bool) -> tuple[Axis, Axis]:
    """The axes that hold these lines and their bands."""
    return (
        Axis([x for line in lines for x in line.x], log_x),
        Axis([y for line in lines for ys in (line.y, line.low, line.high) for y in ys], log_y),
    )


def banded(name: str, x: Sequence[float], points: Sequence[Spread], style: int, factor: float = 1.0,
           aside: bool = False) -> Line:  # fmt: skip
    """The means as a line, the percentiles as its band where there are several seeds."""
    several = any(point.count > 1 for point in points)
    low = tuple(factor * point.low for point in points) if several else ()
    high = tuple(factor * point.high for point in points) if several else ()
    return Line(name, tuple(map(float, x)), tuple(factor * point.mean for point in points), low, high, style, aside)
