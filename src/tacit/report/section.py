"""One source as a section of the page."""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Sequence
from itertools import chain

from tacit.measures import JUDGES, MEASURES, Measure
from tacit.report import curves, headline, leaderboard, shapes
from tacit.report.artefact_file import ArtefactFile
from tacit.report.chart import KNOWN, factor
from tacit.report.markup import Raw, badge, facts, figures, folded, html, sparse_table, table
from tacit.report.printed import Comparison, compare
from tacit.report.privacy_text import RENDERED
from tacit.report.runs import FREE, Recorded, gathered, grouped, short, telling, text, varied
from tacit.report.source import QUANTITIES, Source

SHOWN_ABOVE = (*RENDERED, "test", "agent_records")  # or long


def section(source: Source, key: str) -> str:
    """Return the section; `key` is its id on the page."""
    if source.single is not None:
        return _single(source, source.single, key)
    artefact, runs = source.artefact, source.runs
    parts = [f'<section id="{key}" aria-labelledby="{key}-title"><h2 id="{key}-title">{html(source.title)}</h2>']
    if artefact is not None:
        parts.append(_artefact(artefact, runs, key))
    parts += [leaderboard.section(board, f"{key}-{n}") for n, board in enumerate(source.boards)]
    if runs:
        drawn = figures(curves.standard(runs), key)
        shown_above = artefact is not None and bool(artefact.panels)
        parts += [_guarantees(runs), folded("All curves", drawn) if shown_above else drawn, _unpriced(runs)]
        parts += [_result(runs[0]) if len(runs) == 1 else _results(runs), _spec(runs), _download(runs, key)]
    return "\n".join([*filter(None, parts), "</section>"])


def _single(source: Source, run: Recorded, key: str) -> str:
    """Return the section of one run: what a board reads first, then pictures, then the rest."""
    learnt = "" if source.learnt is None else shapes.section(source.learnt, key)
    trained = figures(curves.standard([run]), key)
    return "\n".join(filter(None, [
        f'<section class="first" id="{key}" aria-labelledby="{key}-title">',
        f'<h2 id="{key}-title">{html(source.title)}</h2>',
        headline.headline(run, source.audience.public), headline.pictures(run, key), learnt,
        f"<h3>How it was trained</h3>{trained}" if trained else "", _unpriced([run]),
        _guarantees([run]), _result(run), _spec([run]), _download([run], key), "</section>",
    ]))  # fmt: skip


def _artefact(artefact: ArtefactFile, runs: Sequence[Recorded], key: str) -> str:
    scale = f" <small>({html(artefact.scale)} scale)</small>" if artefact.scale else ""
    parts = [f"<p>{html(artefact.about)}{scale}</p>" if artefact.about or scale else ""]
    parts.append(figures(curves.panels(artefact, runs), key, artefact.columns))
    if artefact.printed:
        parts.append(_printed(compare(artefact, runs)))
    if artefact.table is not None:
        columns, rows = artefact.table
        parts.append(table("Computed", columns, ([text(cell) for cell in row] for row in rows)))
    if artefact.notes:
        parts.append("<ul>" + "".join(f"<li>{html(note)}</li>" for note in artefact.notes) + "</ul>")
    return "\n".join(filter(None, parts))


def _printed(found: Sequence[Comparison]) -> str:
    noted = any(one.note for one in found)
    columns = ["number", "paper", "tacit, mean", "20 to 80 %", "seeds", "difference", "verdict", "note"][: 7 + noted]
    rows = []
    for one in found:
        ours = one.ours
        verdict = Raw(f'<span class="{"missed" if one.missed else "held"}">{html(one.verdict)}</span>')
        own: list[object] = ["-"] * 4
        if ours is not None:
            band = f"{one.shown(ours.low)} to {one.shown(ours.high)}" if ours.count > 1 else "-"
            own = [one.shown(ours.mean), band, ours.count, f"{one.difference:+.2f}"]
        rows.append([one.label, one.shown(one.paper), *own, verdict, one.note][: len(columns)])
    return table("The paper beside tacit (errors in per cent, differences in points)", columns, rows)


def _guarantees(runs: Sequence[Recorded]) -> str:
    """Return each promise once, with the runs it is for."""
    by_promise = gathered(grouped(runs), lambda group: group.first.privacy.sentence)
    items = []
    for promise, groups in by_promise.items():
        run, names = groups[0].first, html("; ".join(group.label for group in groups))
        if promise:
            named = f"<b>{names}:</b> " if len(by_promise) > 1 else ""
            items.append(f"<li>{badge(run.privacy.label)} {named}{html(promise)}</li>")
        else:
            items.append(f"<li>{badge('diverged')} {names}: {html(run.summary['diverged'])}</li>")
    return f'<h3>The guarantee in full</h3><ul class="guarantees">{"".join(items)}</ul>{_coverage(runs)}'


