"""Between processes: a lock that the system frees however a process ends, and a file that asks one to stop."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

try:
    import fcntl
except ImportError:  # not on Windows: there, one process at a time
    fcntl = None  # type: ignore[assignment]


GLANCE = 0.05  # seconds after which we try again: `is_held` of another process has the lock for microseconds
STOP = "stop"  # the name of the file, in a directory, that asks whoever has the lock of the directory to stop
LOOK = 0.2  # seconds between two looks for that file


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


def is_held(descriptor: int) -> bool:
    """Tell whether a process holds the lock of an open file or directory; the lock is free again at once."""
    if fcntl is not None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        except BlockingIOError:
            return True
        except OSError:  # a file system without locks
            pass
    return False


def _taken(descriptor: int, wait: bool) -> bool:
    for pause in (0.0, GLANCE):
        time.sleep(pause)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            continue
        except OSError:  # a file system without locks
            pass
        return True
    return False


class StopRequests:
    """The requests to stop in some directories, whose locks this process holds. What was there before is removed.

    What cannot be removed (a file of another owner, in a folder with the sticky bit) is no request until it changes: it
    would stop every later process too.
    """

    def __init__(self, directories: Sequence[Path]) -> None:
        self._files = [directory / STOP for directory in directories]
        self._looked = -LOOK
        self._old: dict[Path, tuple[int, int]] = {}
        self.forget()

    def found(self, now: float) -> bool:
        """Tell whether there is a request; looks are LOOK seconds apart, so that a round pays nothing for them."""
        if now - self._looked < LOOK:
            return False
        self._looked = now
        return any(_stamp(file) not in (None, self._old.get(file)) for file in self._files)

    def forget(self) -> None:
        """Remove the requests: they were heard, or were for an earlier process."""
        for file in self._files:
            if (stamp := _stamp(file)) is not None:
                try:
                    file.unlink()
                except OSError:
                    self._old[file] = stamp


def _stamp(path: Path) -> tuple[int, int] | None:
    """Return what tells one plain file from another; None for anything else, which could not be removed as simply."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return (found.st_ino, found.st_mtime_ns) if stat.S_ISREG(found.st_mode) else None
