"""Agents of one process that are asked side by side: each on a thread, and their answers collected in order.

An agent mostly waits, for the disk that its ledger is on, or computes in compiled code that holds no lock of the
interpreter. What is computed of the answers is the plain engine's, in its order: no number depends on the threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

from tacit.admm.messages import Broadcast, Local, Replies, Reply
from tacit.engine.plain import PlainEngine, Responder
from tacit.machine import cores
from tacit.rounds import Trace
from tacit.types import Array

THREADS = 2  # a core: while one agent waits for the disk, another computes; more of them gain nothing


@contextmanager
def all_ended() -> Iterator[list[Future[Any]]]:
    """Give a list for the answers that are asked for; when the block has ended, so has each of them."""
    answers: list[Future[Any]] = []
    try:
        yield answers
        wait(answers)
    except BaseException:  # the user has stopped the run: whoever has not begun to answer does not
        for answer in answers:
            answer.cancel()
        wait(answers)
        raise


class Asked:
    """An agent that was asked, and whose answer is collected later."""

    def __init__(self, agent: Responder) -> None:
        self.agent = agent.in_double()
        self.answer: Future[tuple[Local, Reply, Trace]] = Future()

    def in_double(self) -> Asked:
        return self

    def start(self, shape: tuple[int, int]) -> Local:
        return self.agent.start(shape)

    def respond(self, _own: Local, _msg: Broadcast) -> tuple[Local, Reply, Trace]:
        """The answer to what was asked, or the error in its place."""
        return self.answer.result()


class SideBySide:
    """A plain engine whose agents are all asked before the first answer is collected.

    A round ends when every agent has answered or refused: no answer that is on record is still on its way then. Of
    several refusals, that of the first agent is raised.
    """

    path = "plain, side by side"

    def __init__(self, runs: Sequence[Sequence[Responder]], shape: tuple[int, int], threads: int | None = None) -> None:
        self.asked = [[Asked(agent) for agent in agents] for agents in runs]
        self.plain = PlainEngine(self.asked, shape)
        self.pool = ThreadPoolExecutor(threads or THREADS * cores(), "agent")

    def exchange_all(self, msgs: Sequence[Broadcast]) -> list[Replies]:
        with all_ended() as answers:
            for agents, states, msg in zip(self.asked, self.plain.locals, msgs, strict=True):
                for asked, own in zip(agents, states, strict=True):
                    asked.answer = self.pool.submit(asked.agent.respond, own, msg)
                    answers.append(asked.answer)
        for answer in answers:  # before any agent of any run has moved on
            answer.result()
        return self.plain.exchange_all(msgs)

    def save(self, r: int) -> dict[str, Array]:
        return self.plain.save(r)

    def load(self, r: int, saved: dict[str, Array]) -> None:
        self.plain.load(r, saved)

    def close(self) -> None:
        """End the threads; what the agents write to is then free to be closed."""
        self.pool.shutdown(wait=True, cancel_futures=True)
