"""What a board reads first of one run: how good the model is, what is promised to whom, and whether it may leave."""

from __future__ import annotations

from collections.abc import Sequence

from tacit.measures import AUC, ERROR, R2, RMSE, Measure, judge
from tacit.privacy.risk import IF_EXACT
from tacit.report import matrix
from tacit.report.chart import Chart
from tacit.report.markup import either, figure, html
from tacit.report.runs import Recorded
from tacit.report.tested import CONFIDENCE, Tested, agents_chart, interval, tested

EXACT = 5000  # test records from which on hundredths of a per cent are shown
NOT_COVERED = (
    "Exact results on the test records. The guarantee does not cover them: publishing them reveals something about "
    "those records."
)


def about(run: Recorded) -> str:
    """Say in one line what was trained on what."""
    told = run.summary
    agents, records = told.get("agents"), told.get("records")
    over = f" over {_many(agents, 'agent')} with {_many(records, 'training record')}" if agents and records else ""
    return f"A model trained by {run.values['algorithm.name']} on {told.get('dataset', 'data')}{over}, in " + _many(
        run.values["run.rounds"], "round") + "."  # fmt: skip


def headline(run: Recorded, page_is_public: bool = False) -> str:
    """Return the tiles of one run; how good the model is, only if the run tells."""
    if run.diverged:
        return f'<p class="lead">{html(about(run))} The run diverged: {html(run.summary["diverged"])}</p>'
    tiles = [*([_quality(run, tested(run.summary))] if judge(run.summary) else []), _privacy(run)]
    if run.private:
        whom, meaning = run.privacy.trusted
        asked = "Who would be trusted" if run.privacy.simulated else "Who must be trusted"
        tiles.append(_tile(asked, html(whom), [html(meaning)]))
    found = run.privacy.status(page_is_public)
    tiles.append(_tile("Status", html(found.words), [html(found.reason)], found.kind))
    return f'<p class="lead">{html(about(run))}</p><div class="tiles">{"".join(tiles)}</div>'


def pictures(run: Recorded, key: str) -> str:
    """Return the confusion matrix and the chart of agents; nothing where the result tells neither."""
    known = None if run.diverged else tested(run.summary)
    if known is None:
        return ""
    first, second = "", ""
    if (found := known.confusion) is not None:
        title = "Predicted against true values" if found.binned else "Which class is taken for which"
        first = matrix.picture(found, f"{key}-confusion", title)
        if len(found.classes) > 2 and not found.binned:  # of two classes, the matrix shows both mistakes
            second = matrix.mistakes(found)
    if (chart := agents(run)) is not None:
        second = figure(chart, f"{key}-{chart.key}") + _interval_hint(chart) + second
    parts = [first, f"<div>{second}</div>" if second else ""]
    if not any(parts):
        return ""
    return (
        f'<h3>On {_many(known.records, "test record")}</h3><p class="hint">{html(NOT_COVERED)}</p>'
        f'<div class="charts" style="--columns: 2">{"".join(parts)}</div>'
    )


def agents(run: Recorded) -> Chart | None:
    """Return the chart of agents, where the result tells of several."""
    known = None if run.diverged else tested(run.summary)
    return None if known is None else agents_chart(known, run.summary.get(known.judged.key))


def _interval_hint(chart: Chart) -> str:
    if not chart.lines[0].low:
        return ""
    return (
        f'<p class="hint">The bar shows between what the error lies, with {CONFIDENCE:.0%} confidence: '
        "an agent with few test records has a long bar.</p>"
    )


def _quality(run: Recorded, known: Tested | None) -> str:
    """Return how good the model is, with what the number of test records makes uncertain."""
    judged = judge(run.summary) or ERROR
    last, averaged = (_words(run, judged, key, known) for key in (judged.key, judged.averaged))
    number = either(*(_number(judged, run.summary.get(key), known) for key in (judged.key, judged.averaged)))
    lines: list[str] = [either(" ".join(last), " ".join(averaged))]
    for other, meaning in ((AUC, "1 ranks all cases right, 0.5 is a coin"), (R2, "share of the spread explained")):
        if run.summary.get(other.key) is not None:
            value = either(*(other.shown(run.summary.get(key)) for key in (other.key, other.averaged)))
            lines.append(f"{html(other.name.removeprefix('test '))} {value}: {meaning}.")
    return _tile(f"{judged.name}, exact", number, lines)


def _number(judged: Measure, value: float | None, known: Tested | None) -> str:
    """Write the measure, without digits that so few test records cannot tell."""
    if judged is ERROR and value is not None and known is not None and known.records < EXACT:
        return f"{value:.1%}"
    return judged.shown(value)


def _words(run: Recorded, judged: Measure, key: str, known: Tested | None) -> list[str]:
    value = run.summary.get(key)
    if value is None:
        return ["There were no test records."]
    if known is None:
        return ["Share of test records that got the wrong class." if judged is ERROR else "Root of the mean square."]
    if judged is RMSE:
        return [f"How far predictions are off, as the root of the mean square over {known.records} test records, in "
                "the unit of the label."]  # fmt: skip
    both = interval(judged, value, known.records)
    said = [f"{round(value * known.records):,} of {_many(known.records, 'test record')} got the wrong class."]
    if both is not None:
        low, high = both
        sure = f"({CONFIDENCE:.0%} confidence)"
        said.append(f"On other such records the error lies between {low:.1%} and {high:.1%} {sure}.")
    if known.confusion is not None:
        said.append(f"Always naming the most frequent class is wrong on {known.confusion.guessing:.1%}.")
    return said


def _privacy(run: Recorded) -> str:
    if not run.private:
        return _tile("Privacy", "None", [html(run.privacy.promise)], "bare")
    title = f"Privacy {IF_EXACT}" if run.privacy.simulated else "Privacy"
    return _tile(title, _unbroken(run.privacy.budget), [html(run.privacy.promise)])


def _unbroken(pairs: str) -> str:
    """Return names and values as HTML in which no line ends within a pair, nor within a number."""
    return ", ".join(html(pair).replace(" ", "&nbsp;").replace("-", "&#8209;") for pair in pairs.split(", "))


def _tile(title: str, big: str, lines: Sequence[str], kind: str = "") -> str:
    """Return a tile, of HTML: its title, a number or a few words in large letters, and what they mean."""
    size = "big" if big.endswith("</span>") else "big words"  # a number, of either iterate
    text = "".join(f"<p>{line}</p>" for line in lines)
    return f'<div class="tile {kind}"><h3>{html(title)}</h3><p class="{size}">{big}</p>{text}</div>'


def _many(n: object, noun: str) -> str:
    return f"{n:,} {noun}" + ("" if n == 1 else "s") if isinstance(n, int) else f"{n} {noun}s"
