"""Several processes compute batches of runs at the same time."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from multiprocessing import connection
from pathlib import Path

from tacit.jsontext import Values
from tacit.run import sweep
from tacit.run.sweep import Load, Member
from tacit.run.train import Listener, nobody

Finish = Callable[[Sequence[Member], Path, Listener, Load], Iterator[Values]]


def spread(finish: Finish, n_jobs: int) -> Finish:
    """Return a `finish` that computes n_jobs batches at a time; the listener hears of every batch that ends."""
    return partial(_spread, finish, n_jobs)


def _spread(
    finish: Finish, n_jobs: int, members: Sequence[Member], out: Path, listener: Listener, load: Load
) -> Iterator[Values]:
    batches = [[member for member, _ in batch] for batch in sweep.batches(members, load, sweep.fresh)]
    done = 0
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(n_jobs, context, initializer=_go_with_the_parent) as pool:
        waiting = {pool.submit(_finish, finish, batch, out, load): batch for batch in batches}
        try:
            for future in as_completed(waiting):
                yield from future.result()
                done += sum(member.spec.run.rounds for member in waiting[future])
                listener(done, None)
        except BaseException:
            pool.shutdown(cancel_futures=True)  # running batches got the signal too, and save themselves
            raise


def _finish(finish: Finish, batch: Sequence[Member], out: Path, load: Load) -> list[Values]:
    return list(finish(batch, out, nobody, load))


def _go_with_the_parent() -> None:
    """End this process when its parent is killed: else two processes could write into one directory."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
