"""Contenders take turns, so that whatever else the machine does happens to all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from statistics import median

Round = Callable[[], object]
Turns = dict[str, list[tuple[float, float]]]  # (wall, CPU) seconds a round, one pair a repetition

TURN = 0.06  # seconds: short rounds are repeated that long, for one alone would measure the scheduler
NAP = 0.02  # seconds between two looks at whether the threads of the last turn have gone to sleep


def interleaved(rounds: Mapping[str, Round], seconds: float, least: int = 3, turn: float = TURN) -> Turns:
    """At least `least` repetitions of a turn of each, and more until `seconds` have passed."""
    for play in rounds.values():  # warm-up: the first round faults memory in
        play()
    turns: Turns = {name: [] for name in rounds}
    start, done = time.perf_counter(), 0
    while done < least or time.perf_counter() - start < seconds:
        for name, play in rounds.items():
            _settle()
            turns[name].append(_turn(play, turn))
        done += 1
    return turns


def _settle(limit: float = 0.5) -> None:
    """Wait for idle threads: those of OpenBLAS spin on for 50 ms, which would be charged to the next contender."""
    end = time.perf_counter() + limit
    while time.perf_counter() < end:
        before = time.process_time()
        time.sleep(NAP)
        if time.process_time() - before < NAP / 10:
            return


def _turn(play: Round, seconds: float) -> tuple[float, float]:
    n, wall, cpu = 0, time.perf_counter(), time.process_time()
    while n == 0 or time.perf_counter() - wall < seconds:
        play()
        n += 1
    return (time.perf_counter() - wall) / n, (time.process_time() - cpu) / n


def summary(turns: Turns, runs: Mapping[str, int], baseline: str) -> dict[str, dict[str, float | list[float]]]:
    """For each contender, per run: medians in ms, and the median and quartiles of baseline / contender."""
    table: dict[str, dict[str, float | list[float]]] = {}
    for name, own in turns.items():
        ratios = sorted(slow[0] / fast[0] * runs[name] for slow, fast in zip(turns[baseline], own, strict=True))
        table[name] = {
            "wall_ms": _round(1e3 * median(wall for wall, _ in own) / runs[name]),
            "cpu_ms": _round(1e3 * median(cpu for _, cpu in own) / runs[name]),
            "ratio": _round(median(ratios)),
            "quartiles": [_round(ratios[len(ratios) // 4]), _round(ratios[-1 - len(ratios) // 4])],
        }
    return table


def _round(value: float) -> float:
    return float(f"{value:.3g}")
