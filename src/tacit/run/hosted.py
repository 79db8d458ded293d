"""The engine of methods other than ADMM: all agents are in this process, and runs share each pass over the records."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from tacit.admm.messages import Broadcast
from tacit.engine.sums import Rendezvous, SharedSums, SumsAsked
from tacit.errors import Diverged, TacitError
from tacit.methods.method import Own, exchange
from tacit.methods.task import Sums, plain_sums
from tacit.problem.loss import Loss
from tacit.problem.objective import Problem
from tacit.problem.sensitivity import RecordBound
from tacit.run.build import MethodSetup
from tacit.run.run import Run
from tacit.types import Array, Federation, Shard

PACKED_FOR = 4  # runs that a pass serves in a comparison's trials

_packed: WeakKeyDictionary[Federation, SharedSums] = WeakKeyDictionary()  # shared by all runs over the same records


class Hosted:
    """An engine that computes R runs in lockstep, for methods written as halves."""

    path = "hosted"

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = runs
        self.setups = [run.setup for run in runs if isinstance(run.setup, MethodSetup)]
        self.own: list[Own] = [setup.method.carried(setup.task) for setup in self.setups]
        self.pool = ThreadPoolExecutor(len(runs))
        self.shared = shared_sums(runs[0].federation, self.setups[0].problem.loss)

    def exchange_all(self, msgs: Sequence[Broadcast]) -> list[Any]:
        """Compute one round of every run, each run on its own thread; one pass over the records serves all runs."""
        meeting = Rendezvous(self.shared, len(msgs))
        answers = list(self.pool.map(partial(self._answer, meeting), range(len(msgs)), msgs))
        for r, found in enumerate(answers):
            if isinstance(found, TacitError):
                raise Diverged(f"round {msgs[r].t}: {found}", self.runs[r])
        self.own = [own for own, _ in answers]
        return [answer for _, answer in answers]

    def _answer(self, meeting: Rendezvous, r: int, msg: Broadcast) -> Any:
        setup = self.setups[r]
        task = replace(setup.task, sums=_asking(meeting, r, self.shared))
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # the loop looks for numbers that are not finite
                return exchange(setup.server, task, self.own[r], msg)
        except TacitError as error:  # a local solve that does not end, a record that is refused
            return error
        finally:
            meeting.leave(r)

    def save(self, r: int) -> dict[str, Array]:
        """Return what the agents of run r carry to the next round."""
        return {name: np.asarray(array) for name, array in self.own[r].items()}

    def load(self, r: int, saved: dict[str, Array]) -> None:
        """Continue run r from what `save` returned."""
        self.own[r] = saved


def shared_sums(federation: Federation, loss: Loss) -> SharedSums:
    """Return the shared sums over the records of a federation; the records are packed only once."""
    found = _packed.get(federation)
    if found is None or found.loss != loss:
        found = _packed[federation] = SharedSums(federation.shards, loss, federation.n_classes, n_runs=PACKED_FOR)
    return found


def _asking(meeting: Rendezvous, r: int, shared: SharedSums) -> Sums:
    """Return the sums for run r: asked at the meeting where runs can share them, else computed for run r alone."""

    def sums(shards: Sequence[Shard], problem: Problem, points: Array, bound: RecordBound) -> Array:
        if not shared.serves(shards, problem.loss, bound):
            return plain_sums(shards, problem, points, bound)
        return meeting.ask(r, SumsAsked(points, bound))

    return sums
