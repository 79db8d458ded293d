"""Pieces of HTML: tables that become cards on a phone, folded blocks, labels, figures with their legends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from tacit.report.chart import Chart
from tacit.report.curve import svg, swatch


class Raw(str):
    """Text that is HTML already."""


def html(value: object) -> str:
    """A value as HTML."""
    return value if isinstance(value, Raw) else escape(str(value))


def table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table; each cell knows its column, so that a narrow screen can show a row as a card."""
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


def facts(pairs: Iterable[tuple[str, object]]) -> str:
    """Names and values."""
    rows = "".join(f"<dt>{html(name)}</dt><dd>{html(value)}</dd>" for name, value in pairs)
    return f'<dl class="facts">{rows}</dl>'


def folded(title: str, content: str, opened: bool = False) -> str:
    """A block that opens on demand, and in print."""
    return f"<details{' open' if opened else ''}><summary>{html(title)}</summary>\n{content}\n</details>"


def badge(text: str) -> Raw:
    """A label that is seen: good, in between, or bad."""
    kind = {"private": "private", "simulated noise": "simulated"}.get(text, "bare")
    return Raw(f'<strong class="badge {kind}">{escape(text)}</strong>')


def either(last: object, averaged: object) -> Raw:
    """What the page shows for the last iterate, or for the averaged one, as its reader chooses."""
    return Raw(f'<span class="last">{html(last)}</span><span class="averaged">{html(averaged)}</span>')


def figure(chart: Chart, key: str) -> str:
    """A chart on linear and logarithmic axes, of the last and the averaged iterate; the page shows one of them."""
    key, usual = escape(key), "log" if chart.log_y else "linear"
    scales = []
    for iterate, lines in (("last", chart.lines), ("averaged", chart.averaged)):
        if lines:
            inner = "".join(
                f'<div class="{scale}">{svg(chart, lines, scale == "log", f"{key}-{iterate}-{scale}")}</div>'
                for scale in ("linear", "log")
            )
            scales.append(f'<div class="{iterate if chart.averaged else "both"}">{inner}</div>')
    names = "".join(f"<li>{swatch(line)} {html(line.name)}</li>" for line in chart.lines if line.x)
    band = '<li class="hint">band: 20 to 80 % of seeds</li>' if any(line.low for line in chart.lines) else ""
    iterate = either("last iterate", "averaged iterate") if chart.averaged else ""
    scale = f'<span class="log">{", " if iterate else ""}log scale</span>'
    return (
        f'<figure id="{key}" data-default="{usual}"><figcaption>{html(chart.title)} '
        f"<small>{iterate}{scale}</small></figcaption>\n"
        f'{"".join(scales)}<ul class="legend">{names}{band}</ul></figure>'
    )


def figures(charts: Sequence[Chart], key: str, columns: int = 2) -> str:
    """Charts side by side where the screen is wide enough."""
    inner = "\n".join(figure(chart, f"{key}-{chart.key}") for chart in charts if not chart.empty)
    missing = "; ".join(chart.title for chart in charts if chart.empty)
    hint = f'<p class="hint">Nothing is recorded for: {html(missing)}.</p>' if missing else ""
    return (f'<div class="charts" style="--columns: {columns}">\n{inner}\n</div>' if inner else "") + hint
