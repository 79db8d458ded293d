"""ObjP against its convergence theorem: runs whose averaged iterates are followed, and what they show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from statistics import fmean
from time import perf_counter

import numpy as np

from tacit.admm.messages import Broadcast, Replies
from tacit.errors import Diverged
from tacit.jsontext import Values
from tacit.paper.archive import select, spec_of
from tacit.paper.theorem import Bound, Merit, constants, slope
from tacit.rounds import rounds
from tacit.run import build, sweep
from tacit.run.compose import AdmmSetup
from tacit.run.run import Run, check_finite, measure, summarize
from tacit.run.sweep import Load, Member
from tacit.run.train import Listener, engine_for, nobody, settled

POINTS = 45  # measured rounds, evenly in log t: a record keeps them all


def finish(
    members: Sequence[Member], out: Path, listener: Listener = nobody, load: Load = build.federation  # noqa: ARG001
) -> Iterator[Values]:
    """The record of every run, with the merit in its curve. A batch takes minutes: one that is stopped starts anew.

    Where a run diverges, the record of the run says so, and the others of its batch start anew without it.
    """
    for batch, hear in sweep.heard(sweep.batches(members, load, sweep.fresh), listener):
        for member, found in settled(batch, partial(_follow, hear)):
            if isinstance(found, Diverged):
                yield sweep.diverged(member, found)
            else:
                yield sweep.record_of(member, *found, (*sweep.CURVES, "merit"))


def _follow(listener: Listener, runs: Sequence[Run]) -> list[tuple[Values, list[Values]]]:
    """The summary and the measured rounds of each run of a batch."""
    first = runs[0]
    merit = Merit.of(first.setup.problem, first.federation)
    own, shape = first.spec.run, first.setup.shape
    engine = engine_for(runs, ExitStack())
    sums = [np.zeros((first.federation.n_agents, *shape)) for _ in runs]  # of z^1 .. z^t
    measured = {int(t) for t in np.geomspace(1, own.rounds, POINTS).round()}
    start = perf_counter()

    def exchange(msgs: Sequence[Broadcast]) -> list[Replies]:
        for r, total in enumerate(sums):
            total += engine.save(r)["z"]
        return list(engine.exchange_all(msgs))

    for ended in rounds([run.setup.server for run in runs], [run.state for run in runs], exchange):
        for run, (state, info), total in zip(runs, ended, sums, strict=True):
            run.state, t = state, state.t
            check_finite(run, info)
            if t in measured:
                row = measure(state, info, run.setup, run.federation, run.clock)
                run.rows.append(row | {"merit": merit(total / t, state.average)})
        listener(t, first.rows[-1] if t in measured else None)
    seconds = (perf_counter() - start) / len(runs)
    summaries = (summarize(run.spec, run.federation, run.setup, run.rows[-1], seconds, engine.path) for run in runs)
    return [(told | {"theorem": _theorem(run, merit)}, run.rows) for run, told in zip(runs, summaries, strict=True)]


def _theorem(run: Run, merit: Merit) -> Values:
    bound = bound_of(run, merit)
    return {
        **asdict(bound.constants), "gamma": merit.gamma, "noise": bound.noise,
        "f_star": merit.f_star, "f_zero": merit.f_zero,
        "bound": [bound(row["t"]) for row in run.rows],
        "repaired": [bound.repaired(row["t"]) for row in run.rows],
    }  # fmt: skip


def bound_of(run: Run, merit: Merit) -> Bound:
    """The theorem's right-hand side for a run of ObjP."""
    assert isinstance(run.setup, AdmmSetup)
    federation, rho = run.federation, run.setup.rho
    found = constants(run.setup.problem, federation, run.setup.agents[0].variant.adjacency)
    dimension, ends = federation.n_features * federation.n_classes, (rho(1), rho(run.spec.run.rounds))
    epsilon, eta_a = run.spec.privacy.epsilon, run.spec.schedule.eta_a
    return Bound(found, federation.n_agents, dimension, epsilon, merit.gamma, *ends, eta_a)


def verdict(merit: Sequence[float], bound: Sequence[float], repaired: Sequence[float], gap: float) -> str:
    """What the mean merit says of the bound, over every measured round."""
    if any(m > b for m, b in zip(merit, bound, strict=True)):
        below = all(m <= b for m, b in zip(merit, repaired, strict=True))
        return "violated; with P U2^2 it holds" if below else "violated; with P U2^2 too"
    return "holds" if min(bound) <= gap else "vacuous: above F(0) - F*"


def shown(records: Sequence[Values], panels: Sequence[Values]) -> Values:
    """The table of constants, bounds and slopes, and the bound as a line in each panel."""
    keys = ("privacy.epsilon", "schedule.eta_a")
    settings = sorted({tuple(spec_of(one)[key] for key in keys) for one in records})
    rows, series = [], []
    for setting in settings:
        where = dict(zip(keys, setting, strict=True))
        same = select(records, where)
        if not same:
            rows.append([*setting, *["-"] * 10, "diverged"])
            continue
        theorem, t = same[0]["theorem"], same[0]["curve"]["t"]
        merit = [fmean(values) for values in zip(*(one["curve"]["merit"] for one in same), strict=True)]
        gap, bound, repaired = theorem["f_zero"] - theorem["f_star"], theorem["bound"], theorem["repaired"]
        cells = [theorem["u1"], theorem["u2"], theorem["u3"], gap, merit[-1], bound[-1], repaired[-1], slope(t, merit)]
        told = (float(f"{cell:.4g}") for cell in cells)
        rows.append([*setting, t[-1], len(same), *told, verdict(merit, bound, repaired, gap)])
        for n, panel in enumerate(panels):
            if panel["where"].items() <= where.items():
                series.append({"panel": n, "name": f"bound, eta x {setting[1]:g}", "x": t, "y": bound})
    columns = [
        "epsilon", "eta x", "T", "seeds", "U1 at most", "U2", "U3 at most", "F(0) - F*", "merit at T",
        "bound at T, as printed", "bound at T, U2 squared", "slope, last two decades", "the bound is",
    ]  # fmt: skip
    return {"table": {"columns": columns, "rows": rows}, "series": series}
