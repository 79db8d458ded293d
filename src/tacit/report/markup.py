"""Pieces of HTML: tables that become cards on a phone, folded blocks, labels, and charts for chart.js to draw."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from tacit import jsontext
from tacit.report.chart import Chart

DASH = "-"  # in a table, for what there is not


class Raw(str):
    """Text that is HTML already."""


def html(value: object) -> str:
    """Write a value as HTML."""
    return value if isinstance(value, Raw) else escape(str(value))


def table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Write a table; each cell knows its column, so that a narrow screen can show a row as a card."""
    head = "".join(f'<th scope="col">{html(column)}</th>' for column in columns)
    body = []
    for first, *rest in rows:
        cells = "".join(f'<td data-label="{escape(str(column))}"><span>{html(cell)}</span></td>'
                        for column, cell in zip(columns[1:], rest, strict=True))  # fmt: skip
        body.append(f'<tr><th scope="row">{html(first)}</th>{cells}</tr>')
    return (
        f'<div class="wide" role="region" aria-label="{escape(caption)}" tabindex="0"><table><caption>{html(caption)}'
        f"</caption><thead><tr>{head}</tr></thead>\n<tbody>{''.join(body)}</tbody></table></div>"
    )


def sparse_table(caption: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Write a table without the columns in which every cell is a dash."""
    kept = [n for n in range(len(columns)) if any(row[n] not in (DASH, either(DASH, DASH)) for row in rows)]
    return table(caption, [columns[n] for n in kept], [[row[n] for n in kept] for row in rows])


def facts(pairs: Iterable[tuple[str, object]]) -> str:
    """Write names and values as a list."""
    rows = "".join(f"<dt>{html(name)}</dt><dd>{html(value)}</dd>" for name, value in pairs)
    return f'<dl class="facts">{rows}</dl>'


def folded(title: str, content: str, opened: bool = False) -> str:
    """Write a block that opens on demand, and in print."""
    return f"<details{' open' if opened else ''}><summary>{html(title)}</summary>\n{content}\n</details>"


def badge(text: str) -> Raw:
    """Write a label in a colour: good, in between, or bad."""
    kind = {"private": "private", "simulated noise": "simulated"}.get(text, "bare")
    return Raw(f'<strong class="badge {kind}">{escape(text)}</strong>')


def either(last: object, averaged: object) -> Raw:
    """Write what the page shows for the last iterate, or for the averaged iterate, as its reader chooses."""
    return Raw(f'<span class="last">{html(last)}</span><span class="averaged">{html(averaged)}</span>')


def figure(chart: Chart, key: str) -> str:
    """Write a chart as its title and its description, from which chart.js draws the chart."""
    description = jsontext.dumps(chart.description()).replace("<", "\\u003c")  # so that no name can end the script
    return (
        f'<figure id="{escape(key)}"><figcaption>{html(chart.title)} <small>{html(chart.note)}</small></figcaption>\n'
        f'<script type="application/json">{description}</script></figure>'
    )


def figures(charts: Sequence[Chart], key: str, columns: int = 2) -> str:
    """Write charts side by side, where the screen is wide enough."""
    inner = "\n".join(figure(chart, f"{key}-{chart.key}") for chart in charts if not chart.empty)
    missing = "; ".join(chart.title for chart in charts if chart.empty)
    hint = f'<p class="hint">Nothing is recorded for: {html(missing)}.</p>' if missing else ""
    return (f'<div class="charts" style="--columns: {columns}">\n{inner}\n</div>' if inner else "") + hint
