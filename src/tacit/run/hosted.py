"""Runs of methods whose agents are all in this process. Runs over the same records share each pass over them."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np

from tacit.admm.messages import Broadcast
from tacit.engine.sums import Question, Rendezvous, SharedSums
from tacit.errors import Diverged, TacitError
from tacit.methods.method import Own, carried, exchange
from tacit.methods.task import Sums, plain_sums
from tacit.problem.loss import Loss
from tacit.problem.objective import Problem
from tacit.problem.sensitivity import RecordBound
from tacit.run.build import MethodSetup
from tacit.types import Array, Federation, Shard

PACKED_FOR = 4  # runs that a pass serves in a comparison's trials

_packed: WeakKeyDictionary[Federation, SharedSums] = WeakKeyDictionary()  # once for all runs over the same records


class Hosts(Protocol):
    """A run as this module sees it."""

    @property
    def setup(self) -> Any: ...

    @property
    def over(self) -> Federation: ...


class Hosted:
    """R runs in lockstep: an engine for methods that are written as halves, or as a curator's."""

    path = "hosted"

    def __init__(self, runs: Sequence[Hosts]) -> None:
        self.runs = runs
        self.setups: list[MethodSetup] = [run.setup for run in runs]
        self.own: list[Own] = [carried(setup.method, setup.task) for setup in self.setups]
        first = self.setups[0]
        self.shared = shared_sums(runs[0].over, first.problem.loss)

    def exchange_all(self, msgs: Sequence[Broadcast]) -> list[Any]:
        """One round of every run, each on a thread of its own; their sums over records are answered together."""
        meeting: Rendezvous = Rendezvous(self.shared, len(msgs))
        with ThreadPoolExecutor(len(msgs)) as pool:
            answers = list(pool.map(partial(self._answer, meeting), range(len(msgs)), msgs))
        failed = [(r, error) for r, error in enumerate(answers) if isinstance(error, TacitError)]
        for r, error in failed:
            raise Diverged(f"round {msgs[r].t}: {error}", self.runs[r])
        for r, (own, _) in enumerate(answers):
            self.own[r] = own
        return [answer for _, answer in answers]

    def _answer(self, meeting: Rendezvous, r: int, msg: Broadcast) -> Any:
        setup = self.setups[r]
        task = replace(setup.task, sums=_asking(meeting, r, self.shared))
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # the loop looks for what is not finite
                return exchange(setup.method, task, self.own[r], msg)
        except TacitError as error:  # a local solve that does not end, a record that is refused
            return error
        finally:
            meeting.leave(r)

    def save(self, r: int) -> dict[str, Array]:
        """What the agents of run r carry to the next round."""
        return {name: np.asarray(array) for name, array in self.own[r].items()}

    def load(self, r: int, saved: dict[str, Array]) -> None:
        """Go on from what `save` gave."""
        self.own[r] = saved


def shared_sums(over: Federation, loss: Loss) -> SharedSums:
    """The records of a federation, packed once."""
    found = _packed.get(over)
    if found is None or found.loss != loss:
        found = _packed[over] = SharedSums(over.shards, loss, over.n_classes, n_runs=PACKED_FOR)
    return found


def _asking(meeting: Rendezvous, r: int, shared: SharedSums) -> Sums:
    """Sums for run r: at the meeting where they can be shared, else by itself."""

    def sums(shards: Sequence[Shard], problem: Problem, points: Array, bound: RecordBound) -> Array:
        if not shared.serves(shards, problem.loss, bound):
            return plain_sums(shards, problem, points, bound)
        return meeting.ask(r, Question(points, bound))

    return sums
