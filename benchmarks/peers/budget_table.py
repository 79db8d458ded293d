"""Rows of peer-tables.jsonl as one table a data set: tools down, budgets across."""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import mean, stdev
from typing import Any

from benchmarks import report
from benchmarks.peers.peer import ON_TABLES, find
from benchmarks.peers.table import TITLES

MEASURED = re.compile(r"(<!-- tables -->\n).*?(<!-- /tables -->)", re.DOTALL)
NOTHING = "Nothing is measured yet: `python -m benchmarks.peers --tables --adult DIR`."


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """A table a data set; a cell has test error in % and AUC, each with its standard deviation over seeds."""
    parts = []
    for data, title in TITLES.items():
        own = [row for row in rows if row["data"] == data]
        budgets = sorted({row["asked_epsilon"] for row in own if row["asked_epsilon"] is not None})
        if any(row["asked_epsilon"] is None for row in own):
            budgets.append(None)
        head = ["tool", "trusts", *(_budget(epsilon) for epsilon in budgets), "training, s", "seeds"]
        lines = [
            _line(name, budgets, mine) for name in ON_TABLES if (mine := [row for row in own if row["peer"] == name])
        ]
        if lines:
            parts.append(f"**{title}**: test error in %, AUC\n\n{report.table(head, lines)}")
    return "\n\n".join(parts) or NOTHING


def _budget(epsilon: float | None) -> str:
    return "no privacy" if epsilon is None else f"epsilon {epsilon:g}"


def _line(name: str, budgets: Sequence[float | None], rows: Sequence[dict[str, Any]]) -> list[object]:
    peer = find(name)
    at = [[row for row in rows if row["asked_epsilon"] == epsilon] for epsilon in budgets]
    counts = sorted({len(own) for own in at if own})
    seconds = mean(row["seconds"] for row in rows)
    times = " to ".join(map(str, counts[:: max(1, len(counts) - 1)]))  # the least and the most, where they differ
    return [peer.title, peer.trusts, *map(_cell, at), f"{seconds:.2f}", times]


def _cell(rows: Sequence[dict[str, Any]]) -> str:
    if not rows:
        return ""
    error, auc = [100 * row["test_error"] for row in rows], [row["auc"] for row in rows]
    if len(rows) == 1:
        return f"{error[0]:.1f}, {_share(auc[0])}"
    return f"{mean(error):.1f} ± {stdev(error):.1f}, {_share(mean(auc))} ± {_share(stdev(auc))}"


def _share(value: float) -> str:
    """A number below one without its zero: .902."""
    return f"{value:.3f}".removeprefix("0")
