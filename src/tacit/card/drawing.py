"""Charts as small SVG that needs no script, for paper: lines with bands, and levels below one another."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tacit.report.chart import Chart, Line, shortened
from tacit.report.markup import Raw, html

WIDTH, HEIGHT = 260, 150
LEFT, RIGHT, TOP, BOTTOM = 34, 8, 6, 32
NAMES = 88  # width of the names of levels
ROW = 16
LONGEST = 15
STEPS = (1.0, 2.0, 5.0, 10.0)
Place = Callable[[float], float]


def draw(chart: Chart) -> Raw:
    """Return a chart as SVG."""
    return _levels(chart) if chart.levels else _curve(chart)


def legend(chart: Chart) -> Raw:
    """Return the names of the lines, where there are several."""
    if len(chart.lines) < 2:
        return Raw("")
    items = "".join(f'<li><svg class="swatch" viewBox="0 0 34 8" aria-hidden="true"><path class="line" '
                    f'd="M1 4H33"{_stroke(line)}/></svg> {html(line.name)}</li>' for line in chart.lines)  # fmt: skip
    return Raw(f'<ul class="legend">{items}</ul>')


def _curve(chart: Chart) -> Raw:
    lines = chart.visible(chart.lines, False)
    x = [value for line in lines for value in line.x]
    y = [value for line in lines for column in (line.y, line.low, line.high, line.missing) for value in column]
    low, high = chart.y_ends or _widened(y)
    beside = 26 if any(line.missing for line in lines) else 0
    across = _scale(min(x), max(x), LEFT, WIDTH - RIGHT - beside, chart.log_x)
    up = _scale(low, high, HEIGHT - BOTTOM, TOP)
    floor, parts = HEIGHT - BOTTOM, []
    for tick in _ticks(low, high):
        kind = "grid zero" if tick == 0 else "grid"
        parts.append(f'<path class="{kind}" d="M{LEFT} {up(tick):.1f}H{WIDTH - RIGHT}"/>')
        parts.append(_text(LEFT - 4, up(tick) + 3, f"{tick:g}", "end"))
    for tick in [min(x), max(x)] if chart.log_x else _ticks(min(x), max(x)):
        parts.append(_text(across(tick), floor + 12, f"{tick:.4g}"))
    for line in lines:
        if line.low:
            edge = [*zip(line.x, line.high, strict=True), *reversed([*zip(line.x, line.low, strict=True)])]
            parts.append(f'<polygon class="band" points="{_points(edge, across, up)}"{_fill(line)}/>')
    for n, line in enumerate(lines):
        points = _points([*zip(line.x, line.y, strict=True)], across, up)
        parts.append(f'<polyline class="line" points="{points}"{_stroke(line)}/>')
        if line.missing:
            at, (own, *ends) = WIDTH - RIGHT - 10 + 5 * n, line.missing
            if ends:
                parts.append(f'<path class="whisker" d="M{at} {up(ends[0]):.1f}V{up(ends[1]):.1f}"{_stroke(line)}/>')
            parts.append(f'<circle class="apart" cx="{at}" cy="{up(own):.1f}" r="3"{_stroke(line)}/>')
    if beside:
        parts.append(_text(WIDTH - RIGHT - 8, floor + 12, "missing", "end"))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 4, shortened(chart.x_label, 2 * LONGEST)))
    return _svg(chart, HEIGHT, parts)


def _levels(chart: Chart) -> Raw:
    row = ROW + 5 * (len(chart.lines) - 1)
    height = TOP + row * len(chart.levels) + BOTTOM
    low, high = chart.y_ends or _widened([value for line in chart.lines for value in line.y])
    right = _scale(low, high, NAMES, WIDTH - RIGHT)
    parts = []
    for tick in _ticks(low, high):
        kind = "grid zero" if tick == 0 else "grid"
        parts.append(f'<path class="{kind}" d="M{right(tick):.1f} {TOP}V{height - BOTTOM + 3}"/>')
        parts.append(_text(right(tick), height - BOTTOM + 13, f"{tick:g}"))
    for place, name in enumerate(chart.levels):
        parts.append(_text(NAMES - 6, TOP + row * (place + 0.5) + 3, shortened(name, LONGEST), "end"))
    for k, line in enumerate(chart.lines):
        for n, (level, y) in enumerate(zip(line.x, line.y, strict=True)):
            at = TOP + row * (level + 0.5) + 5 * (k - (len(chart.lines) - 1) / 2)
            if line.low:
                ends = right(line.low[n]), right(line.high[n])
                parts.append(f'<path class="whisker" d="M{ends[0]:.1f} {at:.1f}H{ends[1]:.1f}"{_stroke(line)}/>')
            parts.append(f'<path class="stem" d="M{right(0):.1f} {at:.1f}H{right(y):.1f}"{_stroke(line)}/>')
            parts.append(f'<circle cx="{right(y):.1f}" cy="{at:.1f}" r="3"{_fill(line)}/>')
    parts.append(_text((NAMES + WIDTH - RIGHT) / 2, height - 4, shortened(chart.y_label, 2 * LONGEST)))
    return _svg(chart, height, parts)


def _svg(chart: Chart, height: float, parts: Sequence[str]) -> Raw:
    words = html(f"{chart.title}: {chart.y_label} by {chart.x_label}").replace("\n", " ")
    return Raw(f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{words}">{"".join(parts)}</svg>')


def _text(x: float, y: float, words: str, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html(words)}</text>'


def _points(pairs: Sequence[tuple[float, float]], across: Place, up: Place) -> str:
    return " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in pairs)


def _stroke(line: Line) -> str:
    dashes = f' stroke-dasharray="{" ".join(map(str, line.dashes))}"' if line.dashes else ""
    return f' stroke="{line.colour or "currentColor"}"{dashes}'


def _fill(line: Line) -> str:
    return f' fill="{line.colour or "currentColor"}"'


def _scale(low: float, high: float, start: float, end: float, log: bool = False) -> Place:
    """Return what maps values from low to high to places from start to end."""
    turn: Place = math.log if log else float
    a, b = turn(low), turn(high)
    return lambda value: start + (end - start) * ((turn(value) - a) / ((b - a) or 1.0))


def _widened(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    room = 0.04 * (high - low) or 0.5 * abs(high) or 1.0
    return low - room, high + room


def _ticks(low: float, high: float) -> list[float]:
    """Return a few round numbers within the ends."""
    rough = (high - low) / 4 or 1.0
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in STEPS if power * factor >= 0.999 * rough)
    return [n * step for n in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
