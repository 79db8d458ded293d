"""The engine of methods other than ADMM: runs share each pass over the records.

All agents are in this process (Hosted), or they are spread over ranks and each rank answers for its own (SpreadHosted).
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from tacit.admm.messages import Broadcast
from tacit.engine.sums import Rendezvous, SharedSums, SumsAsked
from tacit.errors import Diverged, IncompatibleError, TacitError
from tacit.methods.method import Answers, Curated, Own
from tacit.methods.task import Sums, Task, plain_sums
from tacit.problem.loss import Loss
from tacit.problem.objective import Problem
from tacit.problem.sensitivity import RecordBound
from tacit.run import ranks
from tacit.run.run import Run
from tacit.run.setup import HostedMethod, Setup
from tacit.types import Array, Federation, Shard

if TYPE_CHECKING:
    from tacit.engine.mpi import Team

PACKED_FOR = 4  # runs that a pass serves in a comparison's trials

_packed: WeakKeyDictionary[Federation, SharedSums] = WeakKeyDictionary()  # shared by all runs over the same records

Answered: TypeAlias = tuple[Own, Answers] | TacitError


class HostedPart:
    """The agents of R runs that are in this process: all of them, or those of one rank; `counts` is of all records."""

    numbers, path = 0, "hosted"  # a command asks for a round, and not a frame of numbers (engine.mpi)

    def __init__(self, setups: Sequence[Setup], federation: Federation, counts: Array | None = None) -> None:
        own = hosted(setups)
        self.methods, self.n_agents = [one.method for one in own], federation.n_agents
        here = tuple(p for p, shard in enumerate(federation.shards) if shard.here)
        self.agents = range(here[0], here[-1] + 1) if here else range(0)
        self.shared = shared_sums(federation, setups[0].problem.loss, counts) if here else None
        shards = self.shared.shards if self.shared else ()
        self.tasks = [replace(one.task, shards=shards, index=here) for one in own]
        self.own: list[Own] = [
            method.carried(task) if here else {} for method, task in zip(self.methods, self.tasks, strict=True)
        ]
        self.pool = ThreadPoolExecutor(len(own))

    def answers(self, msgs: Sequence[Broadcast]) -> list[Answered]:
        """One round of every run, each run on its own thread; one pass over the records serves all runs."""
        if self.shared is None:
            return [({}, {}) for _ in msgs]
        meeting = Rendezvous(self.shared, len(msgs))
        return list(self.pool.map(partial(self._answer, meeting, self.shared), range(len(msgs)), msgs))

    def _answer(self, meeting: Rendezvous, shared: SharedSums, r: int, msg: Broadcast) -> Answered:
        task: Task = replace(self.tasks[r], sums=_asking(meeting, r, shared))
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # the loop looks for numbers that are not finite
                return self.methods[r].answer(task, self.own[r], msg)
        except TacitError as error:  # a local solve that does not end, a record that is refused
            return error
        finally:
            meeting.leave(r)

    def save(self, r: int) -> dict[str, Array]:
        """Return what the agents of run r that are here carry to the next round."""
        return {name: np.asarray(array) for name, array in self.own[r].items()}

    def load(self, r: int, saved: dict[str, Array]) -> None:
        """Continue run r from what `save` returned."""
        self.own[r] = saved


class Hosted:
    """An engine that computes R runs in lockstep, for methods written as halves."""

    path = "hosted"

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = runs
        self.setups = [run.setup for run in runs]
        self.part = HostedPart(self.setups, runs[0].federation)

    def exchange_all(self, msgs: Sequence[Broadcast]) -> list[Any]:
        """Compute one round of every run."""
        answers = self.part.answers(msgs)
        for r, found in enumerate(answers):
            if isinstance(found, TacitError):
                raise Diverged(f"round {msgs[r].t}: {found}", self.runs[r])
        moved = [found for found in answers if not isinstance(found, TacitError)]
        self.part.own = [own for own, _ in moved]
        return [own.server.reached(answer) for own, (_, answer) in zip(hosted(self.setups), moved, strict=True)]

    def save(self, r: int) -> dict[str, Array]:
        """Return what the agents of run r carry to the next round."""
        return self.part.save(r)

    def load(self, r: int, saved: dict[str, Array]) -> None:
        """Continue run r from what `save` returned."""
        self.part.load(r, saved)


def hosted(setups: Sequence[Setup]) -> list[HostedMethod]:
    """Return the methods of these setups, each with the records of its agents."""
    return [setup.hosted for setup in setups if setup.hosted is not None]


def is_curated(setup: Setup) -> bool:
    """Tell whether a method needs all records in one place."""
    return setup.hosted is not None and isinstance(setup.hosted.method, Curated)


class SpreadHosted:
    """The same over ranks, as rank 0 sees it; the rows of all agents come in their order."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs, self.federation = runs, runs[0].federation
        self.setups = [run.setup for run in runs]
        if is_curated(self.setups[0]):
            name = runs[0].spec.algorithm.name
            raise IncompatibleError(f"{name} is for a curator who holds all records in one place: drop --engine mpi.")
        self.team = ranks.lead().team
        self.part, _, self.path = ranks.opened([run.spec for run in runs], self.setups, self.federation, host)
        self.team.expect(self.part.numbers)

    def exchange_all(self, msgs: Sequence[Broadcast]) -> list[Any]:
        """Compute one round of every run."""
        asked = [{"t": msg.t, "rho": msg.rho, "to": None if msg.to is None else msg.to.tolist()} for msg in msgs]
        with self.team.doing("answer", asked=asked):
            for msg in msgs:
                self.team.spread(msg.w)
            found, failed = answer_together(self.part, msgs, self.team)
        for r, why in sorted(failed.items()):
            raise Diverged(f"round {msgs[r].t}: {why}", self.runs[r])
        return [own.server.reached(answer) for own, answer in zip(hosted(self.setups), found, strict=True)]

    def save(self, r: int) -> dict[str, Array]:
        """Return what the agents of run r carry to the next round."""
        with self.team.doing("save", run=r):
            return self.team.collect_all(self.part.save(r))

    def load(self, r: int, saved: dict[str, Array]) -> None:
        """Continue run r from what `save` returned."""
        with self.team.doing("restore", run=r):
            self.part.load(r, self.team.deal(len(self.part.agents), saved))


