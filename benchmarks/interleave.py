"""Contenders take turns, so that whatever else the machine does happens to all of them."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from statistics import median

Round = Callable[[], object]
Turn = tuple[float, float]  # (wall, CPU) seconds a round
Turns = dict[str, list[Turn]]  # one turn a repetition

TURN = 0.06  # seconds: short rounds are repeated that long, for one alone would measure the scheduler
NAP = 0.02  # seconds between two looks at whether the threads of the last turn have gone to sleep


class OwnClock(ABC):
    """A contender in another process: it plays a turn and times the turn itself, so that no message is timed."""

    @abstractmethod
    def turn(self, seconds: float) -> Turn:
        """Rounds for as many seconds, and at least one; the process is idle again when the answer is there."""


def interleaved(rounds: Mapping[str, Round | OwnClock], seconds: float, least: int = 3, turn: float = TURN) -> Turns:
    """At least `least` repetitions of a turn of each, and more until `seconds` have passed.

    Every second repetition goes backwards, so that nobody always follows the same contender.
    """
    for play in rounds.values():  # warm-up: the first round faults memory in
        take_turn(play, 0)
    turns: Turns = {name: [] for name in rounds}
    start, done = time.perf_counter(), 0
    while done < least or time.perf_counter() - start < seconds:
        for name in (list, reversed)[done % 2](list(rounds)):
            settle()
            turns[name].append(take_turn(rounds[name], turn))
        done += 1
    return turns


def settle(limit: float = 0.5) -> None:
    """Wait for idle threads: those of OpenBLAS spin on for 50 ms, which would be charged to the next contender."""
    end = time.perf_counter() + limit
    while time.perf_counter() < end:
        before = time.process_time()
        time.sleep(NAP)
        if time.process_time() - before < NAP / 10:
            return


def take_turn(play: Round | OwnClock, seconds: float) -> Turn:
    """Rounds until `seconds` have passed, and at least one: what a round took."""
    if isinstance(play, OwnClock):
        return play.turn(seconds)
    n, wall, cpu = 0, time.perf_counter(), time.process_time()
    while n == 0 or time.perf_counter() - wall < seconds:
        play()
        n += 1
    return (time.perf_counter() - wall) / n, (time.process_time() - cpu) / n


def summary(turns: Turns, runs: Mapping[str, int], baseline: str) -> dict[str, dict[str, float | list[float]]]:
    """For each contender, per run: wall and CPU time in ms (medians), the least wall time, and baseline / contender."""
    return {
        name: {
            "wall_ms": _round(1e3 * median(wall for wall, _ in own) / runs[name]),
            "cpu_ms": _round(1e3 * median(cpu for _, cpu in own) / runs[name]),
            "best_ms": _round(1e3 * min(wall for wall, _ in own) / runs[name]),
            **ratio(turns, runs, baseline, name),
        }
        for name, own in turns.items()
    }


def ratio(turns: Turns, runs: Mapping[str, int], slow: str, fast: str) -> dict[str, float | list[float]]:
    """Wall time of `slow` / that of `fast` in the turn next to it, per run: the median and the quartiles."""
    pairs = zip(turns[slow], turns[fast], strict=True)
    found = sorted((own[0] / runs[slow]) / (other[0] / runs[fast]) for own, other in pairs)
    quartiles: list[float] = [_round(found[len(found) // 4]), _round(found[-1 - len(found) // 4])]
    return {"ratio": _round(median(found)), "quartiles": quartiles}


def _round(value: float) -> float:
    return float(f"{value:.3g}")
