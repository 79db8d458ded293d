"""Reads and checks artefact.json, which says what panels, printed numbers and tables to show beside records.

The file holds results (tables, series), so it is under a seal, as records are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit import record
from tacit.errors import RecordError
from tacit.report.runs import Recorded, varied

Cells = tuple[tuple[str, ...], tuple[tuple[Any, ...], ...]]  # columns, rows


@dataclass(frozen=True)
class Panel:
    """One small chart: y against rounds (x = "t") or, at the end of a run, against a key of the spec."""

    title: str
    x: str
    y: str
    where: Mapping[str, Any]
    lines_by: tuple[str, ...]
    x_label: str
    y_label: str
    log_x: bool
    log_y: bool


@dataclass(frozen=True)
class Printed:
    """A number of the paper, and how near ours is claimed to be; without a tolerance it is shown only."""

    label: str
    where: Mapping[str, Any]
    y: str
    paper: float
    tolerance: float | None
    note: str


@dataclass(frozen=True)
class Series:
    """A line of a panel that is no run, in the unit of the records."""

    panel: int
    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]


@dataclass(frozen=True)
class ArtefactFile:
    """What artefact.json says: how to show a figure or a table of the paper."""

    name: str
    title: str
    about: str
    scale: str
    panels: tuple[Panel, ...]
    columns: int
    printed: tuple[Printed, ...]
    table: Cells | None
    series: tuple[Series, ...]
    notes: tuple[str, ...]
    runs: Mapping[str, Any]  # the seals of its records by name


def read(path: Path) -> ArtefactFile:
    """Read an artefact.json, and refuse one that was edited or breaks its form."""
    try:
        found = record.loads(path.read_text(encoding="utf-8"))
        if "seal" not in found:
            raise RecordError(f"{path} has no seal: it is of an earlier version. Run `tacit reproduce` again.")
        if not record.is_whole(found):
            raise RecordError(f"{path} was changed after it was written: run `tacit reproduce` again.")
        return _artefact(found)
    except KeyError as error:
        raise RecordError(f"{path} has no {error.args[0]!r} where one is needed: reproduce it again.") from None
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise RecordError(f"{path} is no artefact ({error}): reproduce it again.") from None


def chosen(runs: Sequence[Recorded], where: Mapping[str, Any]) -> list[Recorded]:
    """Return the runs whose spec has these values. JSON has no infinity: null stands for it."""
    return [run for run in runs if all(_equal(run.values.get(key), value) for key, value in where.items())]


def alike(runs: Sequence[Recorded], what: str) -> list[Recorded]:
    """Return the runs, if the seed alone sets them apart; a mean over others would mean nothing."""
    keys = varied(runs)
    if keys:
        raise RecordError(f"{what} would average runs that differ in {keys[0]}: name it in where or lines_by.")
    return list(runs)


def _equal(value: Any, wanted: Any) -> bool:
    if isinstance(value, float) and math.isinf(value):
        return wanted in (None, "inf", value)
    return bool(value == wanted)


def _artefact(found: dict[str, Any]) -> ArtefactFile:
    """Return what the JSON says, with defaults for what the JSON leaves out."""
    panels = tuple(map(_panel, found.get("panels") or ()))
    series = tuple(map(_series, found.get("series") or ()))
    for one in series:
        if not 0 <= one.panel < len(panels):
            raise ValueError(f"series {one.name!r} is for panel {one.panel}, and there are {len(panels)}")
    title, about, scale = (str(found.get(key) or "") for key in ("title", "about", "scale"))
    return ArtefactFile(
        str(found["name"]), title or str(found["name"]), about, scale, panels, max(1, int(found.get("columns") or 1)),
        tuple(map(_printed, found.get("printed") or ())),
        None if found.get("table") is None else _table(found["table"]),
        series, tuple(map(str, found.get("notes") or ())), dict(found["runs"]),
    )  # fmt: skip


def _table(found: dict[str, Any]) -> Cells:
    columns, rows = tuple(map(str, found["columns"])), tuple(map(tuple, found["rows"]))
    for n, row in enumerate(rows, 1):
        if not row or len(row) != len(columns):
            raise ValueError(f"row {n} of its table has {len(row)} cells for {len(columns)} columns")
    return columns, rows


def _panel(found: dict[str, Any]) -> Panel:
    x, y = str(found["x"]), str(found["y"])
    return Panel(
        str(found.get("title") or ""), x, y, dict(found.get("where") or {}), tuple(found.get("lines_by") or ()),
        str(found.get("x_label") or ("round" if x == "t" else x)), str(found.get("y_label") or y.replace("_", " ")),
        bool(found.get("log_x")), bool(found.get("log_y")),
    )  # fmt: skip


def _printed(found: dict[str, Any]) -> Printed:
    tolerance = found.get("tolerance")
    return Printed(
        str(found["label"]), dict(found.get("where") or {}), str(found["y"]), float(found["paper"]),
        None if tolerance is None else float(tolerance), str(found.get("note") or ""),
    )  # fmt: skip


def _series(found: dict[str, Any]) -> Series:
    x, y = (tuple(math.nan if value is None else float(value) for value in found[axis]) for axis in "xy")
    if len(x) != len(y):
        raise ValueError(f"series {found['name']!r} has {len(x)} x and {len(y)} y")
    return Series(int(found["panel"]), str(found["name"]), x, y)
