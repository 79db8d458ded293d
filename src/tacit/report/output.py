"""Sources in, one page (and figures) out: what `tacit report`, `tacit train` and `tacit reproduce` call.

The page of one run begins with what a board reads first. Any other page has contents, a comparison of all runs, and one
section a source. Either is one file that needs no other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias

from tacit.errors import RecordError, RunDirectoryError
from tacit.measures import ERROR, Measure, judge
from tacit.privacy.budget import upward
from tacit.report import curves, headline, leaderboard, shapes
from tacit.report.audience import Audience
from tacit.report.markup import Raw, badge, either, folded, html, sparse_table
from tacit.report.runs import Group, grouped
from tacit.report.section import section
from tacit.report.source import Source, read_all

Row: TypeAlias = dict[str, Any]  # what JSON says of a group of runs, by name
CHOICES = (  # what a button sets on the root element, its label, and its values in turn
    ("theme", "theme", "system dark light"),
    ("y", "y axis", "default linear log"),
    ("iterate", "iterate", "last averaged"),
)

MANY = 12  # rows beyond which the comparison is folded, so that the sections are seen


def write(
    sources: Sequence[Path], out: Path, figures: Path | None = None, audience: Audience = Audience.OWNERS
) -> Path:
    """Write the page of these sources to `out` and, if asked for, every chart as PNG and SVG into `figures`."""
    found = read_all(sources, audience)
    if figures is not None:  # first, because matplotlib may be missing
        write_figures(found, figures)
    write_page(found, out)
    return out


def write_page(sources: Sequence[Source], out: Path) -> None:
    """Write the page, whole or not at all."""
    if not sources:
        raise RecordError("a report needs a run, a sweep or records to report: name at least one.")
    if out.is_dir():
        raise RunDirectoryError(f"{out} is a directory: give --out a file, such as {out / 'report.html'}.")
    text = _page(_keyed(sources))
    draft = out.with_name(f".{out.name}.draft")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(text, encoding="utf-8")
        draft.replace(out)
    except OSError as error:
        raise RunDirectoryError(f"cannot write {out}: {error.strerror}. Give another --out.") from None


def write_figures(sources: Sequence[Source], directory: Path) -> None:
    """Write every chart of every source as a file: an artefact's panels in one, the others one each."""
    from tacit.report.figures import draw  # matplotlib, which only figures need

    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunDirectoryError(f"cannot write into {directory}: {error.strerror}. Give another --figures.") from None
    for key, source in _keyed(sources).items():
        for n, board in enumerate(source.boards):
            draw(leaderboard.charts(board), directory / f"{key}-{n}")
        if source.artefact is not None:
            draw(curves.panels(source.artefact, source.runs), directory / key, source.artefact.columns)
        for chart in curves.standard(source.runs):
            draw([chart], directory / f"{key}-{chart.key}")
        known = None if source.single is None else headline.agents(source.single)
        if known is not None:
            draw([known], directory / f"{key}-{known.key}")
        if source.learnt is not None:
            draw(shapes.charts(source.learnt), directory / f"{key}-shapes", shapes.COLUMNS)


def comparison(sources: Iterable[Source]) -> list[Row]:
    """Return a row for each group of each source: what the group is, what it promises and what it reached."""
    return [_row(source, group) for source in sources for group in grouped(source.runs)]


def _row(source: Source, group: Group) -> Row:
    run = group.first
    told = run.summary
    judged = judge(told) or ERROR
    final = {key: group.final(key) for key in (judged.key, judged.averaged, "seconds")}
    return {
        "source": source.name, "runs": group.label,
        "algorithm": run.values["algorithm.name"], "preset": run.values["run.preset"],
        "data": told.get("dataset") or run.values.get("data.source"),
        "private": run.private, "label": run.privacy.label,
        "epsilon": told.get("epsilon") if run.private else None, "epsilon_per_round": told.get("epsilon_per_round"),
        "dp_delta": told.get("dp_delta"), "guarantee": told.get("guarantee") or told.get("diverged"),
        "rounds": run.values["run.rounds"],
        "seeds": len(group.finished), "diverged": len(group.runs) - len(group.finished),
        **{key: None if found is None else asdict(found) for key, found in final.items()},
    }  # fmt: skip

def _keyed(sources: Sequence[Source]) -> dict[str, Source]:
    """Give each source a name of its own that fits a file and an id."""
    found: dict[str, Source] = {}
    for source in sources:
        name = re.sub(r"[^A-Za-z0-9.]+", "-", source.name).strip("-.") or "report"
        name = name if name[0].isalpha() else f"r-{name}"
        names = [name, *(f"{name}-{n}" for n in range(2, len(sources) + 2))]
        found[next(one for one in names if one not in found)] = source
    return found


