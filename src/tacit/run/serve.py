"""Programs on the ranks of MPI: rank 0 runs the program; the others hold records and agents, and answer rank 0.

tacit.run.ranks has what rank 0 asks of them.
"""

from __future__ import annotations

import signal
import warnings
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit import toml
from tacit.admm.messages import Broadcast
from tacit.engine import evaluate, mpi
from tacit.engine.spread import Part
from tacit.errors import TacitWarning
from tacit.run import build, evaluation, ranks
from tacit.run.hosted import HostedPart, answer_together, host
from tacit.run.setup import Setup
from tacit.run.spec import Spec
from tacit.types import Array, Federation, Shard

if TYPE_CHECKING:
    from tacit.engine.mpi import Team


def led(work: Callable[[], int]) -> int:
    """Run a program on rank 0, which the other ranks serve; return its exit code, or zero on another rank."""
    team = mpi.team()
    if not team.leads:
        serve(team)
        return 0
    with ranks.leading(team):
        return work()


def serve(team: Team) -> None:
    """Answer rank 0 until it says stop. Rank 0 decides what a signal means: the others wait for what it says."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    warnings.simplefilter("ignore", TacitWarning)  # rank 0 tells of the same run
    rank = _Rank(team)
    while (heard := team.hear()) is None or heard[0] != "stop":
        if heard is None:
            rank.round()
        elif team.obey(partial(rank.do, *heard)) and heard[0] == "open" and rank.part is not None:
            team.expect(rank.part.numbers)  # from now on, as rank 0 does


def _spec(text: str) -> Spec:
    """The spec that rank 0 sends."""
    return Spec().with_values(toml.parsed(text, "the spec of rank 0"))


class _Rank:
    """The state of a rank: the federations whose parts it holds, by number, and the runs it computes."""

    def __init__(self, team: Team) -> None:
        self.team = team
        self.federations: dict[int, Federation] = {}
        self.tests: dict[int, Shard] = {}
        self.setups: list[Setup] = []
        self.part: Part | HostedPart | None = None

    def round(self) -> None:
        """One round of the agents here."""
        assert isinstance(self.part, Part), "a round follows an engine"
        self.team.gather(self.part.answer(int(self.team.frame[1]), self.team.frame[mpi.HEAD :].copy()), ())

    def do(self, name: str, arguments: dict[str, Any]) -> None:
        """Do what a command asks for; federations that rank 0 has let go are let go."""
        used = set(arguments.pop("used", self.federations))
        self.federations = {number: own for number, own in self.federations.items() if number in used}
        self.tests = {number: own for number, own in self.tests.items() if number in used}
        getattr(self, f"do_{name}")(**arguments)

    def do_load(self, number: int, spec: str) -> None:
        self.federations[number] = ranks.load_part(_spec(spec), self.team)

    def do_open(self, number: int, specs: list[str]) -> None:
        self.part, federation = None, self.federations[number]
        self.setups = [build.setup(_spec(spec), federation) for spec in specs]
        make = ranks.part_of if self.setups[0].hosted is None else host
        self.part = make(self.setups, federation, self.team)
        ranks.placed(self.part, self.team)

    def do_answer(self, asked: list[dict[str, Any]]) -> None:
        assert isinstance(self.part, HostedPart)
        msgs = [
            Broadcast(one["t"], self.team.spread(), one["rho"], None if one["to"] is None else np.array(one["to"], int))
            for one in asked
        ]
        answer_together(self.part, msgs, self.team)

    def do_hold_out(self, number: int, as_number: int, seed: int, one_in: int) -> None:
        self.federations[as_number] = ranks.hold_out_together(self.federations[number], seed, one_in, self.team)

    def do_explain(self) -> None:
        assert isinstance(self.part, Part)
        self.part.explain()

    def do_violations(self, run: int) -> None:
        assert isinstance(self.part, Part)
        self.team.collect(self.part.violations(run, self.team.spread()))

    def do_save(self, run: int) -> None:
        assert self.part is not None
        self.team.collect_all(self.part.save(run))

    def do_restore(self, run: int) -> None:
        assert self.part is not None
        self.part.load(run, self.team.deal(len(self.part.agents)))

    def do_losses(self, number: int, run: int) -> None:
        w = self.team.spread()
        self.team.collect(np.array(evaluation.own_losses(w, self.setups[run], self.federations[number])))

    def do_test(self, number: int, sizes: list[int]) -> None:
        own = self.team.deal(sizes[self.team.rank])
        self.tests[number] = Shard(own["x"], own["y"])

    def do_tested(self, number: int, what: str) -> None:
        w, own = self.team.spread(), self.tests[number]
        found: Array | int = evaluate.count_errors(w, own) if what == "errors" else evaluate.column(w, own)
        self.team.collect(np.atleast_1d(np.asarray(found)))
