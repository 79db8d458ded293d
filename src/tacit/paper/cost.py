"""How long runs will take, from a few rounds of the real thing."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from itertools import groupby, islice
from time import perf_counter

from tacit.rounds import rounds
from tacit.run import sweep
from tacit.run.run import measure
from tacit.run.sweep import Lane, Load, Member
from tacit.run.train import engine_for

ROUNDS = 3  # timed, after one that warms up


def seconds(members: Sequence[Member], load: Load) -> float:
    """Of all rounds, one batch at a time: each data set's largest is timed, and its pace taken for the others."""
    spent = 0.0
    for _, same in groupby(sorted(members, key=sweep.data_key), key=sweep.data_key):
        group = list(same)
        batch = max(sweep.batches(group, load, sweep.fresh), key=len)
        a_round, a_row = pace(batch)
        runs = [member.spec.run for member in group]
        spent += a_round / len(batch) * sum(own.rounds for own in runs)
        spent += a_row * sum(own.rounds // (own.record_every or max(1, own.rounds // 100)) for own in runs)
    return spent


def pace(batch: Sequence[Lane]) -> tuple[float, float]:
    """Seconds that a round of a batch takes, and measuring one run of it; what they compute is thrown away."""
    runs = [run for _, run in batch]
    engine = engine_for(runs, ExitStack())
    going = rounds([run.setup.server for run in runs], [run.state for run in runs], engine.exchange_all)
    *_, (state, info) = next(going)
    start, done = perf_counter(), 0
    for ended in islice(going, ROUNDS):
        done, (state, info) = done + 1, ended[-1]
    end = perf_counter()
    measure(state, info, runs[-1].setup, runs[-1].over, runs[-1].clock)
    return (end - start) / max(done, 1), perf_counter() - end