def _page(sources: dict[str, Source]) -> str:
    """Return the page as text; the keys of the sources are the ids of the sections."""
    titles = [html(source.title) for source in sources.values()]
    title = f"tacit: {titles[0]}" if len(titles) == 1 else f"tacit: {len(titles)} reports"
    contents = "".join(f'<li><a href="#{key}">{one}</a></li>' for key, one in zip(sources, titles, strict=True))
    head = f'<nav aria-label="Contents"><h2>Contents</h2><ul>{contents}</ul></nav>' if len(titles) > 1 else ""
    sections = "\n".join(section(source, key) for key, source in sources.items())
    notices = dict.fromkeys(source.audience for source in sources.values())
    notice = "".join(f'<p class="notice {one.name.lower()}">{html(one.notice())}</p>' for one in notices)
    alone = len(titles) == 1 and next(iter(sources.values())).single is not None
    compared = "" if alone else _comparison(comparison(sources.values()))
    return f"""<!doctype html>
<html lang="en" data-theme="system" data-y="default" data-iterate="last"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>
{_own("shared.css")}{_own("page.css")}{_own("board.css")}</style></head><body{' class="alone"' if alone else ""}>
<header><h1>{titles[0] if alone else title}</h1>{_toolbar()}
<noscript><p>Charts need JavaScript; the tables hold the numbers, and the CSV holds the curves.</p></noscript></header>
<main>{notice}{head}
{compared}
{sections}
</main><script>
{_own("axes.js")}{_own("chart.js")}{_own("page.js")}{_own("matrix.js")}</script></body></html>
"""


def _toolbar() -> str:
    """Return the buttons. They need the script, so the script shows them."""
    buttons = "".join(
        f'<button type="button" data-sets="{name}" data-choices="{values}">{label}: <b>{values.split()[0]}</b></button>'
        for name, label, values in CHOICES
    )
    return f'<div class="toolbar" role="group" aria-label="How charts are shown" hidden>{buttons}</div>'


def _comparison(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    several = len({row["source"] for row in rows}) > 1
    labels = dict.fromkeys(_judge(row).label for row in rows)
    columns = ["runs", *(["source"] if several else []), "algorithm", "preset", "data", "epsilon", "delta",
               "guarantee", "rounds", "seeds", " or ".join(labels), "20 to 80 %", "seconds"]  # fmt: skip
    lines = [[row["runs"], *([row["source"]] if several else []), *_cells(row)] for row in rows]
    timed = "; seconds are those of one run" if any(row["seconds"] for row in rows) else ""
    exact = "; test results are exact" if any(row[_judge(row).key] for row in rows) else ""
    rows_of_all = sparse_table(f"Means over seeds{exact}{timed}", columns, lines)
    return "<h2>Comparison</h2>" + (rows_of_all if len(rows) <= MANY else folded(f"{len(rows)} settings", rows_of_all))


def _cells(row: Row) -> list[object]:
    judged = _judge(row)
    last, averaged = row[judged.key], row[judged.averaged]
    lost = f" ({row['diverged']} diverged)" if row["diverged"] else ""
    return [
        row["algorithm"], row["preset"], row["data"], _epsilon(row),
        "-" if row["dp_delta"] is None else f"{row['dp_delta']:g}",
        badge(row["label"]), row["rounds"], f"{row['seeds']}{lost}",
        either(_number(judged, last, "mean"), _number(judged, averaged, "mean")),
        either(_range(judged, last), _range(judged, averaged)),
        "-" if row["seconds"] is None else f"{row['seconds']['mean']:.3g}",
    ]  # fmt: skip


def _epsilon(row: Row) -> str:
    """Return the total, or what is claimed for a round where there is no total."""
    if row["epsilon"] is not None:
        return f"{upward(row['epsilon'])} in all"
    return "no noise" if row["epsilon_per_round"] is None else f"{row['epsilon_per_round']:.4g} a round, claimed"


def _judge(row: Row) -> Measure:
    """Return what the runs of a row are judged by."""
    return judge(row) or ERROR


def _number(judged: Measure, found: Row | None, part: str) -> str:
    return "-" if found is None else judged.number(found[part])


def _range(judged: Measure, found: Row | None) -> str:
    if found is None or found["count"] < 2:
        return "-"
    return f"{_number(judged, found, 'low')} to {_number(judged, found, 'high')}"


def _own(name: str) -> Raw:
    return Raw(files("tacit.report").joinpath(name).read_text(encoding="utf-8"))
