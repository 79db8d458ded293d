"""One run: the state that the loop changes, the measurements of a round, and the result."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from tacit._version import __version__
from tacit.agent.agent import DeployedAgent
from tacit.data.transform import RowScale
from tacit.errors import Diverged, Refused, RunDirectoryError
from tacit.features.registry import described
from tacit.measures import measured
from tacit.privacy.guarantee import Ledgers
from tacit.rounds import Info, State
from tacit.run import deploy, evaluation, ranks
from tacit.run.deployment import ledger_folder
from tacit.run.directory import ArrayLayout, RunDirectory
from tacit.run.guarantee import stated
from tacit.run.model import Model
from tacit.run.model_noise import gathered_noise, prospects
from tacit.run.noise import measures_training, simulated
from tacit.run.presets import for_numbers, preset
from tacit.run.result import Result
from tacit.run.setup import Setup
from tacit.run.spec import Spec
from tacit.types import Array, Federation

TRACED = {
    "noise_gradient_units": "noise", "noise_parameter_units": "noise_parameter", "noise_scale": "scale",
    "sensitivity": "sensitivity", "binding": "binding",
}  # fmt: skip


def objective(w: Array, setup: Setup, federation: Federation) -> float | None:
    """Return sum_p f_p(w); None where records are with agents that are asked for nothing but releases."""
    if not (ranks.is_spread(federation) or all(shard.here for shard in federation.shards)):
        return None
    problem = setup.problem
    data = sum(evaluation.losses(w, setup, federation))
    return problem.weight * data + federation.n_agents * problem.regularization * problem.regularizer.value(w)


@dataclass
class Clock:
    """The seconds spent so far in each part of a round, summed over agents."""

    seconds: dict[str, float]

    def add(self, info: Info) -> None:
        for part, spent in info.trace.seconds.items() if info.trace else ():
            self.seconds[part] = self.seconds.get(part, 0.0) + spent


def measure(
    state: State, info: Info, setup: Setup, federation: Federation, clock: Clock, *, training: bool
) -> dict[str, Any]:
    """Return one row of rounds.jsonl; without `training`, every number is a function of releases or of test records.

    The models are projected onto W first, because the server's w may leave W.
    """
    start = perf_counter()
    w, averaged = (setup.problem.domain.project(u) for u in (state.w, state.average))
    violation = info.violation() if info.violation else None
    with np.errstate(all="ignore"):  # no record decides whether a run warns or ends: null stands for NaN and inf
        last, mean = (evaluation.measures(u, federation, setup.problem.loss) for u in (w, averaged))
        row = {
            "t": info.t,
            **{key: value for name in last for key, value in ((name, last[name]), (f"{name}_averaged", mean[name]))},
            "objective": objective(w, setup, federation) if training else None,
            "consensus_violation": violation,
            "consensus_violation_per_agent": None if violation is None else violation / federation.n_agents,
            **{name: getattr(info.trace, part) if info.trace else None for name, part in TRACED.items()},
            "step": info.step,
            "rho": info.rho,
        }
    clock.seconds["evaluation"] = clock.seconds.get("evaluation", 0.0) + perf_counter() - start
    return row | {f"seconds_{part}": round(spent, 6) for part, spent in clock.seconds.items()}


class Run:
    """One run that is under way: its state, its recorded rounds and its directory."""

    def __init__(
        self, spec: Spec, federation: Federation, setup: Setup, directory: RunDirectory | None = None
    ) -> None:
        spec = simulated(spec)  # unless its noise is exact
        deploy.check(spec, setup)
        self.spec, self.federation, self.setup, self.directory = spec, federation, setup, directory
        self.domain_sha256 = domain_digest(spec)  # once: the file may change while the run goes on, and W does not
        self.state, self.clock, self.seconds, self.sent = setup.server.start(), Clock({}), 0.0, 0.0
        self.rows: list[dict[str, Any]] = []
        self.deployed: Sequence[DeployedAgent] = []
        self.told_by_host: Callable[[], dict[str, Any]] = dict  # what the result says beside all that every run says
        self.every = spec.run.record_every or max(1, spec.run.rounds // 100)

    def again(self) -> Run:
        """Return a new Run of this run, which starts at the last checkpoint or at round zero."""
        return Run(self.spec, self.federation, self.setup, self.directory)

    @property
    def started(self) -> bool:
        """Tell whether an earlier process has run rounds of this run."""
        return self.directory is not None and (self.directory.path / "rounds.jsonl").exists()

    @property
    def ledgers(self) -> Path | None:
        """Return the directory of the agents' ledgers; None if the run keeps none."""
        own = None if self.directory is None else self.directory.path
        return ledger_folder(self.spec, own, self.started, self.federation.n_agents)

    @property
    def kept(self) -> Ledgers:
        """Return which ledgers the agents of this run keep."""
        if deploy.wanted(self.spec) and not any(shard.here for shard in self.federation.shards):
            return Ledgers.ELSEWHERE  # without exact noise, other ranks of this run hold them
        if deploy.heads(self.deployed) is None:
            return Ledgers.NONE
        return Ledgers.OF_THE_RUN if self.spec.privacy.ledger is None else Ledgers.OF_ALL_RUNS

    def check_not_released(self) -> None:
        """Refuse to repeat rounds with exact noise whose releases no ledger has kept."""
        if self.directory is not None and self.started and self.ledgers is None:
            raise RunDirectoryError(
                f"{self.directory.path} drew exact noise and kept no ledger: what it released is lost, and would be "
                "released again. Start a new run elsewhere, with --ledger."
            )

    def restore(self, engine: dict[str, Array]) -> dict[str, Array] | None:
        """Go back to the last checkpoint, whose arrays must have the shapes of `engine`; return the engine's arrays."""
        arrays = self._arrays(engine)
        layout: dict[str, ArrayLayout] = {name: (array.dtype.kind, array.shape) for name, array in arrays.items()}
        layout |= {"t": ("iu", ()), "clock_names": ("U", (None,)), "clock_seconds": ("f", (None,))}
        self.check_data()
        hidden = () if measures_training(self.spec) else ("objective",)
        saved = self.directory.restore(layout, hidden) if self.directory is not None else None
        if self.directory is None or saved is None:
            return None
        own = {name: saved[f"server_{name}"] for name in self.state.own}
        self.state = State(int(saved["t"]), saved["w"], saved["average"], own)
        self.seconds, self.sent = float(saved["seconds"]), float(saved["sent"])
        names, spent = map(str, saved["clock_names"]), map(float, saved["clock_seconds"])
        self.clock = Clock(dict(zip(names, spent, strict=True)))
        self.rows = self.directory.rows()
        return {name[7:]: array for name, array in saved.items() if name.startswith("engine_")}

    @property
    def fingerprint(self) -> str:
        """Return a hash of the spec and the data: a run must be resumed with the spec and the data of its start."""
        told = repr((self.spec.toml(), self.federation.agents, self.federation.checksum))  # unset keys say nothing
        return hashlib.sha256((told + (self.domain_sha256 or "")).encode()).hexdigest()

    def check_data(self) -> None:
        """Refuse to continue a run on other records or with another spec."""
        saved = self.directory.saved() if self.directory is not None else None
        if self.directory is not None and saved is not None and str(saved.get("data")) != self.fingerprint:
            raise RunDirectoryError(
                f"{self.directory.path} was started on other data, by another spec.toml or another version of tacit: "
                "restore them, or start again."
            )

    def checkpoint(self, engine: dict[str, Array]) -> None:
        """Save all that the next round needs."""
        if self.directory is not None:
            self.directory.checkpoint(self._arrays(engine))

    def _arrays(self, engine: dict[str, Array]) -> dict[str, Array]:
        """Return the content of a checkpoint."""
        return {
            "t": np.array(self.state.t),
            "data": np.array(self.fingerprint),
            "w": self.state.w,
            "average": self.state.average,
            "seconds": np.array(self.seconds),
            "sent": np.array(self.sent),
            "clock_names": np.array(list(self.clock.seconds), dtype=str),
            "clock_seconds": np.array(list(self.clock.seconds.values()), dtype=float),
            **{f"server_{name}": array for name, array in self.state.own.items()},
            **{f"engine_{name}": array for name, array in engine.items()},
        }

    def hear(self, state: State, info: Info) -> dict[str, Any] | None:
        """Take the outcome of one round; return the row of the round if the round is recorded, else None."""
        self.state = state
        self.sent += info.sent
        self.clock.add(info)
        check_finite(self, info)
        if self.state.t % self.every and self.state.t not in (1, self.spec.run.rounds):
            return None
        training = measures_training(self.spec)
        row = measure(self.state, info, self.setup, self.federation, self.clock, training=training)
        self.rows.append(row)
        if self.directory is not None:
            self.directory.append(row)
        return row

    def finish(self, path: str) -> Result:
        """Return the result, and write the result if the run has a directory."""
        w, average = (self.setup.problem.domain.project(u) for u in (self.state.w, self.state.average))
        summary = summarize(self.spec, self.federation, self.setup, self.rows[-1], self.seconds, path, self.kept)
        summary |= {
            "sent_bytes": self.sent, "ledger_heads": deploy.heads(self.deployed),
            "ledger_totals": deploy.ledger_totals(self.spec, self.deployed),
        } | self.told_by_host()  # fmt: skip
        summary |= {} if self.domain_sha256 is None else {"domain_sha256": self.domain_sha256}
        model = self._model(w, average)
        if self.directory is not None:
            summary |= evaluation.breakdown(w, self.federation, self.setup.problem.loss)
            summary = self.directory.finish(model.arrays(), summary)
        with suppress(Refused):  # the result is there: a ledger that is busy keeps its last answers
            deploy.forget(self.spec, self.deployed, self.state.t, last=True)
        deploy.end(self.spec, self.deployed, "it is finished")
        deploy.forget_keys(self.spec, self.ledgers)
        notes = prospects(self.spec, self.federation, self.setup.promise)
        return Result(summary, self.rows, w, average, model, notes)

    def _model(self, w: Array, average: Array) -> Model:
        """Return the model with all that it needs to take records as their owner has them."""
        known, d = self.federation, self.spec.data
        names = known.inputs if known.recipe else known.features
        rows = None if d.row_norm == "none" else RowScale(d.row_norm, d.row_bound, d.row_mode)
        own = self.spec.features.map if ":" in self.spec.features.map else None  # who trained on it trusts it
        return Model(
            w, average, known.classes, names, known.intercept, known.schema, known.target, rows, known.recipe, own,
            rescaled=known.rescaled, noise=gathered_noise(self.setup), loss=self.spec.problem.loss,
        )  # fmt: skip


