"""Who competes: tacit's own inexact ADMM under the sound preset, and every method of tacit.methods."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from tacit.admm.price import release
from tacit.compare.arena import Arena
from tacit.compare.job import Job, Outcome
from tacit.compare.lanes import side_by_side
from tacit.errors import Diverged, InputError, NotPrivateWarning
from tacit.methods.method import Choice, Entry, Method, model_bytes
from tacit.methods.promise import Promise, Trusted, Unit
from tacit.methods.registry import METHODS
from tacit.methods.task import Task
from tacit.run import build
from tacit.run.presets import preset
from tacit.run.result import classes_read, reasons
from tacit.run.spec import Spec
from tacit.run.train import Run, together

Done = Callable[[Job, Outcome], None]
NOTHING = Promise(Unit.RECORD, Trusted.NOBODY, caveats=("it did not run.",))


class Contender(Protocol):
    """A method that takes part."""

    @property
    def name(self) -> str: ...

    @property
    def about(self) -> str: ...

    @property
    def grid(self) -> tuple[Choice, ...]: ...

    def declared(self, job: Job, arena: Arena) -> tuple[int, Promise]:
        """Rounds, and what they release, of the method as built for a job."""
        ...

    def run(self, jobs: Sequence[Job], arena: Arena, done: Done) -> None:
        """Jobs of this method together; done(job, outcome) as each ends."""
        ...


@dataclass(frozen=True)
class Baseline:
    """A line of the registry."""

    entry: Entry

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def about(self) -> str:
        return self.entry.about

    @property
    def grid(self) -> tuple[Choice, ...]:
        return self.entry.grid

    def declared(self, job: Job, arena: Arena) -> tuple[int, Promise]:
        method, task = self._built(job, arena)
        return method.rounds, _with_classes(method.promise(task), job, arena)

    def run(self, jobs: Sequence[Job], arena: Arena, done: Done) -> None:
        ready: list[Job] = []
        built: list[tuple[Method, Task]] = []
        for job in jobs:
            try:
                built.append(self._built(job, arena))
                ready.append(job)
            except InputError as error:
                done(job, Outcome(0, NOTHING, failed=str(error)))

        def over(r: int, outcome: Outcome) -> None:
            done(ready[r], replace(outcome, promise=_with_classes(outcome.promise, ready[r], arena)))

        if ready:
            side_by_side(built, lambda: arena.sums, arena.over.test, over)

    def _built(self, job: Job, arena: Arena) -> tuple[Method, Task]:
        task = arena.task(job.seed)
        return self.entry.build(task, job.budget, job.choice), task


@dataclass(frozen=True)
class Inexact:
    """The ADMM of tacit.admm: `tacit train --preset sound`, with `values` changed."""

    name: str
    about: str
    algorithm: str
    grid: tuple[Choice, ...]
    values: Mapping[str, Any]

    def declared(self, job: Job, arena: Arena) -> tuple[int, Promise]:
        spec = self._spec(job)
        return spec.run.rounds, _promise(spec, build.setup(spec, arena.over))

    def run(self, jobs: Sequence[Job], arena: Arena, done: Done) -> None:
        lanes: list[tuple[Job, Spec, build.Setup]] = []
        for job in jobs:
            try:
                lanes.append((job, spec := self._spec(job), build.setup(spec, arena.over)))
            except InputError as error:
                done(job, Outcome(0, NOTHING, failed=str(error)))
        while lanes:
            runs = [Run(spec, arena.over, setup) for _, spec, setup in lanes]
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", NotPrivateWarning)  # the table says so
                    results = together(runs)
            except Diverged as lost:  # the others go on without it, from the start
                n = next(n for n, run in enumerate(runs) if run is lost.run)
                job, spec, setup = lanes.pop(n)
                done(job, Outcome(spec.run.rounds, _promise(spec, setup), failed=str(lost)))
                continue
            for (job, spec, setup), result in zip(lanes, results, strict=True):
                sent = spec.run.rounds * model_bytes(arena.task(job.seed))
                seconds = result.summary["seconds"]
                done(job, Outcome(spec.run.rounds, _promise(spec, setup), result.test_error, seconds, sent))
            return

    def _spec(self, job: Job) -> Spec:
        rounds = int(job.choice["rounds"])
        data = {key: value for key, value in job.base.values().items() if key.startswith(("data.", "problem."))}
        return preset("sound", self.algorithm, job.base.data.source).with_values(
            data
            | dict(self.values)
            | {"privacy.clip": job.choice["clip"], "schedule.score_noise": job.choice["score_noise"]}
            | {"privacy.epsilon": job.budget.epsilon, "privacy.dp_delta": job.budget.dp_delta}
            | {"run.rounds": rounds, "run.record_every": rounds, "run.seed": job.seed}
        )


def _promise(spec: Spec, setup: build.Setup) -> Promise:
    """What an agent of a run releases; every agent has the same mechanism."""
    one = release(setup.agents[0].method)
    events = () if one is None else ((one, 1),)
    return Promise(Unit.RECORD, Trusted.NOBODY, events, caveats=tuple(reasons(spec, setup)))


def _with_classes(promise: Promise, job: Job, arena: Arena) -> Promise:
    """A list of classes that was read from private labels is a release that no accountant prices."""
    if arena.over.public_classes or not job.budget.private:
        return promise
    return replace(promise, caveats=(*promise.caveats, classes_read(job.base)))


# the first is the sound preset's
ADMM_GRID: tuple[Choice, ...] = tuple(
    {"rounds": 300, "clip": clip, "score_noise": noise} for clip in (0.35, 0.7) for noise in (1.5, 3.0)
)

OWN = (
    Inexact("objp", "inexact ADMM with proximal steps, Gaussian noise at each agent", "objp", ADMM_GRID, {}),
    Inexact("objt", "inexact ADMM with trust-region steps, Gaussian noise at each agent", "objt", ADMM_GRID, {}),
    Inexact("outp", "inexact ADMM, Gaussian noise on each agent's solution", "outp", ADMM_GRID, {}),
    Inexact(
        "objt-laplace", "the same with Laplace noise, accounted in l2", "objt", ADMM_GRID,
        {"privacy.mechanism": "laplace"},
    ),
)  # fmt: skip


def contenders() -> dict[str, Contender]:
    """By name, tacit's own first."""
    everyone: tuple[Contender, ...] = (*OWN, *map(Baseline, METHODS.values()))
    return {one.name: one for one in everyone}
