"""How long runs will take, from a few rounds of the real thing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from time import perf_counter

from tacit.admm.algorithm import ask, conclude
from tacit.engine.registry import ENGINES
from tacit.run import sweep
from tacit.run.metrics import measure
from tacit.run.sweep import Lane, Load, Member

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
    own, shape = runs[0].spec.run, runs[0].setup.shape
    engine = ENGINES[own.engine]([run.setup.agents for run in runs], shape, own.device)
    for n in range(1 + ROUNDS):
        if n == 1:
            start = perf_counter()
        msgs = [ask(run.state, run.setup.rho, run.setup.order) for run in runs]
        for run, msg, replies in zip(runs, msgs, engine.exchange_all(msgs), strict=True):
            run.state, info = conclude(run.state, msg, replies, run.setup.order)
    end = perf_counter()
    measure(run.state, info, run.setup, run.over, run.clock)
    return (end - start) / ROUNDS, perf_counter() - end
