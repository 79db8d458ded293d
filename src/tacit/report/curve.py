"""A chart as SVG text: no dependency, sharp at any size, in the colours of the page around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

from tacit.report.axis import Axis, number
from tacit.report.chart import Chart, Line, axes

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 400, 270, 72, 24, 12, 44


Place = Callable[[float], float]


def svg(chart: Chart, lines: Sequence[Line], log_y: bool, key: str) -> str:
    """The lines on the axes of the chart, y logarithmic if asked; `key` is an id of its own on the page."""
    lines = chart.visible(lines, log_y)
    if not lines:
        return '<p class="nothing">nothing above zero: no logarithm to show</p>'
    across, up = axes(lines, chart.log_x, log_y)

    def right(x: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * across.share(x)

    def down(y: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * up.share(y)

    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="{key}-t {key}-d">',
        f'<title id="{key}-t">{escape(chart.title)}</title><desc id="{key}-d">{escape(_words(chart, lines))}</desc>',
        *_frame(across, up, right, down, chart.x_label, chart.y_label),
    ]
    bands = [_band(line, right, down) for line in lines if line.low]
    return "\n".join([*parts, *bands, *(_stroke(line, right, down) for line in lines), "</svg>"])


def swatch(line: Line) -> str:
    """A short piece of the line, for a legend."""
    return f'<svg class="swatch" viewBox="0 0 34 8" aria-hidden="true"><path {_look(line)} d="M1 4H33"/></svg>'


def _frame(across: Axis, up: Axis, right: Place, down: Place, x_label: str, y_label: str) -> list[str]:
    """Grid, numbers and labels."""
    parts = []
    for tick in up.ticks:
        y = down(tick)
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{number(tick)}</text>')
    for tick in across.ticks:
        x = right(tick)
        parts.append(f'<path class="grid" d="M{x:.1f} {HEIGHT - BOTTOM}v4"/>')
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 17}" text-anchor="middle">'
                     f"{number(tick)}</text>")  # fmt: skip
    center, middle = (LEFT + WIDTH - RIGHT) / 2, (TOP + HEIGHT - BOTTOM) / 2
    parts.append(f'<text x="{center}" y="{HEIGHT - 8}" text-anchor="middle">{escape(x_label)}</text>')
    parts.append(f'<text transform="translate(12 {middle}) rotate(-90)" text-anchor="middle">{escape(y_label)}</text>')
    return parts


def _band(line: Line, right: Place, down: Place) -> str:
    above = [f"{right(x):.1f},{down(y):.1f}" for x, y in zip(line.x, line.high, strict=True)]
    below = [f"{right(x):.1f},{down(y):.1f}" for x, y in zip(line.x, line.low, strict=True)]
    return f'<polygon fill="{line.colour or "currentColor"}" class="band" points="{" ".join([*above, *below[::-1]])}"/>'


def _stroke(line: Line, right: Place, down: Place) -> str:
    points = [(f"{right(x):.1f}", f"{down(y):.1f}") for x, y in zip(line.x, line.y, strict=True)]
    path = " ".join(f"{x},{y}" for x, y in points)
    fill = line.colour or "currentColor"
    marks = "".join(f'<circle fill="{fill}" cx="{x}" cy="{y}" r="2.5"/>' for x, y in points) if line.marked else ""
    return f'<polyline {_look(line)} points="{path}"/>{marks}'


def _look(line: Line) -> str:
    dashes = f' stroke-dasharray="{" ".join(f"{n:g}" for n in line.dashes)}"' if line.dashes else ""
    return f'class="line" stroke="{line.colour or "currentColor"}"{dashes}'


def _words(chart: Chart, lines: Sequence[Line]) -> str:
    """The chart in a sentence a line, for those who hear it."""
    ends = (f"{line.name}: {number(line.y[0])} at {number(line.x[0])}, {number(line.y[-1])} at {number(line.x[-1])}"
            for line in lines)  # fmt: skip
    return f"{chart.y_label} against {chart.x_label}. {'; '.join(ends)}."
