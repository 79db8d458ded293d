"""Sources in, one page (and figures) out: what `tacit report`, `tacit train` and `tacit reproduce` call."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from tacit.errors import RecordError, RunDirectoryError
from tacit.report import curves
from tacit.report.page import page
from tacit.report.source import Source, read_all


def write(sources: Sequence[Path], out: Path, figures: Path | None = None) -> Path:
    """Write the page of these sources to `out` and, if asked for, every chart as PNG and SVG into `figures`."""
    found = read_all([Path(path) for path in sources])
    if figures is not None:  # first, because matplotlib may be missing
        write_figures(found, Path(figures))
    write_page(found, Path(out))
    return Path(out)


def write_page(sources: Sequence[Source], out: Path) -> None:
    """The page, whole or not at all."""
    if not sources:
        raise RecordError("a report needs a run, a sweep or records to report: name at least one.")
    if out.is_dir():
        raise RunDirectoryError(f"{out} is a directory: give --out a file, such as {out / 'report.html'}.")
    text = page(sources, keys(sources))
    draft = out.with_name(f".{out.name}.draft")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(text, encoding="utf-8")
        draft.replace(out)
    except OSError as error:
        raise RunDirectoryError(f"cannot write {out}: {error.strerror}. Give another --out.") from None


def write_figures(sources: Sequence[Source], directory: Path) -> list[Path]:
    """Every chart of every source as a file: an artefact's panels in one, the others one each."""
    from tacit.report.figures import draw  # matplotlib, which only figures need

    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunDirectoryError(f"cannot write into {directory}: {error.strerror}. Give another --figures.") from None
    written = []
    for source, key in zip(sources, keys(sources), strict=True):
        if source.artefact is not None:
            written += draw(curves.panels(source.artefact, source.runs), directory / key, source.artefact.columns)
        for chart in curves.standard(source.runs):
            written += draw([chart], directory / f"{key}-{chart.key}")
    return written


def keys(sources: Sequence[Source]) -> list[str]:
    """A name for each source that fits a file and an id, and is its own."""
    found: list[str] = []
    for source in sources:
        name = re.sub(r"[^A-Za-z0-9.]+", "-", source.name).strip("-.") or "report"
        name = name if name[0].isalpha() else f"r-{name}"
        taken = [name, *(f"{name}-{n}" for n in range(2, len(sources) + 2))]
        found.append(next(one for one in taken if one not in found))
    return found
