"""A progress bar with an estimate of the time left, on a terminal; one line every so often elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Any


class Progress:
    """Call it after every round; it writes to stderr at most ten times a second."""

    def __init__(self, rounds: int, quiet: int, verbose: int) -> None:
        self.rounds, self.verbose = rounds, verbose
        self.on = not quiet
        self.bar = self.on and sys.stderr.isatty() and not verbose
        self.start: tuple[float, int] | None = None
        self.shown = 0.0
        self.error: float | None = None

    def __call__(self, done: int, row: dict[str, Any] | None) -> None:
        now = time.monotonic()
        if self.start is None:
            self.start = (now, done)  # a resumed run starts in the middle
        if row is not None:
            self.error = row["test_error"]
        if self.on and self.verbose and row is not None:
            print(_line(row), file=sys.stderr)
        last = done == self.rounds
        if self.bar and (last or now - self.shown > 0.1):
            self.shown = now
            print(f"\r\033[K{self._text(done, now)}", end="\n" if last else "", file=sys.stderr, flush=True)
        elif self.on and not self.verbose and not self.bar and (last or now - self.shown > 10):
            self.shown = now
            print(self._text(done, now), file=sys.stderr, flush=True)

    def stop(self) -> None:
        """Leave the cursor on a line of its own after an interruption."""
        if self.bar and self.start is not None:
            print(file=sys.stderr)

    def _text(self, done: int, now: float) -> str:
        assert self.start is not None
        width = 28
        filled = width * done // self.rounds
        rate = (done - self.start[1]) / max(now - self.start[0], 1e-9)
        going = rate > 0 and done < self.rounds
        left = f"{_clock((self.rounds - done) / rate)} left" if going else _clock(now - self.start[0])
        error = "" if self.error is None else f"  test error {100 * self.error:.2f}%"
        return f"[{'#' * filled}{'.' * (width - filled)}] round {done}/{self.rounds}  {left}{error}"


def _line(row: dict[str, Any]) -> str:
    error = "-" if row["test_error"] is None else f"{100 * row['test_error']:6.2f}%"
    return (
        f"t={row['t']:>7}  test error {error}  objective {row['objective']:.5f}  "
        f"consensus {row['consensus_violation']:.4g}  noise {row['noise_gradient_units']:.4g}  rho {row['rho']:.4g}"
    )


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"
