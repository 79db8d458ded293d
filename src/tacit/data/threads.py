"""A function of each item in threads, with results in the order of the items."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import NoReturn, TypeVar

from tacit.machine import cores

T = TypeVar("T")
R = TypeVar("R")

THREADS = min(4, cores())  # the thread that finds the cells of a CSV file keeps three busy that read them


def pool() -> ThreadPoolExecutor:
    """Return the threads."""
    return ThreadPoolExecutor(THREADS)


def in_order(threads: ThreadPoolExecutor, function: Callable[[T], R], items: Iterator[T]) -> Iterator[R]:
    """Give function(item) of each item, a few of which are begun ahead.

    Errors come in order too, those of `items` as well: what is told of a file does not depend on who was faster.
    """

    def work() -> Iterator[Callable[[], R]]:
        try:
            for item in items:
                yield partial(function, item)
        except Exception as error:
            yield partial(_fail, error)

    ahead: deque[Future[R]] = deque()
    try:
        for piece in work():
            ahead.append(threads.submit(piece))
            if len(ahead) > 2 * THREADS:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    finally:
        for waiting in ahead:
            waiting.cancel()


def _fail(error: Exception) -> NoReturn:
    raise error
