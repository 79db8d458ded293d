"""Charts of runs that may still go on: one line a run, thinned, as the static report draws them."""

from __future__ import annotations

from collections.abc import Sequence

from tacit.report.chart import AVERAGED, KNOWN, Chart, Line
from tacit.ui.history import History


def drawn(histories: Sequence[tuple[str, History]]) -> list[Chart]:
    """Return a chart for each quantity that a run has recorded, with a line for each run, by name."""
    found = [_chart(quantity, histories) for quantity in KNOWN if quantity not in AVERAGED.values()]
    return [chart for chart in found if any(y for line in chart.lines for y in line.y)]  # without noise it is zero


def _chart(quantity: str, histories: Sequence[tuple[str, History]]) -> Chart:
    known = KNOWN[quantity]

    def lines(key: str) -> tuple[Line, ...]:
        found = []
        for style, (name, history) in enumerate(histories):
            x, y = history.line(key)
            found.append(Line(name, tuple(x), tuple(known.factor * value for value in y), style=style))
        return tuple(line for line in found if line.x)

    averaged = lines(AVERAGED[quantity]) if quantity in AVERAGED else ()
    return Chart(
        quantity.replace("_", "-"), known.title, "round", known.label, lines(quantity), averaged, log_y=known.log,
        note=known.note,
    )  # fmt: skip