def domain_digest(spec: Spec) -> str | None:
    """Return a hash of the file that the set W is read from; None if W is not read from a file."""
    file = spec.problem.domain_file
    return None if file is None else hashlib.sha256(Path(file).read_bytes()).hexdigest()


def check_finite(run: Run, info: Info) -> None:
    """End a run whose model is no longer finite."""
    if not math.isfinite(info.step):
        raise Diverged(f"diverged in round {info.t}: w is not finite. Raise rho, or lower the step.", run)


def summarize(
    spec: Spec,
    federation: Federation,
    setup: Setup,
    last: dict[str, Any],
    seconds: float,
    path: str,
    kept: Ledgers = Ledgers.NONE,
) -> dict[str, Any]:
    """Return the content of result.json."""
    return {
        "algorithm": spec.algorithm.name,
        "preset": spec.run.preset,
        "changed": changed(spec, federation.target is not None),
        "dataset": federation.name,
        "features": described(federation.recipe) if federation.recipe else None,
        "agents": federation.n_agents,
        "records": federation.n_records,
        "rounds": spec.run.rounds,
        "seed": spec.run.seed,
        **measured(last),
        **{key: last[key] for key in ("objective", "consensus_violation", "binding")},
        **stated(spec, setup, kept),
        "engine": spec.run.engine,
        "path": path,
        "seconds": round(seconds, 3),
        "version": __version__,
    }


def changed(spec: Spec, number: bool = False) -> dict[str, Any]:
    """Return the values that differ from the preset, but for values that no preset fixes: data, length and seed."""
    open_keys = (
        "epsilon", "dp_delta", "adjacency", "trust", "colluding", "repetitions", "noise", "ledger", "limit",
    )  # fmt: skip
    free = ("data.", "run.", *(f"privacy.{key}" for key in open_keys))
    fixed = ("data.row_norm", "data.row_bound", "data.row_mode")
    known = preset(spec.run.preset, spec.algorithm.name, spec.data.source)
    usual = (for_numbers(known) if number else known).values()
    return {
        key: value
        for key, value in spec.values().items()
        if value != usual[key] and (key in fixed or not key.startswith(free))
    }