def host(setups: Sequence[Setup], federation: Federation, team: Team) -> HostedPart:
    """Return this rank's part of runs; every rank keeps records in the same form."""
    return HostedPart(setups, federation, ranks.counted_together(federation, team))


def answer_together(
    part: HostedPart, msgs: Sequence[Broadcast], team: Team
) -> tuple[list[dict[str, Array]], dict[int, str]]:
    """Return what all agents send in each run, at rank 0; and why a run has failed. Then no agent has moved."""
    answers = part.answers(msgs)
    told = team.together({r: str(own) for r, own in enumerate(answers) if isinstance(own, TacitError)})
    failed = {int(r): why for own in reversed(told) for r, why in own.items()}
    if failed:
        return [], failed
    moved = [own for own in answers if not isinstance(own, TacitError)]
    part.own = [own for own, _ in moved]
    return [team.collect_all(answer) for _, answer in moved], {}


def shared_sums(federation: Federation, loss: Loss, counts: Array | None = None) -> SharedSums:
    """Return the shared sums over the records that are here; the records are packed only once."""
    found = _packed.get(federation)
    if found is None or found.loss != loss:
        here = tuple(shard for shard in federation.shards if shard.here)
        shards = federation.shards if len(here) == federation.n_agents else here
        found = _packed[federation] = SharedSums(shards, loss, federation.n_classes, PACKED_FOR, counts)
    return found


def _asking(meeting: Rendezvous, r: int, shared: SharedSums) -> Sums:
    """Return the sums for run r: asked at the meeting where runs can share them, else computed for run r alone."""

    def sums(shards: Sequence[Shard], problem: Problem, points: Array, bound: RecordBound) -> Array:
        if not shared.serves(shards, problem.loss, bound):
            return plain_sums(shards, problem, points, bound)
        return meeting.ask(r, SumsAsked(points, bound))

    return sums