def _coverage(runs: Sequence[Recorded]) -> str:
    """Say whom the guarantees are against and what they leave out, each wording once."""
    found = [run.privacy for run in runs if run.private]
    left = [("not covered", text(one.not_covered)) for one in found if one.not_covered]
    told = dict.fromkeys([*(fact for one in found for fact in one.facts), *left])
    return folded("What is covered, and what is not", facts(told)) if told else ""


def _unpriced(runs: Sequence[Recorded]) -> str:
    """Say why there is no budget to draw."""
    if any(run.private and not run.summary.get("releases") for run in runs):
        return '<p class="hint">No budget is drawn for records of version 0.1.0: they do not state their releases.</p>'
    if not any(run.private for run in runs):
        return '<p class="hint">No budget is drawn: a run that is not private has no total to spend.</p>'
    return ""


def _result(run: Recorded) -> str:
    told = [(_named(name), text(value)) for name, value in run.summary.items() if name not in SHOWN_ABOVE]
    return folded("Result", facts(told))


def _named(key: str) -> str:
    """Name a number of a result, with a warning if it is exact."""
    known = KNOWN.get(key)
    return key.replace("_", " ") + (f", {known.note}" if known and known.note else "")


def _results(runs: Sequence[Recorded]) -> str:
    """Return a table with one row a run."""
    shown = {key: label for one in MEASURES for key, label in ((one.key, one.label), (one.averaged, _averaged(one)))
             if any(key in run.summary for run in runs)}  # fmt: skip
    rows = []
    for run in runs:
        found = {name: run.summary.get(name) for name in (*shown, "objective", "seconds")}
        numbers = ["-" if value is None else f"{factor(name) * value:.4g}" for name, value in found.items()]
        rows.append([run.name, run.values.get("run.seed", "-"), *numbers, run.summary.get("spec_hash", "-")])
    columns = ["run", "seed", *shown.values(), "objective", "seconds", "spec"]
    return folded(f"All {len(runs)} runs", sparse_table("Each run at its end", columns, rows))


def _averaged(measure: Measure) -> str:
    """Label the measure of the averaged iterate."""
    return measure.label.replace(measure.name, "averaged" if measure in JUDGES else f"{measure.name}, averaged")


def _spec(runs: Sequence[Recorded]) -> str:
    """Show what all runs share as TOML, and what sets them apart as a table."""
    differ = varied(runs)
    shared = f"<pre>{html(_without(runs[0].spec, [*differ, *FREE] if len(runs) > 1 else []))}</pre>"
    if len(runs) == 1:
        return folded("Specification", shared)
    keys = [*telling(runs), *(key for key in differ if key not in telling(runs))]
    rows = []
    for group in grouped(runs):
        seeds = ", ".join(text(run.values.get("run.seed", "-")) for run in group.runs)
        rows.append([group.label, *(text(group.first.values.get(key)) for key in keys), seeds])
    apart = table("What sets them apart", ["runs", *map(short, keys), "seeds"], rows)
    return folded("Specification", f"<p>Shared by all runs:</p>{shared}{apart}")


def _without(spec: str, keys: Sequence[str]) -> str:
    """Return the TOML text without these keys."""
    kept, head = [], ""
    for line in spec.splitlines():
        if line.startswith("["):
            head = line.strip("[]")
        if f"{head}.{line.partition('=')[0].strip()}" not in keys:
            kept.append(line)
    return "\n".join(kept) + "\n"


def _download(runs: Sequence[Recorded], key: str) -> str:
    if not any(quantity in run.curve for run in runs for quantity in QUANTITIES):
        return ""
    link = f"data:text/csv;charset=utf-8;base64,{base64.b64encode(_curves_csv(runs).encode()).decode()}"
    return f'<p class="download"><a download="{key}.csv" href="{link}">Curves as CSV (exact)</a></p>'


def _curves_csv(runs: Sequence[Recorded]) -> str:
    """Write every curve as CSV: a line for each group and round, with mean and percentiles, in the unit of records."""
    out = io.StringIO()
    write = csv.writer(out, lineterminator="\n").writerow
    there = [key for key in QUANTITIES if any(key in run.curve for run in runs)]
    write(["runs", "seeds", "t", *(f"{key}_{part}" for key in there for part in ("mean", "p20", "p80"))])
    for group in grouped(runs):
        columns = {key: dict(zip(*group.curve(key), strict=True)) for key in there}
        for t in sorted({t for column in columns.values() for t in column}):
            found = [columns[key].get(t) for key in there]
            cells = [("",) * 3 if at is None else [f"{y:.6g}" for y in (at.mean, at.low, at.high)] for at in found]
            write([group.label, len(group.finished), t, *chain(*cells)])
    return out.getvalue()
