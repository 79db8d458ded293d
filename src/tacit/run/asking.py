"""Ask deployed agents and take their answers: the engine of runs whose method is made of queries.

A round asks all agents side by side, each on a thread, and ends when every agent has answered or refused: no answer
that is on record is still on its way then. If an agent refuses, no model has moved, and the first refusal is raised.
If no honest agent sends an answer that has come (tacit.run.plausible), no model has moved either, and the run ends.

`apply_answers` and `apply_sum` move the models, one for each cover of an answer. A federation
(tacit.federation) brings answers from sites and uses the same two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from tacit.admm.messages import Broadcast
from tacit.agent.agent import Answer, DeployedAgent
from tacit.agent.gate import Question
from tacit.errors import Implausible
from tacit.machine import cores
from tacit.run.deployment import Deployment, Program
from tacit.run.plausible import why_implausible
from tacit.types import Array

THREADS = 2  # per core: while one agent waits for the disk, another computes; more of them gain nothing


@dataclass(frozen=True, eq=False)
class ReceivedAnswer:
    """An answer of agent p, with the broadcast of its question: a late answer belongs to an older w and rho."""

    p: int
    msg: Broadcast
    value: Array


@dataclass(frozen=True, eq=False)
class Lane:
    """One run: its name, the hash of what was agreed, its agents in order, and the program at its server."""

    run: str
    agreed: str
    agents: Sequence[DeployedAgent]
    deployment: Deployment
    program: Program

    def questions(self, msg: Broadcast) -> list[Question]:
        """Return the question to each agent."""
        if self.deployment.in_sum is None:
            each = [self.program.parameters(msg, p) for p in range(len(self.agents))]
            return [Question(self.run, self.agreed, msg.t, one) for one in each]
        peers = tuple(sorted(agent.name for agent in self.agents))
        shared = self.program.parameters(msg, 0)
        return [Question(self.run, self.agreed, msg.t, shared, 0, peers) for _ in self.agents]


class AskingEngine:
    """The engine of runs whose agents are deployed in this process, or simulated behind a secure sum.

    An audit attacks with any answer, so its answers are not `checked`.
    """

    def __init__(self, lanes: Sequence[Lane], threads: int | None = None, checked: bool = True) -> None:
        self.lanes, self.checked = lanes, checked
        self.path = "plain, side by side" if lanes[0].deployment.in_sum is None else "secure sum, side by side"
        self.pool = ThreadPoolExecutor(threads or THREADS * cores(), "agent")

    def exchange_all(self, msgs: Sequence[Broadcast]) -> list[Any]:
        """Compute one round of every run."""
        start = perf_counter()
        asked = list(zip(self.lanes, msgs, strict=True))
        with all_ended() as pending:
            for lane, msg in asked:
                for agent, question in zip(lane.agents, lane.questions(msg), strict=True):
                    pending.append(self.pool.submit(agent.answer_or_refuse, question))
        answers = iter([future.result() for future in pending])  # before any model of any run has moved
        waited = perf_counter() - start
        each = [[next(answers) for _ in lane.agents] for lane in self.lanes]
        for lane, own in zip(self.lanes, each, strict=True):
            if self.checked and lane.deployment.in_sum is None:
                _check(lane, own)
        return [self._take(lane, msg, own, waited) for (lane, msg), own in zip(asked, each, strict=True)]

    def _take(self, lane: Lane, msg: Broadcast, answers: Sequence[Answer], waited: float) -> Any:
        if lane.deployment.in_sum is not None:
            residues = np.add.reduce([answer.value for answer in answers], dtype=np.uint64)
            present = range(len(answers))
            return apply_sum(lane.program, lane.deployment, msg, residues, present, {"answers": waited})
        taken = [ReceivedAnswer(p, msg, answer.value) for p, answer in enumerate(answers)]
        spent = {part: sum(answer.seconds[part] for answer in answers) for part in answers[0].seconds}
        return apply_answers(lane.program, lane.deployment, msg, taken, spent, self.pool)

    def save(self, r: int) -> dict[str, Array]:
        """Return all that the next round of run r needs."""
        return self.lanes[r].program.save()

    def load(self, r: int, saved: dict[str, Array]) -> None:
        """Continue run r from what `save` returned."""
        self.lanes[r].program.load(saved)

    def close(self) -> None:
        """End the threads; what the agents write to is then free to be closed."""
        self.pool.shutdown(wait=True, cancel_futures=True)


def apply_answers(
    program: Program, deployment: Deployment, msg: Broadcast, taken: Sequence[ReceivedAnswer],
    seconds: Mapping[str, float], pool: ThreadPoolExecutor | None = None, in_step: bool = True,
) -> Any:  # fmt: skip
    """Move every agent that has answered, and return what the method's server concludes the round with."""
    start = perf_counter()
    moved = map if pool is None else pool.map
    list(moved(lambda one: program.move(one.p, one.msg, one.value), taken))
    spent = {**seconds, "update": perf_counter() - start}
    return program.replies(msg, deployment.spreads(msg.t), spent, in_step)


def apply_sum(
    program: Program, deployment: Deployment, msg: Broadcast, residues: Array, present: Sequence[int],
    seconds: Mapping[str, float],
) -> Any:  # fmt: skip
    """Move the mean by the total of the agents that are present, whose words add up to `residues`."""
    start = perf_counter()
    total = deployment.attempt(msg.t, len(present)).total(residues)
    program.move(0, msg, total, deployment.whole(present))
    spent = {**seconds, "update": perf_counter() - start}
    return program.replies(msg, [deployment.spread_of_sum(msg.t, len(present))], spent)


@contextmanager
def all_ended() -> Iterator[list[Future[Any]]]:
    """Yield a list for pending answers; all of them have ended when the block has."""
    answers: list[Future[Any]] = []
    try:
        yield answers
        wait(answers)
    except BaseException:  # the user has stopped the run: agents that have not begun to answer do not begin
        for answer in answers:
            answer.cancel()
        wait(answers)
        raise


def _check(lane: Lane, answers: Sequence[Answer]) -> None:
    """Refuse answers that no honest agent sends."""
    for p, (agent, answer) in enumerate(zip(lane.agents, answers, strict=True)):
        if why := why_implausible(lane.deployment, p, answer.t, answer.value):
            raise Implausible(
                f"round {answer.t}: agent {agent.name} sent what no honest agent sends: {why}. The model is that of "
                "the round before, and the answers of this round are paid for. Find out what is wrong with this agent, "
                "and start a new run."
            )
