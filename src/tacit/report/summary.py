"""Groups of runs in numbers: one row each of the comparison, and the curves of a section as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict
from itertools import chain
from typing import Any

from tacit.report.runs import Group, Recorded, grouped
from tacit.report.source import QUANTITIES, Source


def comparison(sources: Sequence[Source]) -> list[dict[str, Any]]:
    """Return a row for each group of each source: what the group is, what it promises and what it reached."""
    return [_row(source, group) for source in sources for group in grouped(source.runs)]


def _row(source: Source, group: Group) -> dict[str, Any]:
    run = group.first
    told = run.summary
    final = {key: group.final(key) for key in ("test_error", "test_error_averaged", "seconds")}
    return {
        "source": source.name, "runs": group.label,
        "algorithm": run.values["algorithm.name"], "preset": run.values["run.preset"],
        "data": told.get("dataset") or run.values.get("data.source"),
        "private": run.private, "label": run.label,
        "epsilon": told.get("epsilon") if run.private else None, "epsilon_per_round": told.get("epsilon_per_round"),
        "dp_delta": told.get("dp_delta"), "guarantee": told.get("guarantee") or told.get("diverged"),
        "rounds": run.values["run.rounds"],
        "seeds": len(group.finished), "diverged": len(group.runs) - len(group.finished),
        **{key: None if found is None else asdict(found) for key, found in final.items()},
    }  # fmt: skip


def curves_csv(runs: Sequence[Recorded]) -> str:
    """Write every curve as CSV: a line for each group and round, with mean and percentiles, in the unit of records."""
    out = io.StringIO()
    write = csv.writer(out, lineterminator="\n").writerow
    write(["runs", "seeds", "t", *(f"{key}_{part}" for key in QUANTITIES for part in ("mean", "p20", "p80"))])
    for group in grouped(runs):
        columns = {key: dict(zip(*group.curve(key), strict=True)) for key in QUANTITIES}
        for t in sorted({t for column in columns.values() for t in column}):
            found = [columns[key].get(t) for key in QUANTITIES]
            cells = [("",) * 3 if at is None else [f"{y:.6g}" for y in (at.mean, at.low, at.high)] for at in found]
            write([group.label, len(group.finished), t, *chain(*cells)])
    return out.getvalue()
