"""Rows of peers.jsonl as one table a data set."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean
from typing import Any

from benchmarks import report
from benchmarks.peers.peer import PEERS, find

TITLES = {"mnist": "MNIST", "adult": "UCI Adult", "heart": "UCI Heart Disease, four hospitals"}
HEAD = [
    "tool", "trusts", "unit of privacy", "epsilon, delta", "stated by", "steps", "training, s", "apart, s",
    "test error, %", "seeds",
]  # fmt: skip


def current(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows made with the constants that a tool has now; of two equal runs, the later."""
    latest = {(row["peer"], row["data"], row["seed"]): row for row in rows}
    return [row for row in latest.values() if row["constants"] == dict(find(row["peer"]).constants[row["data"]])]


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """A table a data set; `apart` is the rest of the process: imports, loading, start and scoring."""
    parts = []
    for data, title in TITLES.items():
        lines = [
            _line(name, own) for name in PEERS if (own := [r for r in rows if (r["peer"], r["data"]) == (name, data)])
        ]
        if lines:
            loads = [row["load_at_start"] for row in rows if row["data"] == data and row["load_at_start"] is not None]
            busy = f"; load average when a run began: {min(loads):g} to {max(loads):g}" if loads else ""
            parts.append(f"**{title}**{busy}\n\n{report.table(HEAD, lines)}")
    return "\n\n".join(parts)


def _line(name: str, rows: Sequence[dict[str, Any]]) -> list[object]:
    peer, errors = find(name), [100 * row["test_error"] for row in rows]
    seconds, whole = (mean(row[key] for row in rows) for key in ("seconds", "process_seconds"))
    spread = f" ({min(errors):.1f} - {max(errors):.1f})" if len(rows) > 1 else ""
    return [
        peer.title, peer.trusts, peer.unit, f"{max(row['epsilon'] for row in rows):.4g}, {rows[0]['delta']:g}",
        peer.accountant, rows[0]["steps"], f"{seconds:.2f}", f"{whole - seconds:.1f}", f"{mean(errors):.1f}{spread}",
        len(rows),
    ]  # fmt: skip
