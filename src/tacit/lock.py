"""A lock between processes: the system lets go of it however a process ends."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # not on Windows: there, one process at a time
    fcntl = None  # type: ignore[assignment]


@contextlib.contextmanager
def locked(path: Path, wait: bool) -> Iterator[bool]:
    """Hold the lock of a file or directory while the block lasts.

    False where another process holds it and we do not wait.
    """
    with contextlib.ExitStack() as opened:
        ours = True
        if fcntl is not None:
            descriptor = os.open(path, os.O_RDONLY)
            opened.callback(os.close, descriptor)
            ours = _taken(descriptor, wait)
            if not os.path.samestat(os.fstat(descriptor), os.stat(path)):  # removed, and made anew by another process
                ours = False
        yield ours


def _taken(descriptor: int, wait: bool) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        pass
    return True
