"""The leaderboard of a comparison as a section of the page, and its charts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from tacit import toml
from tacit.jsontext import Values
from tacit.leaderboard import standing
from tacit.leaderboard.table import (
    NOT_ACCOUNTED,
    by_budget,
    cells,
    guarantees,
    heads,
    label,
    measure_of,
    notes,
    rows,
    rule,
)
from tacit.measures import Measure
from tacit.report.chart import Chart, Dot, DotChart, Line
from tacit.report.markup import badge, figures, html, table

SEEDS = "seeds"  # a column that only the page has: a comparison that was stopped has fewer runs of some methods


@dataclass(frozen=True)
class Board:
    """The rows of one setting of data, features and problem, and the name of the data."""

    data: str
    rows: tuple[Values, ...]

    @property
    def title(self) -> str:
        return f"Comparison of methods on {self.data}"


def boards(records: Sequence[Values], where: str) -> tuple[Board, ...]:
    """Return a board for each setting that the records of a comparison are of."""
    found = []
    for standings in standing.read(records, where):
        first = (standings[0].trials or standings[0].runs)[0]
        source = str(toml.parsed(first["spec"], where).get("data.source", "data"))
        found.append(Board(PurePath(source).stem, tuple(rows(standings))))
    return tuple(found)


@dataclass(frozen=True)
class Shown:
    """What is shown of one budget: a table whose last cell says what a guarantee is worth, and each guarantee once."""

    caption: str
    head: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
    guarantees: tuple[tuple[str, str], ...]  # of which methods, and in words


def shown(board: Board) -> list[Shown]:
    """Return what is shown of each budget."""
    found = []
    for budget, own in by_budget(board.rows):
        lines = tuple((*cells(row)[:-1], str(row["seeds"]), _worth(row)) for row in own)
        named = tuple((", ".join(names), words) for words, names in guarantees(own))
        found.append(Shown(budget[0].upper() + budget[1:], (*heads(own)[:-1], SEEDS, "guarantee"), lines, named))
    return found


def remarks(board: Board) -> list[str]:
    """Return what the words in the tables mean, how methods were tuned, and what no guarantee covers."""
    trials, seeds = max(len(row["trials"]) for row in board.rows), max(row["seeds"] for row in board.rows)
    cautions = [f"not covered: {caution}" for caution in NOT_ACCOUNTED]
    return [*notes(board.rows), f"tuning: {rule(trials, max(1, seeds))}", *cautions]


def section(board: Board, key: str) -> str:
    """Return the tables, charts and guarantees of a board."""
    parts = []
    for one, chart in zip(shown(board), charts(board), strict=True):
        lines = [(*line[:-1], badge(line[-1])) for line in one.lines]
        parts += [table(one.caption, one.head, lines), figures([chart], key)]
        items = "".join(f"<li><b>{html(names)}:</b> {html(words)}</li>" for names, words in one.guarantees)
        parts.append(f'<ul class="guarantees">{items}</ul>')
    told = "".join(f"<li>{html(one)}</li>" for one in remarks(board))
    return "\n".join([*parts, f"<ul>{told}</ul>"])


def _worth(row: Values) -> str:
    """Return what a guarantee is worth, in two words: all noise of a comparison is simulated."""
    if row["error_mean"] is None:
        return "no model"
    return "simulated noise" if row["private"] else "not private"


def charts(board: Board) -> list[Chart]:
    """Return one chart for each budget."""
    return [_chart(own, f"board-{n}") for n, (_, own) in enumerate(by_budget(board.rows))]


def _chart(own: Sequence[Values], key: str) -> Chart:
    """Return the mean error of each method at one budget, with the 20th to 80th percentile over seeds."""
    shown = [row for row in own if row["error_mean"] is not None]
    judged = measure_of(shown[0] if shown else own[0])
    lines = tuple(_line(judged, shown, private, style) for style, private in enumerate((True, False))
                  if any(row["private"] is private for row in shown))  # fmt: skip
    most = max((value for line in lines for value in (*line.y, *line.high)), default=0.0)
    title = f"{judged.name[0].upper()}{judged.name[1:]} of each method, {_budget(own[0]['budget_epsilon'])}"
    levels = tuple(row["method"] for row in shown)
    return Chart(key, title, "method", judged.label, lines, levels=levels, y_ends=(0.0, 1.04 * most or 1.0))


def _line(judged: Measure, shown: Sequence[Values], private: bool, style: int) -> Line:
    """Return the marks of the methods with a guarantee, or of the others."""
    own = {float(n): row for n, row in enumerate(shown) if row["private"] is private}
    low, mean, high = (tuple(judged.factor * row[key] for row in own.values())
                       for key in ("error_20", "error_mean", "error_80"))  # fmt: skip
    return Line("with a guarantee" if private else "not private", tuple(own), mean, low, high, style)


def _budget(epsilon: float) -> str:
    return "no noise" if math.isinf(epsilon) else f"total epsilon {epsilon:g}"


def dots(table: Sequence[Values], name: str) -> Iterator[tuple[float, DotChart]]:
    """Yield the figure of each budget for print."""
    for _, own in by_budget(table):
        found = []
        for row in own:
            if row["error_mean"] is not None:
                measure = measure_of(row)
                low, mean, high = (measure.factor * row[key] for key in ("error_20", "error_mean", "error_80"))
                found.append(Dot(label(row), low, mean, high, hollow=not row["private"]))
        if found:
            epsilon = own[0]["budget_epsilon"]
            unit = {"%": ", per cent"}.get(measure.unit, f", {measure.unit}")
            x_label = f"{measure.name}{unit}: mean, 20th to 80th percentile"
            title = f"{name}, total epsilon {epsilon:g}"
            yield epsilon, DotChart(title, x_label, tuple(found), "with a guarantee", "not private")
