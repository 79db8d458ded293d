"""A dot chart as SVG text: one row a method, its mean as a dot and its percentiles as a bar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from tacit.report.axis import Axis
from tacit.report.chart import COLOURS

WIDTH, RIGHT, TOP, BOTTOM, ROW = 640, 24, 58, 44, 24
LETTER = 7.2  # pixels of a letter, a little more than the fonts need


@dataclass(frozen=True)
class Dot:
    """A row: low <= value <= high; `open` draws it hollow, in the second colour."""

    label: str
    low: float
    value: float
    high: float
    open: bool = False


def dots(title: str, x_label: str, rows: Sequence[Dot], closed_means: str, open_means: str) -> str:
    """One chart, rows from the top; the two meanings stand in its legend where they occur."""
    if not rows:
        return ""
    ends = [value for row in rows for value in (row.low, row.high)]
    across = Axis(ends, log=min(ends) > 0)  # a few rows far off would press the others together
    left = 20 + LETTER * max(len(row.label) for row in rows)
    height = TOP + ROW * len(rows) + BOTTOM
    floor = height - BOTTOM

    def right(x: float) -> float:
        return left + (WIDTH - left - RIGHT) * across.share(x)

    parts = [
        f'<svg class="chart" viewBox="0 0 {WIDTH} {height}" xmlns="http://www.w3.org/2000/svg" role="img" '
        f'aria-label="{escape(title)}" font-family="system-ui, sans-serif" font-size="12" fill="#222">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',  # a file of its own, on whatever page
        f'<text x="12" y="18" font-size="14" font-weight="600">{escape(title)}</text>',
    ]
    for tick in across.ticks:
        x = right(tick)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{floor}" stroke="#8884"/>')
        parts.append(f'<text x="{x:.1f}" y="{floor + 16}" text-anchor="middle">{tick:.4g}</text>')
    middle = (left + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle:.1f}" y="{height - 8}" text-anchor="middle">{escape(x_label)}</text>')
    for n, row in enumerate(rows):
        y = TOP + ROW * (n + 0.5)
        parts.append(f'<text x="{left - 8:.1f}" y="{y + 4:.1f}" text-anchor="end">{escape(row.label)}</text>')
        parts += _mark(right(row.low), right(row.value), right(row.high), y, row.open)
    x = 12.0
    for means, kind in ((closed_means, False), (open_means, True)):
        if any(row.open is kind for row in rows):
            parts += _mark(x, x + 12, x + 24, 38, kind)
            parts.append(f'<text x="{x + 32}" y="42">{escape(means)}</text>')
            x += 32 + LETTER * len(means) + 24
    return "\n".join([*parts, "</svg>"])


def _mark(low: float, x: float, high: float, y: float, is_open: bool) -> list[str]:
    colour = COLOURS[1 if is_open else 0]
    fill, dash = ("white", ' stroke-dasharray="3 3"') if is_open else (colour, "")
    return [
        f'<line x1="{low:.1f}" x2="{high:.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke="{colour}" stroke-width="3"{dash}/>',
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{fill}" stroke="{colour}" stroke-width="2"/>',
    ]
