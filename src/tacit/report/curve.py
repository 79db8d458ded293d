"""A line chart as SVG text: no dependency, sharp at any size, light and dark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

# Okabe and Ito's colours, told apart by colour-blind readers
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 300, 64, 16, 34, 46

Line = tuple[str, Sequence[float], Sequence[float]]  # name, x, y


def chart(title: str, x_label: str, y_label: str, lines: Sequence[Line], log_y: bool = False) -> str:
    """One chart; y on a logarithmic scale if asked and every value is positive."""
    lines = [(name, *_finite(x, y)) for name, x, y in lines]
    lines = [line for line in lines if len(line[1])]
    if not lines:
        return ""
    ys = [value for _, _, y in lines for value in y]
    log_y = log_y and min(ys) > 0
    across = Axis([value for _, x, _ in lines for value in x], False)
    up = Axis(ys, log_y)

    def right(x: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * across.share(x)

    def down(y: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * up.share(y)

    parts = [
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" xmlns="http://www.w3.org/2000/svg" role="img" '
        f'aria-label="{escape(title)}" font-family="system-ui, sans-serif" font-size="12" fill="currentColor">',
        f'<text x="{LEFT}" y="18" font-size="14" font-weight="600">{escape(title)}</text>',
    ]
    for tick in up.ticks:
        y = down(tick)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#8884"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:.4g}</text>')
    for tick in across.ticks:
        parts.append(f'<text x="{right(tick):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{tick:g}</text>')
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(f'<text x="{(LEFT + WIDTH) / 2}" y="{HEIGHT - 8}" text-anchor="middle">{escape(x_label)}</text>')
    parts.append(
        f'<text x="14" y="{middle}" text-anchor="middle" transform="rotate(-90 14 {middle})">{escape(y_label)}</text>'
    )
    for n, (name, xs, values) in enumerate(lines):
        colour = COLOURS[n % len(COLOURS)]
        dash = ' stroke-dasharray="6 4"' if n % 2 else ""
        points = " ".join(f"{right(x):.1f},{down(y):.1f}" for x, y in zip(xs, values, strict=True))
        stroke = f'fill="none" stroke="{colour}" stroke-width="2"{dash}'
        parts.append(f'<polyline {stroke} points="{points}"/>')
        x, y = WIDTH - RIGHT - 150, TOP + 14 + 18 * n
        parts.append(f'<line {stroke} x1="{x - 28}" x2="{x - 6}" y1="{y - 4}" y2="{y - 4}"/>')
        parts.append(f'<text x="{x}" y="{y}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>"])


class Axis:
    """The range of one axis, and four or five round numbers on it."""

    def __init__(self, values: Sequence[float], log: bool) -> None:
        self.log = log
        low, high = min(values), max(values)
        if log:
            self.low, self.high = math.log10(low), max(math.log10(high), math.log10(low) + 1e-9)
            decades = range(math.floor(self.low), math.ceil(self.high) + 1)
            self.ticks = [10.0**n for n in decades if self.low <= n <= self.high] or [low, high]
        else:
            step = _round_step((high - low) / 4 or abs(high) or 1)
            self.low, self.high = math.floor(low / step) * step, math.ceil(high / step) * step
            if self.low == self.high:
                self.high += step
            self.ticks = [self.low + n * step for n in range(round((self.high - self.low) / step) + 1)]

    def share(self, value: float) -> float:
        return ((math.log10(value) if self.log else value) - self.low) / (self.high - self.low)


def _round_step(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    return power * next(m for m in (1, 2, 5, 10) if m * power >= rough * 0.999)


def _finite(x: Sequence[float], y: Sequence[float | None]) -> tuple[list[float], list[float]]:
    pairs = [(a, b) for a, b in zip(x, y, strict=True) if b is not None and math.isfinite(b)]
    return [a for a, _ in pairs], [b for _, b in pairs]
