"""A fast engine whose agents are spread over processes: rank 0 leads, and asks once a round.

Down goes one broadcast: the round, rho and w of every run. Up comes one gather: of every rank the sums of its z_p over
blocks of agents (engine.blocks) and five numbers an agent. Sums and means are then formed as one process forms them, so
that no bit depends on how many ranks there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tacit.admm.messages import Broadcast, Replies
from tacit.engine.blocks import Moved, block_size, folded, parts
from tacit.engine.fast import FastEngine
from tacit.engine.kernels import of_run
from tacit.engine.registry import Agents
from tacit.rounds import NUMBERS
from tacit.types import Array

if TYPE_CHECKING:
    from tacit.engine.mpi import Team

COLUMNS = len(NUMBERS)  # of a trace
PARTS = ("gradient", "noise", "update")  # of a round, whose seconds are told
FAILED, NOBODY, OWN_CODE, FUSED = range(4)  # how a rank has answered: the first number that it sends


class Part:
    """The agents of one rank, perhaps none, of runs in lockstep."""

    def __init__(self, runs: Sequence[Agents], shape: tuple[int, int], counts: Array) -> None:
        here = [p for p, agent in enumerate(runs[0]) if agent.shard.here]
        self.agents = range(here[0], here[-1] + 1) if here else range(0)
        self.n_runs, self.n_agents, self.shape = len(runs), len(runs[0]), shape
        self.block = block_size(self.n_agents)
        self.parts = parts(self.agents.start, self.agents.stop, self.block)
        own = [[run[p] for p in here] for run in runs]
        self.engine = FastEngine(own, shape, counts=counts) if here else None
        self.lost: Exception | None = None  # what a round failed with
        self.room = np.zeros(self.length(self.agents))  # for an answer
        self.packed = np.zeros(self.engine.z.shape[1:]) if self.engine else np.zeros(0)  # for one sum

    @property
    def path(self) -> str:
        """Which code moves the agents here."""
        return self.engine.path if self.engine else ""

    @property
    def numbers(self) -> int:
        """How many numbers rank 0 sends in a round: rho and w of every run."""
        return self.n_runs * (1 + self.shape[0] * self.shape[1])

    def length(self, agents: range) -> int:
        """How many numbers the rank with these agents sends in a round."""
        sums = len(parts(agents.start, agents.stop, self.block)) * self.shape[0] * self.shape[1]
        return 1 + len(PARTS) + self.n_runs * (COLUMNS * len(agents) + sums)

    def messages(self, t: int, numbers: Array) -> list[Broadcast]:
        """The messages of a round, from what rank 0 has sent."""
        rho, models = numbers[: self.n_runs], numbers[self.n_runs :].reshape(self.n_runs, *self.shape)
        return [Broadcast(t, w, own) for w, own in zip(models, rho.tolist(), strict=True)]

    def answer(self, t: int, numbers: Array) -> Array:
        """One round of the agents here, as rank 0 reads it."""
        if self.engine is None:
            return np.array([NOBODY, *[0.0] * len(PARTS)])
        try:
            moved = self.engine.move(self.messages(t, numbers))
        except Exception as error:
            self.lost = error
            return np.full(self.length(self.agents), FAILED)
        first, wide = self.agents.start, self.n_runs * self.shape[1]
        head = [FUSED if moved.fused else OWN_CODE, *(moved.seconds.get(name, 0.0) for name in PARTS)]
        self.room[: len(head)] = head
        _, columns, sums = self.read(self.agents, self.room)
        columns[...] = moved.columns
        for own, place in sums:
            if len(own) == 1:
                np.add(self.engine.z[own.start - first, :, :wide], 0.0, out=place)  # a sum of one has no -0.0
            else:
                run = range(own.start - first, own.stop - first)
                place[...] = self.engine.total(run, self.block, self.packed)[:, :wide]
        return self.room

    def read(self, agents: range, numbers: Array) -> tuple[Array, Array, list[tuple[range, Array]]]:
        """(seconds, columns (5, P, R), the sums of parts (J, R K)) of the rank with these agents."""
        own = COLUMNS * len(agents) * self.n_runs
        head, columns, sums = np.split(numbers[1:], [len(PARTS), len(PARTS) + own])
        runs = parts(agents.start, agents.stop, self.block)
        each = sums.reshape(len(runs), self.shape[0], self.n_runs * self.shape[1])
        return head, columns.reshape(COLUMNS, len(agents), self.n_runs), list(zip(runs, each, strict=True))

    def explain(self) -> None:
        """Raise what a round failed with here, if it did."""
        lost, self.lost = self.lost, None
        if lost is not None:
            raise lost

    def violations(self, r: int, w: Array) -> Array:
        """|w - z_p|_1 of the agents here."""
        return np.array([] if self.engine is None else self.engine.violations(r, w))

    def save(self, r: int) -> dict[str, Array]:
        """Return the local models and duals (P, J, K) of the agents here."""
        saved = {} if self.engine is None else self.engine.save(r)
        return {name: saved[name] for name in ("z", "dual") if name in saved}

    def load(self, r: int, saved: dict[str, Array]) -> None:
        """Go on from what `save` gave of the agents here, and rho of each of them."""
        if self.engine is not None:
            self.engine.load(r, saved | {"rho": saved["rho"][:1]})


class SpreadEngine:
    """The engine of rank 0."""

    def __init__(self, part: Part, ranks: Team, agents: Sequence[range], path: str) -> None:
        self.part, self.ranks, self.agents, self.path = part, ranks, agents, path
        self.lengths = [part.length(own) for own in agents]
        self.rho = np.zeros(part.n_runs)
        ranks.expect(part.numbers)

    def exchange_all(self, msgs: Sequence[Broadcast]) -> list[Replies]:
        numbers = np.concatenate([[msg.rho for msg in msgs], *(msg.w.ravel() for msg in msgs)])
        self.ranks.ask_round(msgs[0].t, numbers)
        answers = self.ranks.gather(self.part.answer(msgs[0].t, numbers), self.lengths)
        if any(answer[0] == FAILED for answer in answers):
            with self.ranks.doing("explain"):
                self.part.explain()
            raise AssertionError("a rank that failed in a round says why")
        self.rho = np.array([msg.rho for msg in msgs])
        seconds, columns, sums = zip(*map(self.part.read, self.agents, answers), strict=True)
        spent = dict(zip(PARTS, np.sum(seconds, axis=0).tolist(), strict=True))
        fused = any(answer[0] == FUSED for answer in answers)
        traces = Moved(np.concatenate(columns, axis=1), spent, fused).traces()
        mean = folded((part for own in sums for part in own), self.part.block) / self.part.n_agents
        classes = self.part.shape[1]
        return [
            Replies(of_run(mean, r, classes).copy(), partial(self._violation, r), trace, np.float32)
            for r, trace in enumerate(traces)
        ]

    def _violation(self, r: int, w: Array) -> float:
        """sum_p |w - z_p|_1, agent after agent."""
        with self.ranks.doing("violations", run=r):
            each: list[float] = self.ranks.collect(self.part.violations(r, self.ranks.spread(w))).tolist()
        return sum(each)

    def save(self, r: int) -> dict[str, Array]:
        with self.ranks.doing("save", run=r):
            return self.ranks.collect_all(self.part.save(r)) | {"rho": self.rho[r : r + 1].copy()}

    def load(self, r: int, saved: dict[str, Array]) -> None:
        self.rho[r] = saved["rho"].item()
        rows = {name: saved[name].astype(np.float32, copy=False) for name in ("z", "dual")}
        rows["rho"] = np.full(self.part.n_agents, self.rho[r])
        with self.ranks.doing("restore", run=r):
            self.part.load(r, self.ranks.deal(len(self.part.agents), rows))
