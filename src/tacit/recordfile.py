"""A file of sealed records, one a line: appended, synced to disk, and found again by a key.

A line that a killed process left without its end is dropped, and its run is done again. A record that was edited is
refused, and its run named. Several processes may add to one file: each waits for the others, and keeps what they wrote.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tacit import record
from tacit.errors import RecordError
from tacit.jsontext import Values
from tacit.lock import locked


class RecordFile:
    """The records of a file by key, the hash of their specs by default. A new record is on disk before `add` returns.

    `accept` is called with each record and the place that errors name: it returns the record to keep, or refuses it.
    """

    def __init__(
        self,
        path: Path,
        key: Callable[[Values], str] = lambda one: str(one["spec_hash"]),
        accept: Callable[[Values, str], Values] = lambda one, _where: one,
    ) -> None:
        self.path, self._key, self._accept = path, key, accept
        self.records: dict[str, Values] = {}
        self._size, self._before_next = 0, b""  # bytes of whole lines, and what must stand between them and the next
        if path.exists():
            self._read()

    def __contains__(self, key: str) -> bool:
        return key in self.records

    def __getitem__(self, key: str) -> Values:
        return self.records[key]

    def __iter__(self) -> Iterator[Values]:
        return iter(self.records.values())

    def add(self, new: Iterable[Values]) -> None:
        """Append sealed records; a run that is there already keeps its record."""
        accepted = [self._accept(one, str(self.path)) for one in new]
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.touch()
            with locked(self.path, wait=True):
                self._append(accepted)
        except OSError as error:
            raise RecordError(f"cannot write {self.path}: {error.strerror}. Name another place for records.") from None

    def _append(self, accepted: Iterable[Values]) -> None:
        with self.path.open("ab") as file:
            if file.tell() != self._size:  # another process wrote meanwhile, or was killed while it wrote
                self._read()
                file.truncate(self._size)
            fresh: dict[str, Values] = {}
            for one in accepted:
                if (key := self._key(one)) not in self:
                    fresh.setdefault(key, one)
            text = self._before_next + record.lines(fresh.values()).encode()
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        self._size, self._before_next = self._size + len(text), b""
        self.records |= fresh

    def _read(self) -> None:
        self.records = {}
        for one in record.read(self.path, self._whole_lines):
            kept = self._accept(one, str(self.path))
            if self.records.setdefault(self._key(kept), kept) != kept:
                name = kept.get("name", "a run")
                raise RecordError(f"{self.path} holds two records of {name}: remove both, and run it again.")

    def _whole_lines(self, content: bytes) -> bytes:
        """The content of the file without half a line at its end; a whole record may lack the end of its line."""
        last = content.rfind(b"\n") + 1
        unended = _is_json(content[last:])  # an editor took the end away: half a line is no JSON
        self._size, self._before_next = (len(content), b"\n") if unended else (last, b"")
        return content[: self._size]


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True
