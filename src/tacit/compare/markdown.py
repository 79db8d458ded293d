"""The leaderboard as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from tacit.jsontext import Values
from tacit.leaderboard.table import by_budget, cells, heads, notes


def markdown(table: Sequence[Values]) -> str:
    """One table of Markdown for each budget, and what the words in the tables mean."""
    parts = []
    for budget, own in by_budget(table):
        head = heads(own)
        lines = [f"| {' | '.join(line)} |" for line in (head, *map(cells, own))]
        parts += [budget, "", lines[0], "|---" * len(head) + "|", *lines[1:], ""]
    return "\n".join([*parts, "", *notes(table)])
