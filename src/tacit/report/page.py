"""The page: contents, a comparison of all runs, and one section a source, in one file that needs no other."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from tacit.privacy.budget import upward
from tacit.report.markup import Raw, badge, either, folded, html, table
from tacit.report.section import section
from tacit.report.source import Source
from tacit.report.summary import comparison

CHOICES = (  # what a button sets on the root element, its label, and its values in turn
    ("theme", "theme", "system dark light"),
    ("y", "y axis", "default linear log"),
    ("iterate", "iterate", "last averaged"),
)

MANY = 12  # rows beyond which the comparison is folded, so that the sections are seen


def page(sources: Sequence[Source], keys: Sequence[str]) -> str:
    """Return the page as text; `keys` are the ids of the sections."""
    title = f"tacit: {sources[0].title}" if len(sources) == 1 else f"tacit: {len(sources)} reports"
    contents = "".join(f'<li><a href="#{key}">{html(source.title)}</a></li>'
                       for source, key in zip(sources, keys, strict=True))  # fmt: skip
    head = f'<nav aria-label="Contents"><h2>Contents</h2><ul>{contents}</ul></nav>' if len(sources) > 1 else ""
    sections = "\n".join(section(source, key) for source, key in zip(sources, keys, strict=True))
    return f"""<!doctype html>
<html lang="en" data-theme="system" data-y="default" data-iterate="last"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html(title)}</title><style>
{_own("page.css")}</style></head><body>
<header><h1>{html(title)}</h1>{_toolbar()}
<noscript><p>Charts need JavaScript; the tables hold the numbers, and the CSV holds the curves.</p></noscript></header>
<main>{head}
{_comparison(comparison(sources))}
{sections}
</main><script>
{_own("page.js")}</script></body></html>
"""


def _toolbar() -> str:
    """Return the buttons. They need the script, so the script shows them."""
    buttons = "".join(
        f'<button type="button" data-sets="{name}" data-choices="{values}">{label}: <b>{values.split()[0]}</b></button>'
        for name, label, values in CHOICES
    )
    return f'<div class="toolbar" role="group" aria-label="How charts are shown" hidden>{buttons}</div>'


def _comparison(rows: Sequence[dict[str, Any]]) -> str:
    if not rows:
        return ""
    several = len({row["source"] for row in rows}) > 1
    columns = ["runs", *(["source"] if several else []), "algorithm", "preset", "data", "epsilon", "delta",
               "guarantee", "rounds", "seeds", "test error (%)", "20 to 80 %", "seconds"]  # fmt: skip
    lines = [[row["runs"], *([row["source"]] if several else []), *_cells(row)] for row in rows]
    rows_of_all = table("Means over seeds; seconds are those of one run", columns, lines)
    return "<h2>Comparison</h2>" + (rows_of_all if len(rows) <= MANY else folded(f"{len(rows)} settings", rows_of_all))


def _cells(row: dict[str, Any]) -> list[object]:
    last, averaged = row["test_error"], row["test_error_averaged"]
    lost = f" ({row['diverged']} diverged)" if row["diverged"] else ""
    return [
        row["algorithm"], row["preset"], row["data"], _epsilon(row),
        "-" if row["dp_delta"] is None else f"{row['dp_delta']:g}",
        badge(row["label"]), row["rounds"], f"{row['seeds']}{lost}",
        either(_percent(last, "mean"), _percent(averaged, "mean")), either(_range(last), _range(averaged)),
        "-" if row["seconds"] is None else f"{row['seconds']['mean']:.3g}",
    ]  # fmt: skip


def _epsilon(row: dict[str, Any]) -> str:
    """Return the total, or what is claimed for a round where there is no total."""
    if row["epsilon"] is not None:
        return f"{upward(row['epsilon'])} in all"
    return "no noise" if row["epsilon_per_round"] is None else f"{row['epsilon_per_round']:.4g} a round, claimed"


def _percent(found: dict[str, Any] | None, part: str) -> str:
    return "-" if found is None else f"{100 * found[part]:.2f}"


def _range(found: dict[str, Any] | None) -> str:
    return "-" if found is None or found["count"] < 2 else f"{_percent(found, 'low')} to {_percent(found, 'high')}"


def _own(name: str) -> Raw:
    return Raw(files("tacit.report").joinpath(name).read_text(encoding="utf-8"))
