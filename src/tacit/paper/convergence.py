"""Runs whose averaged iterates are followed, and ObjP against its convergence theorem.

`finish` follows ObjP and ObjT alike; `shown` sets ObjP beside the theorem, and `trust.shown` ObjT beside what is known.
"""

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
from tacit.admm.rule import Rule, Trust
from tacit.errors import Diverged
from tacit.jsontext import Values
from tacit.paper import trust
from tacit.paper.archive import select, spec_of
from tacit.paper.theorem import Bound, Constants, Merit, constants, noise_energy, slope
from tacit.rounds import Info, State, rounds
from tacit.run import build, sweep
from tacit.run.run import Run, check_finite, measure, summarize
from tacit.run.sweep import Load, Member
from tacit.run.train import Listener, engine_for, nobody, settled
from tacit.types import Array

POINTS = 45  # measured rounds, evenly in log t: a record keeps them all
OWN_CURVES = ("merit", "inverse_rho", "region_binding")


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
                yield sweep.record_of(member, *found, (*sweep.CURVES, *OWN_CURVES))


class _Followed:
    """The sums over the rounds of one run that its merit and its bound are made of."""

    def __init__(self, run: Run, merit: Merit) -> None:
        self.run, self.merit = run, merit
        self.total = np.zeros((run.federation.n_agents, *run.setup.shape))  # z^1 + .. + z^t
        self.inverse_rho = 0.0  # 1 / rho^1 + .. + 1 / rho^t

    def ask(self, z: Array) -> None:
        """Take note of the z^t with which a round begins."""
        self.z = z
        self.total += z

    def end(self, state: State, info: Info) -> None:
        """Take note of the end of a round."""
        self.run.state = state
        check_finite(self.run, info)
        assert info.rho is not None, "the ADMM family has a penalty"
        self.inverse_rho += 1 / info.rho

    def row(self, info: Info, after: Array) -> Values:
        """The round as it is measured, with the merit of the means and how much of the trust region is in use."""
        run, state, rule = self.run, self.run.state, rule_of(self.run)
        found = measure(state, info, run.setup, run.federation, run.clock, training=True)
        found |= {"merit": self.merit(self.total / state.t, state.average), "inverse_rho": self.inverse_rho}
        if isinstance(rule, Trust):
            found["region_binding"] = trust.region_binding(rule, run.setup.problem.domain, state.t, self.z, after)
        return found


def _follow(listener: Listener, runs: Sequence[Run]) -> list[tuple[Values, list[Values]]]:
    """The summary and the measured rounds of each run of a batch."""
    first = runs[0]
    merit = Merit.of(first.setup.problem, first.federation)
    engine = engine_for(runs, ExitStack())
    lanes = [_Followed(run, merit) for run in runs]
    measured = {int(t) for t in np.geomspace(1, first.spec.run.rounds, POINTS).round()}
    start = perf_counter()

    def exchange(msgs: Sequence[Broadcast]) -> list[Replies]:
        for r, lane in enumerate(lanes):
            lane.ask(engine.save(r)["z"])
        return list(engine.exchange_all(msgs))

    for ended in rounds([run.setup.server for run in runs], [run.state for run in runs], exchange):
        for r, (lane, (state, info)) in enumerate(zip(lanes, ended, strict=True)):
            lane.end(state, info)
            if state.t in measured:
                lane.run.rows.append(lane.row(info, engine.save(r)["z"]))
        t = first.state.t
        listener(t, first.rows[-1] if t in measured else None)
    seconds = (perf_counter() - start) / len(runs)
    summaries = (summarize(run.spec, run.federation, run.setup, run.rows[-1], seconds, engine.path) for run in runs)
    return [(told | {"theorem": _theorem(run, merit)}, run.rows) for run, told in zip(runs, summaries, strict=True)]


def rule_of(run: Run) -> Rule:
    """The local step of a run of the ADMM family."""
    return run.setup.agents[0].variant.rule


def _theorem(run: Run, merit: Merit) -> Values:
    """What bounds are made of: they are computed where they are shown, so that a record holds no formula's result."""
    federation, rule, rounds = run.federation, rule_of(run), run.spec.run.rounds
    found = constants(run.setup.problem, federation, run.setup.agents[0].variant.adjacency)
    dimension = federation.n_features * federation.n_classes
    told: Values = {
        **asdict(found), "gamma": merit.gamma, "f_star": merit.f_star, "f_zero": merit.f_zero,
        "noise": noise_energy(federation.n_agents, dimension, found.u3, run.spec.privacy.epsilon),
    }  # fmt: skip
    if isinstance(rule, Trust):
        told["wide"] = trust.holds_set(rule, run.setup.problem.domain, dimension, rounds)
        told["floor"] = trust.floor(merit, rule, rounds)
    return told


def bound_of(one: Values) -> Bound:
    """The theorem's right-hand side for the record of a run of ObjP, from the constants that the record holds."""
    held, rho = one["theorem"], one["curve"]["rho"]
    found = Constants(held["u1"], held["u2"], held["u3"])
    return Bound(found, one["agents"], held["noise"], held["gamma"], rho[0], rho[-1], spec_of(one)["schedule.eta_a"])


def verdict(merit: Sequence[float], bound: Sequence[float], repaired: Sequence[float], gap: float) -> str:
    """What the mean merit says of the bound, over every measured round."""
    if any(m > b for m, b in zip(merit, bound, strict=True)):
        below = all(m <= b for m, b in zip(merit, repaired, strict=True))
        return "violated; repaired it holds" if below else "violated; repaired too"
    return "holds" if min(bound) <= gap else "vacuous: above F(0) - F*"


def shown(records: Sequence[Values], panels: Sequence[Values]) -> Values:
    """The table of constants, bounds and slopes, and the printed bound as a line in each panel."""
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
        right, gap = bound_of(same[0]), theorem["f_zero"] - theorem["f_star"]
        bound, repaired = [right(rounds) for rounds in t], [right.repaired(rounds) for rounds in t]
        cells = [theorem["u1"], theorem["u2"], theorem["u3"], gap, merit[-1], bound[-1], repaired[-1], slope(t, merit)]
        told = (float(f"{cell:.4g}") for cell in cells)
        rows.append([*setting, t[-1], len(same), *told, verdict(merit, bound, repaired, gap)])
        for n, panel in enumerate(panels):
            if panel["where"].items() <= where.items():
                series.append({"panel": n, "name": f"bound, eta x {setting[1]:g}", "x": t, "y": bound})
    columns = [
        "epsilon", "eta x", "T", "seeds", "U1 at most", "U2", "U3 at most", "F(0) - F*", "merit at T",
        "bound at T, as printed", "bound at T, repaired", "slope, last two decades", "the bound is",
    ]  # fmt: skip
    return {"table": {"columns": columns, "rows": rows}, "series": series}
