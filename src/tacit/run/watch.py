"""A last word where mpiexec ends this process because another rank has died.

mpiexec then sends SIGTERM, and SIGKILL a moment later. The main thread waits meanwhile inside MPI for an answer that
does not come, and no handler of Python runs there. The number of a signal is written to a pipe at once all the same: a
thread reads it, sees that nothing moves any more, and says what to do.
"""

from __future__ import annotations

import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

STUCK = 0.2  # seconds without an answer after the signal: mpiexec waits about a second before it kills


@contextmanager
def watched(done: Callable[[], int], last_word: Callable[[], str]) -> Iterator[None]:
    """Print the last word when a signal comes and `done` does not grow after it."""
    if threading.current_thread() is not threading.main_thread():  # signals are for the main thread alone
        yield
        return
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)

    def listen() -> None:
        while number := ours.recv(1):
            before = done()
            time.sleep(STUCK)
            if number[0] == signal.SIGTERM and done() == before:
                print(f"tacit: {last_word()}", file=sys.stderr, flush=True)

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    before = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        theirs.close()
        thread.join()
        ours.close()
