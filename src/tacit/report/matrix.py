"""A confusion matrix as a picture: a row for each true class, shaded by the share of its records.

The SVG is drawn here, so that it needs no script; matrix.js adds the reading of values. Cells of one shade are one
path: a hundred classes stay small.
"""

from __future__ import annotations

import math
from collections import defaultdict
from html import escape

from tacit import jsontext
from tacit.report.chart import shortened
from tacit.report.markup import Raw, html, table
from tacit.report.tested import Confusion

WIDTH, LEFT, RIGHT = 400, 92, 8
NUMBERED = 12  # classes at most whose cells hold their counts
SHARED = 4  # classes at most whose cells hold their shares too
WIDEST = 84.0  # a cell
SHADES = 10  # from nothing to a whole class
LETTER = 11  # least height of a name
LONGEST = 13  # letters of a name at most
LISTED = 6  # frequent mistakes that are named


def picture(found: Confusion, key: str, title: str) -> str:
    """Return the matrix with its title, the most frequent mistakes, and the counts that matrix.js reads."""
    told = jsontext.dumps({"classes": found.classes, "counts": found.counts}).replace("<", "\\u003c")
    return (
        f'<div class="matrix" id="{escape(key)}"><p class="caption">{html(title)}</p>\n'
        f'<div class="plot">{drawing(found)}</div>{_legend(found)}'
        f'<script type="application/json">{told}</script></div>'
    )


def drawing(found: Confusion) -> Raw:
    """Return the matrix as SVG."""
    n, shaded, numbers = len(found.classes), defaultdict(list), []
    cell, top = _cell(n), _top(found)
    for i, row in enumerate(found.counts):
        whole = sum(row)
        for j, count in enumerate(row):
            shade = math.ceil(SHADES * count / whole) if count else 0
            x, y = LEFT + j * cell, top + i * cell
            if shade:
                kind = "hit" if i == j or found.binned else "miss"
                shaded[kind, shade].append(f"M{x:.1f} {y:.1f}h{cell:.1f}v{cell:.1f}h-{cell:.1f}z")
            if n <= NUMBERED and (count or i == j):
                numbers.append(_text(x + cell / 2, y + cell / 2 + 4, f"{count}", f"count on{shade}"))
                if n <= SHARED and whole:
                    numbers.append(_text(x + cell / 2, y + cell / 2 + 19, f"{count / whole:.0%}", f"share on{shade}"))
    paths = "".join(f'<path class="{kind} shade{shade}" d="{"".join(cells)}"/>'
                    for (kind, shade), cells in sorted(shaded.items()))  # fmt: skip
    height = top + n * cell + 8
    right = sum(found.counts[k][k] for k in range(n))
    words = f"Confusion matrix of {n} classes: {right} of {sum(map(sum, found.counts))} records on the diagonal"
    return Raw(
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" tabindex="0" data-left="{LEFT}" data-top="{top:.1f}" '
        f'data-cell="{cell:.4f}" aria-label="{words}">{paths}'
        f'<path class="frame" d="M{LEFT} {top:.1f}h{n * cell:.1f}v{n * cell:.1f}h-{n * cell:.1f}z"/>'
        f"{''.join(numbers)}{_names(found, cell, top)}</svg>"
    )


def mistakes(found: Confusion) -> str:
    """Return the most frequent mistakes as a table; nothing where there is none."""
    rows = [[f"{true}, taken for {guessed}", f"{count:,}"] for count, true, guessed in found.mistakes[:LISTED]]
    return table("The most frequent mistakes", ["mistake", "test records"], rows) if rows else ""


def _names(found: Confusion, cell: float, top: float) -> str:
    every = max(1, math.ceil(LETTER / cell))  # of more classes than there is room for, each so-manieth is named
    upright = _upright(found, cell)
    parts = [_text(LEFT + len(found.classes) * cell / 2, 12, "predicted", "axis"),
             f'<g transform="translate(11 {top + len(found.classes) * cell / 2:.1f}) rotate(-90)">'
             f"{_text(0, 0, 'true', 'axis')}</g>"]  # fmt: skip
    for k in range(0, len(found.classes), every):
        name, middle = shortened(found.classes[k], LONGEST), (k + 0.5) * cell
        whole = f"<title>{html(found.classes[k])}</title>"
        parts.append(f'<text x="{LEFT - 6}" y="{top + middle + 4:.1f}" text-anchor="end">{html(name)}{whole}</text>')
        place = f'x="{LEFT + middle:.1f}" y="{top - 6:.1f}" text-anchor="middle"'
        turned = f'transform="translate({LEFT + middle + 4:.1f} {top - 6:.1f}) rotate(-90)"'
        parts.append(f"<text {place if upright else turned}>{html(name)}{whole}</text>")
    return "".join(parts)


def _cell(n: int) -> float:
    return min(WIDEST, (WIDTH - LEFT - RIGHT) / n)


def _top(found: Confusion) -> float:
    """Return the height of the names of columns."""
    upright = _upright(found, _cell(len(found.classes)))
    return 36.0 if upright else 26.0 + 6.2 * max(min(len(name), LONGEST) for name in found.classes)


def _upright(found: Confusion, cell: float) -> bool:
    return all(6.5 * min(len(name), LONGEST) < cell for name in found.classes)


def _text(x: float, y: float, words: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{html(words)}</text>'


def _legend(found: Confusion) -> str:
    shade = "The darker a cell, the larger its share of the row."
    if found.binned:
        return f'<p class="hint">{shade} A perfect model fills the diagonal.</p>'
    swatches = "".join(
        f'<svg class="swatch" viewBox="0 0 34 8" aria-hidden="true"><path class="{kind} shade{SHADES}" '
        f'd="M0 0h34v8H0z"/></svg> {words}. '
        for kind, words in (("hit", "right"), ("miss", "wrong"))
    )
    return f'<p class="hint">{swatches} {shade}</p>'
