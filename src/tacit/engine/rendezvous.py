"""Answers the questions of several runs together, while each run has a thread of its own.

A question waits until every run that has not left has asked one. The thread of the last run then answers all questions,
in the order of the runs. So the n-th pass serves the n-th question of every run that asks so many, whatever the
scheduler does. Nobody waits for ever: while a run waits, another run computes, and that run will ask or leave.
tacit.compare puts SharedSums (tacit.engine.sums) behind it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Q = TypeVar("Q")
A = TypeVar("A")


class Rendezvous(Generic[Q, A]):
    """Where runs meet; `answer` takes the questions of the runs that have not left, in order."""

    def __init__(self, answer: Callable[[Sequence[Q]], Sequence[A]], n_runs: int) -> None:
        self.answer = answer
        self.here = set(range(n_runs))
        self.asked: dict[int, Q] = {}
        self.answered: dict[int, A | Exception] = {}
        self.turn = threading.Condition()

    def ask(self, run: int, question: Q) -> A:
        """Returns the answer to this run's question, or raises the error that answering met."""
        with self.turn:
            self.asked[run] = question
            self._answer_if_all_asked()
            self.turn.wait_for(lambda: run in self.answered)
            found = self.answered.pop(run)
        if isinstance(found, Exception):
            raise found
        return found

    def leave(self, run: int) -> None:
        """Tell that this run asks no more, so that the others do not wait for it."""
        with self.turn:
            self.here.discard(run)
            self._answer_if_all_asked()

    def _answer_if_all_asked(self) -> None:
        if not self.asked or self.asked.keys() != self.here:
            return
        runs = sorted(self.asked)
        try:
            found: Sequence[A | Exception] = self.answer([self.asked[run] for run in runs])
        except Exception as error:
            found = [error] * len(runs)
        self.asked.clear()
        self.answered.update(zip(runs, found, strict=True))
        self.turn.notify_all()
