"""What a card says of the model: measures with their uncertainty, and the effects of columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from tacit.card.blocks import Block, Matrix, Pictures, Table, Text
from tacit.measures import AUC, ERROR, MEASURES, Measure, judge
from tacit.report import headline, shapes
from tacit.report.chart import Chart, Line
from tacit.report.runs import Recorded
from tacit.report.shapes import Learnt
from tacit.report.tested import CONFIDENCE, Confusion, Tested, agents_chart, auc_interval, interval, tested

SHOWN = 12  # charts of effects at most
POINTS = 5  # values of a number that a table of effects holds
WIDEST = 12  # classes at most whose counts are written as a table
MISTAKES = 10  # frequent mistakes otherwise


def sentence(run: Recorded) -> str:
    """Say how good the model is, in one line."""
    judged = judge(run.summary) or ERROR
    value, known = run.summary.get(judged.key), tested(run.summary)
    if value is None:
        return "Not measured: there were no test records."
    both = interval(judged, value, known.records) if known is not None else None
    sure = f", between {both[0]:.1%} and {both[1]:.1%} with {CONFIDENCE:.0%} confidence" if both else ""
    over = f" on {known.records:,} test records" if known is not None else ""
    return f"{judged.name} {judged.shown(value)}{over}{sure}."


def measured(run: Recorded) -> list[Block]:
    """Return the measures, their uncertainty, and what is known by class and by agent."""
    known = tested(run.summary)
    rows = []
    for one in MEASURES:
        if one.key in run.summary:
            value, averaged = run.summary[one.key], run.summary.get(one.averaged)
            rows.append([one.label, one.shown(value), _sure(one, value, known), one.shown(averaged)])
    if all(value == "-" for _, value, *_ in rows):
        return [Text(sentence(run))]
    columns = ["measure", "value", f"{CONFIDENCE:.0%} interval", "of the averaged model"]
    size = "The result does not say how many test records there were."
    if known is not None:
        how = "errors by Wilson, AUC by Hanley and McNeil"
        size = f"There were {known.records:,} test records. Intervals say what so many records can tell ({how})."
    told: list[Block] = [Text(f"{size} {headline.NOT_COVERED}"), Table("Measures", columns, rows)]
    if known is None:
        return told
    if known.confusion is not None:
        guess = f"Always naming the most frequent class is wrong on {known.confusion.guessing:.1%}."
        told += [*([] if known.confusion.binned else [Text(guess)]), Matrix(known.confusion, _counts(known.confusion))]
    chart = agents_chart(known, run.summary.get(known.judged.key))
    return told if chart is None else [*told, Pictures([chart], [_by_agent(known)])]


def _sure(measure: Measure, value: float | None, known: Tested | None) -> str:
    """Return the interval of a measure; a dash where there is none."""
    if known is None or value is None:
        return "-"
    if measure is AUC and known.confusion is not None and len(known.confusion.classes) == 2:
        negative, positive = (sum(row) for row in known.confusion.counts)
        return "{:.3f} to {:.3f}".format(*auc_interval(value, positive, negative)) if positive and negative else "-"
    both = interval(measure, value, known.records)
    return f"{both[0]:.1%} to {both[1]:.1%}" if both else "-"


def _counts(found: Confusion) -> Table:
    if len(found.classes) > WIDEST:
        rows = [[true, guessed, f"{count:,}"] for count, true, guessed in found.mistakes[:MISTAKES]]
        return Table("The most frequent mistakes", ["true class", "taken for", "test records"], rows)
    rows = [[name, *(f"{count:,}" for count in row)] for name, row in zip(found.classes, found.counts, strict=True)]
    return Table("Test records by true class (rows) and predicted class (columns)", ["true", *found.classes], rows)


def _by_agent(known: Tested) -> Table:
    rows = []
    for one in known.agents[:SHOWN]:
        sure = _sure(known.judged, one.value, replace(known, records=one.records))
        rows.append([one.name, f"{one.records:,}", known.judged.shown(one.value), sure])
    more = f", the first {SHOWN} of {len(known.agents)}" if len(known.agents) > SHOWN else ""
    columns = ["agent", "test records", known.judged.label, f"{CONFIDENCE:.0%} interval"]
    return Table(f"The model on the test records of each agent{more}", columns, rows)


def effects(found: Learnt | None) -> list[Block]:
    """Return the effects of columns, or why there are none."""
    if found is None or found.last is None:
        return [Text(f"The effect of each column is not shown: {found.reason if found else 'there is no model.'}")]
    charts = shapes.charts(found)
    what = f"the predicted {found.number}, in its unit" if found.number else "the score of each class"
    if found.log_odds:
        what = f"the log-odds of {found.classes[1]} (against {found.classes[0]}); +0.69 doubles the odds"
    more = f" {SHOWN} of {len(charts)} columns are shown, the largest effects first." if len(charts) > SHOWN else ""
    about = (
        f"The model adds up one effect for each column. An effect is what a value of the column adds to {what}. Zero "
        "is the mean over the declared values. Ranges show how far noise for privacy alone can have moved an "
        f"effect.{more}"
    )
    return [Text(about), Pictures(charts[:SHOWN], [_effects(chart) for chart in charts[:SHOWN]])]


def _effects(chart: Chart) -> Table:
    """Return some values of a chart as a table."""
    rows = []
    for line in chart.lines:
        names = chart.levels or [f"{x:.4g}" for x in line.x]
        step = 1 if chart.levels else max(1, (len(line.x) - 1) // (POINTS - 1))
        name = [line.name] if len(chart.lines) > 1 else []
        rows += [[*name, names[n], *_numbers(line, n)] for n in islice(range(len(line.x)), 0, None, step)]
        if line.missing:
            rows.append([*name, "missing", *_written(line.missing)])
    columns = [*(["output"] if len(chart.lines) > 1 else []), chart.x_label, chart.y_label, "range"]
    return Table(chart.title, columns, rows)


def _numbers(line: Line, n: int) -> list[str]:
    return _written((line.y[n], line.low[n], line.high[n]) if line.low else (line.y[n],))


def _written(values: Sequence[float]) -> list[str]:
    y, *ends = (f"{value:+.3g}" for value in values)
    return [y, " to ".join(ends) or "-"]
