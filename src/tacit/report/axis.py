"""The range of an axis and the numbers along it, whoever draws them."""

from __future__ import annotations

import math
from collections.abc import Sequence

LEAST = 0.6  # decades of a logarithmic axis: noise around a constant should look like one
ROOM = 0.06  # of its range that a logarithmic axis adds, so that no line lies on the frame
FINEST = 0.01  # between two numbers of a linear axis, as a share of the largest: for the same reason


class Axis:
    """The range of one axis, and a few round numbers on it."""

    def __init__(self, values: Sequence[float], log: bool) -> None:
        self.log = log
        low, high = min(values), max(values)
        if log:
            self.low, self.high = math.log10(low), math.log10(high)
            span = self.high - self.low
            room = max(ROOM * span, LEAST - span) / 2
            self.low, self.high = self.low - room, self.high + room
            self.ticks = _log_ticks(self.low, self.high)
        else:
            step = _round_step(max((high - low) / 4, FINEST * max(abs(low), abs(high))) or 1.0)
            first, last = math.floor(low / step), math.ceil(high / step)
            self.ticks = [n * step for n in range(first, max(last, first + 1) + 1)]
            self.low, self.high = self.ticks[0], self.ticks[-1]

    @property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest value."""
        return (10**self.low, 10**self.high) if self.log else (self.low, self.high)

    def share(self, value: float) -> float:
        return ((math.log10(value) if self.log else value) - self.low) / (self.high - self.low)


def _log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten, fewer where they are many; with numbers between them where they are few."""
    powers = range(math.floor(low), math.ceil(high) + 1)
    for marks in ((1,), (1, 2, 5), (1, 1.5, 2, 3, 5, 7)):
        ticks = [m * 10.0**n for n in powers for m in marks if low - 1e-9 <= math.log10(m * 10.0**n) <= high + 1e-9]
        if len(ticks) >= 3:
            break
    return ticks[:: -(-len(ticks) // 8)]


def _round_step(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    return power * next(m for m in (1, 2, 5, 10) if m * power >= rough * 0.999)


def number(value: float) -> str:
    """A number in a few letters."""
    if not value or 1e-3 <= abs(value) < 1e5:
        return f"{value:.5g}"
    digits, _, power = f"{value:.2e}".partition("e")
    return f"{float(digits):g}e{int(power)}"
