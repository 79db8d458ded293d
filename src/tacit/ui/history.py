"""The recorded rounds of a run as columns and as charts: what a file gains is read, and no line is trusted."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from tacit.report.chart import CHARTED, KNOWN, Chart, Line, over_rounds
from tacit.ui.place import Parts, Place, Stamp
from tacit.ui.said import finite, parsed

POINTS = 300  # of a line at most, about as many as a chart has pixels
LARGEST = 256 << 20  # bytes of a history
KEPT = 64  # histories in memory
ROUNDS = "rounds.jsonl"


@dataclass
class History:
    """The columns of rounds.jsonl so far; None where a round has no such number."""

    stamp: Stamp
    read: int = 0  # bytes
    t: list[int] = field(default_factory=list)
    columns: dict[str, list[float | None]] = field(default_factory=dict)
    _thinned: dict[str, tuple[int, tuple[list[float], list[float]]]] = field(default_factory=dict)  # at a length

    def take(self, content: bytes) -> None:
        """Take in whole lines; half a line at the end is read when it is whole."""
        end = content.rfind(b"\n") + 1
        self.read += end
        for line in content[:end].split(b"\n"):
            row = parsed(line)
            t = row.get("t")
            if type(t) is not int or not 0 <= t < 2**53 or (self.t and t <= self.t[-1]):
                continue
            self.t.append(t)
            for key in KNOWN:
                if key in self.columns:
                    self.columns[key].append(finite(row.get(key)))
                elif key in row:
                    self.columns[key] = [*[None] * (len(self.t) - 1), finite(row[key])]

    def line(self, key: str) -> tuple[list[float], list[float]]:
        """Return the rounds and the values of a quantity, thinned."""
        known = self._thinned.get(key)
        if known is None or known[0] != len(self.t):
            column = self.columns.get(key, [])
            there = [(float(t), y) for t, y in zip(self.t, column, strict=False) if y is not None]
            known = len(self.t), thinned([t for t, _ in there], [y for _, y in there])
            self._thinned[key] = known
        return known[1]


class Histories:
    """The histories that were last asked for."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._kept: OrderedDict[Parts, History] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, parts: Parts) -> History:
        """Return the history of a run, read up to its last whole line; empty where the run has none."""
        with self._lock:
            stamp = self._place.stamp(parts, ROUNDS)
            if stamp is None:
                return History(Stamp(0, 0, 0))
            known = self._kept.pop(parts, None)
            if known is None or known.stamp.inode != stamp.inode or stamp.size < known.read:  # a resumed run cuts it
                known = History(stamp)
            if stamp.size > known.read:
                known.take(self._place.read(parts, ROUNDS, known.read, LARGEST))
            known.stamp = stamp
            self._kept[parts] = known
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
            return known


def charts(histories: Sequence[tuple[str, History]]) -> list[Chart]:
    """Return a chart for each quantity that a run has recorded, with a line for each run, by name."""

    def lines(key: str, factor: float) -> tuple[Line, ...]:
        columns = [(name, *history.line(key)) for name, history in histories]
        return tuple(Line(name, tuple(x), tuple(factor * value for value in y), style=style)
                     for style, (name, x, y) in enumerate(columns) if x)  # fmt: skip

    return [chart for chart in (over_rounds(quantity, lines) for quantity in CHARTED) if not chart.blank]


def thinned(x: Sequence[float], y: Sequence[float], points: int = POINTS) -> tuple[list[float], list[float]]:
    """Return about `points` of all points: the first, the last, and the lowest and the highest of every stretch.

    A peak of one round is seen, which every n-th point would not show.
    """
    if len(x) <= points:
        return list(x), list(y)
    parts = points // 2 - 1
    kept = {0, len(x) - 1}
    for n in range(parts):
        stretch = range(n * len(x) // parts, (n + 1) * len(x) // parts)
        kept |= {min(stretch, key=y.__getitem__), max(stretch, key=y.__getitem__)}
    order = sorted(kept)
    return [x[n] for n in order], [y[n] for n in order]
