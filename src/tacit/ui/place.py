"""The one door to the files below the served directory: no path from a request, no link, nothing but plain files.

Every folder on the way is opened from the descriptor of the folder before it, without following links, so nothing that
is renamed or linked meanwhile leads outside. A pipe or a device is never read, and no file beyond a limit.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tacit.errors import RunDirectoryError
from tacit.lock import STOP, is_held

Parts = tuple[str, ...]  # the names of the folders from the served directory down

LARGEST = 64 << 20  # bytes of a file that is read whole
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FILE = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


class Unreadable(Exception):
    """A file that is not shown; the text says why, in a few words without a path of this machine."""


@dataclass(frozen=True)
class Stamp:
    """What tells one content of a file from another without reading it."""

    inode: int
    size: int
    mtime: int  # nanoseconds


class Place:
    """The served directory, open. `parts` come from its own listing (tacit.ui.index), never from a request."""

    def __init__(self, root: Path) -> None:
        if os.open not in os.supports_dir_fd:
            raise RunDirectoryError("tacit ui needs a system that opens files from folders (Linux, macOS).")
        try:
            self.root = root.resolve(strict=True)
            self._root = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise RunDirectoryError(f"cannot serve {root} ({reason}): give a directory of runs.") from None

    def close(self) -> None:
        os.close(self._root)

    @contextmanager
    def folder(self, parts: Parts) -> Iterator[int]:
        """Yield the descriptor of a folder."""
        opened = os.dup(self._root)
        try:
            for name in parts:
                _check(name)
                inner = _opened(name, _FOLDER, opened)
                os.close(opened)
                opened = inner
            yield opened
        finally:
            os.close(opened)

    @contextmanager
    def file(self, parts: Parts, name: str) -> Iterator[int]:
        """Yield the descriptor of a plain file."""
        _check(name)
        with self.folder(parts) as folder:
            opened = _opened(name, _FILE, folder)
        try:
            if not stat.S_ISREG(os.fstat(opened).st_mode):
                raise Unreadable(f"{name} is no plain file")
            yield opened
        finally:
            os.close(opened)

    def stamps(self, parts: Parts, names: Sequence[str]) -> dict[str, Stamp]:
        """Return what tells the contents of those of the files in a folder that are there, and plain."""
        try:
            with self.folder(parts) as folder:
                return {name: stamp for name in names if (stamp := _stamp(name, folder)) is not None}
        except Unreadable:
            return {}

    def stamp(self, parts: Parts, name: str) -> Stamp | None:
        """Return what tells the content of a plain file; None where there is none."""
        return self.stamps(parts, [name]).get(name)

    def read(self, parts: Parts, name: str, start: int = 0, most: int = LARGEST) -> bytes:
        """Return a file from a byte on; a file with more than `most` bytes from there is refused."""
        with self.file(parts, name) as file:
            return _bytes(file, name, start, most)

    def tail(self, parts: Parts, name: str, most: int) -> bytes:
        """Return the last bytes of a file."""
        with self.file(parts, name) as file:
            size = os.fstat(file).st_size
            return os.pread(file, most, max(0, size - most))

    @contextmanager
    def copied(self, parts: Parts, names: Sequence[str], most: int = LARGEST) -> Iterator[Path]:
        """Yield a private folder with copies of those of the files that are there.

        Readers that take a path read the copy: what they parse is what was checked, whatever is renamed meanwhile, and
        they can write and lock nothing that is not theirs.
        """
        made = Path(tempfile.mkdtemp(prefix="tacit-ui-"))
        try:
            for name in names:
                if self.stamp(parts, name) is not None:
                    (made / name).write_bytes(self.read(parts, name, most=most))
            yield made
        finally:
            shutil.rmtree(made, ignore_errors=True)

    def is_written(self, parts: Parts) -> bool:
        """Tell whether a process holds the lock of a folder, as whoever trains there does."""
        try:
            with self.folder(parts) as folder:
                return is_held(folder)
        except (OSError, Unreadable):
            return False

    def ask_to_stop(self, parts: Parts) -> None:
        """Put a request to stop into the folder of a run: the only thing that the page writes."""
        with self.folder(parts) as folder:
            try:
                os.close(os.open(STOP, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder))
            except FileExistsError:
                _ask_again(folder)
            except OSError as error:
                raise Unreadable(f"the request cannot be written ({error.strerror})") from None


def _ask_again(folder: int) -> None:
    """Renew a request that is there: the run may know it from before, and wait for another."""
    try:
        if not stat.S_ISREG(os.stat(STOP, dir_fd=folder, follow_symlinks=False).st_mode):
            reason = f"{STOP} in the run's folder is no plain file"
            raise Unreadable(f"nothing is stopped: {reason}; remove it and try again")
        os.utime(STOP, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        pass  # it was heard this moment
    except OSError as error:
        reason = f"{STOP} in the run's folder is somebody else's ({error.strerror})"
        raise Unreadable(f"the request cannot be renewed: {reason}; remove it and try again") from None


def shown(name: str) -> str:
    """Write a name of a file so that it can be shown: what cannot be printed, or reorders text, is spelled out."""
    whole = os.fsencode(name).decode("utf-8", "backslashreplace")
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in whole)


def _check(name: str) -> None:
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise Unreadable("no name of a file")


def _stamp(name: str, folder: int) -> Stamp | None:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except (OSError, ValueError):
        return None
    return Stamp(found.st_ino, found.st_size, found.st_mtime_ns) if stat.S_ISREG(found.st_mode) else None


def _opened(name: str, flags: int, folder: int) -> int:
    try:
        return os.open(name, flags, dir_fd=folder)
    except OSError as error:
        raise Unreadable(f"{shown(name)}: {error.strerror}") from None


def _bytes(file: int, name: str, start: int, most: int) -> bytes:
    size = os.fstat(file).st_size - start
    if size > most:
        raise Unreadable(f"{shown(name)} has {size >> 20} MB: more than {most >> 20} MB are not read")
    pieces, at = [], start
    while piece := os.pread(file, 1 << 20, at):
        at += len(piece)
        if at - start > most:  # it grows while it is read
            break
        pieces.append(piece)
    return b"".join(pieces)
