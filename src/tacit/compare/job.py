"""One run of a comparison as data: a job, its complete spec, and what came of it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tacit import record, toml
from tacit._version import __version__
from tacit.errors import Diverged, InputError, Interrupted, NotPrivateWarning, RecordError
from tacit.jsontext import Values
from tacit.methods.method import Budget, Choice, key_of
from tacit.methods.promise import Promise, Trusted, Unit
from tacit.methods.registry import METHODS
from tacit.privacy.budget import revealed, upward
from tacit.run import build
from tacit.run.guarantee import reasons
from tacit.run.interrupt import Patience
from tacit.run.presets import preset
from tacit.run.result import Result
from tacit.run.run import Run
from tacit.run.spec import Spec
from tacit.run.sweep import in_lockstep
from tacit.run.train import settled, together
from tacit.types import Federation

SPLIT = {"trial": "all but the last sixth of each agent's records, which judges", "run": "all training records"}


@dataclass(frozen=True)
class Job:
    """A method with one choice of its constants, at one budget, from one seed. `base` holds [data] and [problem]."""

    base: Spec
    method: str
    choice: Choice
    budget: Budget
    seed: int
    role: str  # "trial": tunes on a part of the training records; "run": is reported

    @property
    def spec(self) -> str:
        """Everything it depends on, as TOML."""
        return toml.text(
            _shared(self.base)
            | {"method.name": self.method}
            | {f"choice.{name}": value for name, value in self.choice.items()}
            | {"budget.epsilon": self.budget.epsilon, "budget.dp_delta": self.budget.dp_delta}
            | {"run.seed": self.seed, "run.split": SPLIT[self.role]}
        )

    @property
    def run_spec(self) -> Spec:
        """The run that it stands for: the sound preset of its method, with its choice, its budget and its seed."""
        sound = preset("sound", self.method, self.base.data.source).with_values(
            _shared(self.base)
            | {key_of(name): value for name, value in self.choice.items()}
            | {"privacy.dp_delta": self.budget.dp_delta, "run.seed": self.seed}
            | {"privacy.epsilon": METHODS[self.method].values.get("privacy.epsilon", self.budget.epsilon)}
        )
        return sound.with_values({"run.record_every": sound.run.rounds})

    @property
    def name(self) -> str:
        """For people; the spec is what tells jobs apart."""
        parts = "-".join(f"{name}{value:g}" for name, value in self.choice.items())
        return f"{self.method}-epsilon{self.budget.epsilon:g}-{self.role}-{parts}-seed{self.seed}"


def _shared(base: Spec) -> Values:
    """The keys of [data] and [problem]."""
    return {key: value for key, value in base.values().items() if key.startswith(("data.", "problem."))}


def completed(one: Values, where: str) -> Values:
    """The record of a job with every key that [data] and [problem] have by now; other records are refused."""
    if one.get("role") not in SPLIT:
        raise RecordError(f"{where} holds records that are none of a comparison: name another --out.")
    values = toml.parsed(one["spec"], where)
    shared = {key: value for key, value in values.items() if key.startswith(("data.", "problem."))}
    spec = toml.text(_shared(Spec().with_values(shared)) | {k: v for k, v in values.items() if k not in shared})
    return one if spec == one["spec"] else record.sealed(one | {"spec": spec})


@dataclass(frozen=True)
class Outcome:
    """What a job gave; `failed` says why where it gave no model."""

    rounds: int
    promise: Promise
    error: float | None = None
    seconds: float = 0.0
    sent: float = 0.0  # bytes that an agent sent in the run, on average
    failed: str | None = None


NOTHING = Promise(Unit.RECORD, Trusted.NOBODY, caveats=("it did not run.",))


def declared(job: Job, over: Federation) -> tuple[int, Promise]:
    """Rounds, and what they release, of the method as it is built for a job."""
    spec = job.run_spec
    return spec.run.rounds, _promise(spec, build.setup(spec, over))


def run(jobs: Sequence[Job], over: Federation, done: Callable[[Job, Outcome], None]) -> None:
    """Jobs of one method, as many at once as one pass serves; done(job, outcome) as each ends."""
    lanes: list[tuple[int, Run]] = []
    for n, job in enumerate(jobs):
        try:
            spec = job.run_spec
            lanes.append((n, Run(spec, over, build.setup(spec, over))))
        except InputError as error:
            done(job, Outcome(0, NOTHING, failed=str(error)))
    stop = Patience()
    for batch in in_lockstep(lanes):
        runs = dict(batch)
        for n, found in settled(batch, partial(_quietly, stop)):
            job, of = jobs[n], runs[n]
            rounds, promise = of.spec.run.rounds, _promise(of.spec, of.setup)
            if isinstance(found, Diverged):
                done(job, Outcome(rounds, promise, failed=str(found)))
            else:
                told = found.summary
                done(job, Outcome(rounds, promise, found.test_error, told["seconds"], told["sent_bytes"]))
        if stop.asked:  # in the last round: these runs are done, and no others begin
            raise Interrupted("stopped")


def _quietly(stop: Patience, runs: Sequence[Run]) -> list[Result]:
    """The runs together. The table says which of them are not private, so no warning does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        return together(runs, stop=stop)


def _promise(spec: Spec, setup: build.Setup) -> Promise:
    """What a run promises, with all reasons against it."""
    return replace(setup.promise, caveats=tuple(reasons(spec, setup)))


def guarantee(promise: Promise, rounds: int, budget: Budget) -> dict[str, Any]:
    """The accountant's total of what a method declares, or the reasons why there is none."""
    silent = not promise.each_round and not promise.once
    against = promise.caveats or (("it declares no release.",) if silent else ())
    spent = None if against else promise.total(rounds, budget.dp_delta)
    if spent is None or math.isinf(spent.epsilon):
        text = " ".join(["not private:", *(against or ("no bound on its releases holds.",))])
        nothing = dict.fromkeys(("epsilon", "dp_delta", "accountant", "unit", "trusted"))
        return {"private": False, "guarantee": text, **nothing}
    dp_delta = revealed(promise.events(rounds)) if spent.name == "basic" else spent.dp_delta
    over = "; more than the budget" if spent.epsilon > budget.epsilon * (1 + 1e-9) else ""
    text = f"({upward(spent.epsilon)}, {dp_delta:g})-DP in all ({spent.name}), {promise.unit.value}{over}"
    return {
        "private": True,
        "guarantee": text,
        "epsilon": spent.epsilon,
        "dp_delta": dp_delta,
        "accountant": spent.name,
        "unit": promise.unit.name.lower(),
        "trusted": promise.trusted.name.lower(),
    }


def content(job: Job, outcome: Outcome) -> dict[str, Any]:
    """The record of a job, before it is sealed."""
    return {
        "name": job.name,
        "role": job.role,
        "method": job.method,
        "choice": dict(job.choice),
        "budget_epsilon": job.budget.epsilon,
        "budget_dp_delta": job.budget.dp_delta,
        "seed": job.seed,
        "error": outcome.error,
        "judged_on": "the last sixth of each agent's training records" if job.role == "trial" else "test records",
        "rounds": outcome.rounds,
        "seconds": round(outcome.seconds, 3),
        "sent_bytes": outcome.sent,
        "failed": outcome.failed,
        **guarantee(outcome.promise, outcome.rounds, job.budget),
        "simulated_noise": job.budget.private,
        "version": __version__,
        "spec": job.spec,
    }
