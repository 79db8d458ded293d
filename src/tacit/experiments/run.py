"""Run an experiment: the loop around run_round that measures, records and survives."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tacit._version import __version__
from tacit.admm import compatible
from tacit.admm.algorithm import State, init, run_round
from tacit.engine.plain import PlainEngine
from tacit.errors import Interrupted
from tacit.experiments import build
from tacit.experiments.metrics import Clock, measure
from tacit.experiments.model import Model
from tacit.experiments.spec import Spec
from tacit.experiments.store import RunDirectory
from tacit.types import Array, Federation

CHECKPOINT_SECONDS = 15.0

Listener = Callable[[int, dict[str, Any] | None], None]  # (rounds done, the row if one was recorded)


@dataclass(frozen=True, eq=False)
class Result:
    """A finished run: its summary (result.json), its recorded rounds and its models."""

    summary: dict[str, Any]
    rounds: list[dict[str, Any]]
    w: Array
    w_average: Array

    @property
    def test_error(self) -> float | None:
        """Of the last iterate, between 0 and 1."""
        value: float | None = self.summary["test_error"]
        return value

    @property
    def guarantee(self) -> str:
        """What the run promises, in a sentence."""
        return str(self.summary["guarantee"])


def train(
    spec: Spec,
    federation: Federation | None = None,
    out: Path | str | None = None,
    listener: Listener = lambda _done, _row: None,
) -> Result:
    """Train from the start; with `out`, everything is written there as it happens."""
    over = build.federation(spec.checked()) if federation is None else federation
    setup = build.setup(spec, over)
    directory = None if out is None else RunDirectory.create(Path(out), spec)
    return _train(spec, over, setup, directory, None, listener)


def resume(path: Path | str, listener: Listener = lambda _done, _row: None) -> Result:
    """Continue a run that was stopped; it ends where the uninterrupted run would."""
    directory = RunDirectory.open(Path(path))
    spec = directory.spec()
    if directory.finished:
        model = Model.read(directory.path)
        return Result(directory.result(), directory.rows(), model.w, model.w_average)
    over = build.federation(spec)
    return _train(spec, over, build.setup(spec, over), directory, directory.restore(), listener)


def _train(
    spec: Spec,
    over: Federation,
    setup: build.Setup,
    directory: RunDirectory | None,
    saved: dict[str, Array] | None,
    listener: Listener,
) -> Result:
    compatible.warn(setup.agents, setup.rho, spec.run.rounds)
    engine = PlainEngine(setup.agents, setup.shape)
    state, clock = init(setup.shape), Clock({})
    before = 0.0
    if saved is not None:
        state = State(int(saved["t"]), saved["w"], saved["z_mean"], saved["dual_mean"], saved["w_average"])
        before = float(saved["seconds"])
        clock = Clock(dict(zip(map(str, saved["clock_names"]), map(float, saved["clock_seconds"]), strict=True)))
        engine.load({name[7:]: array for name, array in saved.items() if name.startswith("engine_")})

    rows = directory.rows() if directory is not None else []
    every = spec.run.record_every or max(1, spec.run.rounds // 100)
    start = checked = time.monotonic()

    def save() -> None:
        if directory is not None:
            spent = before + time.monotonic() - start
            own = {f"engine_{name}": array for name, array in engine.save().items()}
            directory.checkpoint(_checkpoint(state, clock, spent) | own)

    try:
        while state.t < spec.run.rounds:
            state, info = run_round(state, engine.exchange, setup.rho, setup.order)
            clock.add(info)
            row = None
            if state.t % every == 0 or state.t in (1, spec.run.rounds):
                row = measure(state, info, setup, over, clock)
                rows.append(row)
                if directory is not None:
                    directory.append(row)
            listener(state.t, row)
            if time.monotonic() - checked > CHECKPOINT_SECONDS:
                save()
                checked = time.monotonic()
    except KeyboardInterrupt:
        save()
        place = "" if directory is None else f"; continue with: tacit train --resume {directory.path}"
        raise Interrupted(f"stopped after {state.t} of {spec.run.rounds} rounds{place}") from None

    summary = _summary(spec, over, setup, rows[-1], before + time.monotonic() - start)
    w, average = (setup.problem.domain.project(u) for u in (state.w, state.w_average))
    if directory is not None:
        directory.finish(Model(w, average, over.classes, over.features, spec.data.intercept).arrays(), summary)
    return Result(summary, rows, w, average)


def _checkpoint(state: State, clock: Clock, seconds: float) -> dict[str, Array]:
    return {
        "t": np.array(state.t),
        "w": state.w,
        "z_mean": state.z_mean,
        "dual_mean": state.dual_mean,
        "w_average": state.w_average,
        "seconds": np.array(seconds),
        "clock_names": np.array(list(clock.seconds)),
        "clock_seconds": np.array(list(clock.seconds.values())),
    }


def _summary(
    spec: Spec, over: Federation, setup: build.Setup, last: dict[str, Any], seconds: float
) -> dict[str, Any]:
    epsilon = None if math.isinf(spec.privacy.epsilon) else spec.privacy.epsilon
    gaussian = epsilon is not None and spec.privacy.mechanism == "gaussian"
    return {
        "algorithm": spec.algorithm.name,
        "preset": spec.run.preset,
        "dataset": over.name,
        "agents": over.n_agents,
        "records": over.n_records,
        "rounds": spec.run.rounds,
        "seed": spec.run.seed,
        "engine": spec.run.engine,
        **{key: last[key] for key in ("test_error", "test_error_averaged", "objective", "consensus_violation")},
        "epsilon_per_round": epsilon,
        "dp_delta": spec.privacy.dp_delta if gaussian else 0.0 if epsilon else None,
        "guarantee": guarantee(spec, setup),
        "simulated_noise": epsilon is not None,
        "seconds": round(seconds, 3),
        "version": __version__,
    }


def guarantee(spec: Spec, setup: build.Setup) -> str:
    """What the run promises, and the reasons where it promises nothing."""
    reasons = compatible.caveats(setup.agents[0].method)
    if reasons:
        return "not private: " + " ".join(reasons) + (" For reproduction only." if spec.run.preset != "custom" else "")
    p, rounds = spec.privacy, spec.run.rounds
    gaussian = p.mechanism == "gaussian"
    each, total = (
        f"({p.epsilon * n:g}, {p.dp_delta * n:g})-DP" if gaussian else f"{p.epsilon * n:g}-DP" for n in (1, rounds)
    )
    return (
        f"{each} in each of {rounds} rounds, {total} for the run by basic composition, "
        f"{p.adjacency.replace('_', '/')} one record; simulated noise."
    )
