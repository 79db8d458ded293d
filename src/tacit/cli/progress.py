"""How far a command is, on stderr: a bar with the time left on a terminal, a line every ten seconds elsewhere."""

from __future__ import annotations

import argparse
import math
import sys
import time
from typing import TYPE_CHECKING

from tacit.cli.folding import say, width
from tacit.jsontext import Values
from tacit.measures import ERROR, judge

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

BAR, BESIDE = 28, 50  # columns of the bar at most, and of what stands beside it


class Progress:
    """A listener of rounds: it draws the bar, prints a line, or with `verbose` prints every recorded round."""

    def __init__(self, rounds: int, options: argparse.Namespace) -> None:
        self.rounds, self.quiet, self.verbose = rounds, options.quiet, options.verbose
        self.on_terminal = sys.stderr.isatty()
        self.start: tuple[float, int] | None = None
        self.shown = 0.0
        self.error = ""
        self.bar: Bar | None = None

    def __call__(self, done: int, row: Values | None) -> None:
        """Tell that so many rounds are done; `row` is what was recorded of the last one, if it was."""
        if self.quiet:
            return
        if self.verbose:
            if row is not None:
                say(_line(row), file=sys.stderr)
            return
        if row is not None:
            told = _judged(row)
            self.error = "" if told.endswith(" -") else f"  {told}"
        now = time.monotonic()
        if self.start is None:
            self.start = now, done  # a resumed run starts in the middle
        if done == self.rounds or now - self.shown > (0.1 if self.on_terminal else 10):
            self.shown = now
            if self.on_terminal:
                self._draw(done)
            else:
                say(self._text(done, now), file=sys.stderr)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the cursor on a line of its own, after an interruption too."""
        if self.bar is not None:
            self.bar.stop()

    def _draw(self, done: int) -> None:
        if self.bar is None:
            self.bar = _bar(self.rounds, done)
            self.bar.start()
        self.bar.update(self.bar.task_ids[0], completed=done, description=self.error, refresh=True)

    def _text(self, done: int, now: float) -> str:
        assert self.start is not None
        rate = (done - self.start[1]) / max(now - self.start[0], 1e-9)
        going = rate > 0 and done < self.rounds
        left = f"{_clock((self.rounds - done) / rate)} left" if going else _clock(now - self.start[0])
        return f"[{'#' * (28 * done // self.rounds):.<28}] round {done}/{self.rounds}  {left}{self.error}"


def _bar(rounds: int, done: int) -> Bar:
    """A bar that is drawn when it is told to: no thread draws it while processes are forked."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    round_of = TextColumn("round {task.completed}/{task.total}")
    left = TimeRemainingColumn(elapsed_when_finished=True)
    own = BarColumn(max(4, min(BAR, width(sys.stderr) - BESIDE)))
    bar = Bar(own, round_of, left, TextColumn("{task.description}"), console=Console(stderr=True),
              auto_refresh=False)  # fmt: skip
    bar.add_task("", total=rounds, completed=done)
    return bar


def shown(value: float | None, form: str) -> str:
    """A number as text; a dash where a method does not have it, or where it is not finite."""
    return "-" if value is None or not math.isfinite(value) else f"{value:{form}}"


def _judged(row: Values, width: int = 0) -> str:
    """What a row is judged by, with its name; a dash where nothing was measured."""
    measure = judge(row) or ERROR
    value = row.get(measure.key)
    return f"{measure.name} -" if value is None else f"{measure.name} {measure.shown(value):>{width}}"


def _line(row: Values) -> str:
    return (
        f"t={row['t']:>7}  {_judged(row, width=7)}  objective {shown(row['objective'], '.5f')}  "
        f"consensus {shown(row['consensus_violation'], '.4g')}  noise {shown(row['noise_gradient_units'], '.4g')}  "
        f"rho {shown(row['rho'], '.4g')}  binding {shown(row['binding'], '.2%')}"
    )


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"
