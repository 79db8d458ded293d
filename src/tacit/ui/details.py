"""What takes longer than a glance: whether records are whole, means of a sweep, effects of columns, the audit."""

from __future__ import annotations

import math
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from tacit.errors import TacitError
from tacit.jsontext import Values
from tacit.report import curves, leaderboard, output, shapes
from tacit.report.chart import Chart, Line
from tacit.report.source import Source, read
from tacit.ui import audits, index
from tacit.ui.audits import AUDIT
from tacit.ui.index import Item
from tacit.ui.place import LARGEST, Parts, Place, Stamp, Unreadable
from tacit.ui.rows import FINISHED, Rows
from tacit.ui.said import text, text_long

RECORDED = ("spec.toml", "result.json", "rounds.jsonl", "model.npz", "records.jsonl", "artefact.json")
CHARTED = 60  # runs of a sweep at most whose means are drawn: the page compares others by choice
LISTED = 200  # rows of a table
UNPACKED = 4 * LARGEST  # bytes of a model
KEPT = 256  # items in memory
COLUMNS = ("runs", "algorithm", "data", "label", "epsilon", "rounds", "seeds", "test_error", "test_rmse")  # compared


class Details:
    """The details of items, kept as long as the files that they were made of stay as they are."""

    def __init__(self, place: Place, rows: Rows) -> None:
        self._place, self._rows = place, rows
        self._kept: dict[Parts, tuple[tuple[tuple[str, Stamp], ...], Values]] = {}

    def of(self, item: Item) -> Values:
        """Return whether records are whole, effects of columns, the budget, the audit."""
        there = self._place.stamps(item.parts, (*RECORDED, AUDIT))
        stamps = tuple(there.items())
        known = self._kept.get(item.parts)
        if known is None or known[0] != stamps:
            known = stamps, self._more(item)
            if len(self._kept) >= KEPT:
                self._kept.clear()
            self._kept[item.parts] = known
        return known[1]

    def _more(self, item: Item) -> Values:
        told: Values = {
            "damaged": "",
            "charts": [],
            "effects": None,
            "audit": audits.told(self._place, item.parts),
            "comparison": [],
            "boards": [],
        }
        if item.kind not in (index.RUN, index.SWEEP) or self._rows.row(item).state != FINISHED:
            return told
        try:
            with self._place.copied(item.parts, RECORDED) as copy:
                return told | _told(copy, item)
        except Unreadable as error:
            return told | {"damaged": str(error)}


def _plain(value: Any) -> Any:
    """Return a cell of a comparison: the mean of a spread."""
    found = value.get("mean") if isinstance(value, dict) else value
    return None if isinstance(found, float) and not math.isfinite(found) else found


def _told(copy: Path, item: Item) -> Values:
    """Read the copy of a run or a sweep as a report does; errors name what is shown, not the copy."""
    try:
        _check_size(copy / "model.npz")
        source = read(copy)
        return _run(source) if item.kind == index.RUN else _sweep(source, item.name)
    except TacitError as error:
        raise Unreadable(str(error).replace(str(copy.resolve()), item.name).replace(copy.name, item.name)) from None
    except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError, RecursionError, MemoryError) as error:
        raise Unreadable(f"its records make no sense ({type(error).__name__})") from None


def _check_size(model: Path) -> None:
    """Refuse a model that unpacks to more than any file that is read."""
    if model.is_file():
        try:
            with zipfile.ZipFile(model) as archive:
                size = sum(member.file_size for member in archive.infolist())
        except (zipfile.BadZipFile, OSError):
            return  # the reader of models says what is wrong
        if size > UNPACKED:
            raise Unreadable(f"model.npz unpacks to {size >> 20} MB: more than {UNPACKED >> 20} MB are not read")


def _run(source: Source) -> Values:
    line = replace(curves.spent(source.runs[0]), name="this run")
    own = [_budget(source, line)] if line.x else []
    return {"charts": [one.description() for one in own], "effects": _effects(source.learnt)}


def _boards(source: Source) -> Values:
    """Return the leaderboards of a comparison."""
    told, drawn = [], []
    for n, board in enumerate(source.boards):
        tables = [
            {"caption": text(one.caption), "head": one.head,
             "lines": [[text(cell) for cell in line] for line in one.lines[:LISTED]],
             "guarantees": [[text(names), text_long(words)] for names, words in one.guarantees[:LISTED]]}
            for one in leaderboard.shown(board)
        ]  # fmt: skip
        told.append({"title": text(board.title), "tables": tables, "remarks": leaderboard.remarks(board)})
        drawn += [replace(chart, key=f"{n}-{chart.key}").description() for chart in leaderboard.charts(board)]
    return {"boards": told, "charts": drawn}


def _sweep(source: Source, name: str) -> Values:
    if source.boards:
        return _boards(source)
    drawn = curves.panels(source.artefact, source.runs) if source.artefact else []
    drawn += curves.standard(source.runs) if 0 < len(source.runs) <= CHARTED else []
    return {
        "charts": [one.description() for one in drawn if not one.empty],
        "comparison": [{key: _plain(row.get(key)) for key in COLUMNS} for row in output.comparison([source])[:LISTED]],
        "title": source.artefact.title if source.artefact else name, "many": len(source.runs) > CHARTED,
    }  # fmt: skip


def _budget(source: Source, line: Line) -> Chart:
    run = source.runs[0]
    return Chart("budget", "Budget spent", "round", f"total epsilon (at delta = {run.summary['dp_delta']:g})", (line,))


def _effects(found: shapes.Learnt | None) -> Values | None:
    if found is None:
        return None
    return {
        "reason": found.reason, "classes": list(found.classes), "log_odds": found.log_odds, "sigmas": shapes.SIGMAS,
        "charts": [chart.description() for chart in shapes.charts(found)],
        "all": 0 if found.last is None else len(found.last.columns),
        "undrawn": [] if found.last is None else list(found.last.undrawn[: shapes.SHOWN]),
    }  # fmt: skip
