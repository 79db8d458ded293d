"""Runs on threads of their own whose questions are answered together.

A question waits until every run that has not left has asked one; the last of them answers all, in the order of the
runs. The n-th answer so serves the n-th question of every run that has as many: the scheduler has no say in it. While
a run waits, some other run neither waits nor has left, and it will ask or leave: nobody waits for ever.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Q = TypeVar("Q")
A = TypeVar("A")


class Rendezvous(Generic[Q, A]):
    """`answer` takes the questions of the runs that are left, in order."""

    def __init__(self, answer: Callable[[Sequence[Q]], Sequence[A]], n_runs: int) -> None:
        self.answer = answer
        self.here = set(range(n_runs))
        self.asked: dict[int, Q] = {}
        self.answered: dict[int, A | Exception] = {}
        self.turn = threading.Condition()

    def ask(self, run: int, question: Q) -> A:
        """The answer, or the error that answering met."""
        with self.turn:
            self.asked[run] = question
            self._answer_if_all_asked()
            self.turn.wait_for(lambda: run in self.answered)
            found = self.answered.pop(run)
        if isinstance(found, Exception):
            raise found
        return found

    def leave(self, run: int) -> None:
        """This run asks no more: the others do not wait for it."""
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
