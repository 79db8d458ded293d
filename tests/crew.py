"""Several processes that read a source together, as threads of one: a Share for each."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from tacit.engine.blocks import shares

T = TypeVar("T")


class Member:
    """One of them."""

    def __init__(self, rank: int, size: int, told: list[Any], meet: threading.Barrier) -> None:
        self.rank, self.size, self.told, self.meet = rank, size, told, meet
        self.leads, self.alone = rank == 0, size == 1

    def mine(self, counts: Sequence[int]) -> range:
        return shares(counts, self.size)[self.rank]

    def together(self, value: Any = None) -> list[Any]:
        self.told[self.rank] = value
        self.meet.wait(20)
        found = list(self.told)
        self.meet.wait(20)
        return found


def crew(size: int, work: Callable[[Member], T]) -> list[T]:
    """work(member) of every member, or the first error."""
    told: list[Any] = [None] * size
    meet = threading.Barrier(size)

    def one(rank: int) -> T:
        try:
            return work(Member(rank, size, told, meet))
        except BaseException:
            meet.abort()
            raise

    with ThreadPoolExecutor(size) as threads:
        found = [threads.submit(one, rank) for rank in range(size)]
    errors = [own.exception() for own in found if own.exception()]
    for error in errors:
        if error is not None and not isinstance(error, threading.BrokenBarrierError):
            raise error
    return [own.result() for own in found]
