"""A finished run in one line of JSON, under a seal: a record that was edited, or is not of its spec, is refused.

    spec        the complete spec of the run, as TOML
    spec_hash   names the run: equal specs are the same run
    curve       lists of equal length, one a measured quantity, thinned
    seal        a digest of all the rest. It shows an edit, not a forger: whoever edits can seal again

The result.json of a run's directory is under such a seal too, with the hashes of the files it is the result of.

A RecordFile holds records, one a line: appended, synced to disk, and found again by a key. A line that a killed process
left without its end is dropped, and its run is done again. A record that was edited is refused, and its run named.
Several processes may add to one file: each waits for the others, and keeps what they wrote.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tacit import jsontext, measures
from tacit.errors import RecordError, RunDirectoryError
from tacit.jsontext import Values
from tacit.lock import locked

NUMBERS = (*measures.KEYS, "objective", "consensus_violation", "seconds", "agents", "records")
FILES = {"spec_hash": "spec.toml", "rounds_hash": "rounds.jsonl", "model_hash": "model.npz"}


def spec_hash(spec: str) -> str:
    """The hash that names a run."""
    return _hash(spec.encode())


def sealed(record: Values) -> Values:
    """The record with its spec_hash and its seal."""
    return with_seal(record | {"spec_hash": spec_hash(record["spec"])})


def with_seal(values: Values) -> Values:
    """Values as JSON has them, with a seal over all of them."""
    plain = json.loads(jsontext.dumps({name: value for name, value in values.items() if name != "seal"}))
    return dict(plain) | {"seal": _digest(plain)}


def is_whole(values: Values) -> bool:
    """Whether the seal is the digest of all other values."""
    try:
        return bool(values.get("seal") == _digest({name: value for name, value in values.items() if name != "seal"}))
    except ValueError:  # NaN or infinity, which no seal covers
        return False


def result_of(directory: Path, result: Values) -> Values:
    """A result with the hashes of the files in its directory, sealed."""
    return with_seal(result | {key: _hash_of(directory / file) for key, file in FILES.items()})


def check_result(directory: Path, result: Values) -> None:
    """Refuse a result that was edited, or beside which a file was; earlier versions kept no hash of the model."""
    own, name = directory / "result.json", directory.name
    again = (
        f"Move it aside, and run {name} again: tacit train --resume {directory} "
        "(what drew exact noise cannot be run again there: train anew)."
    )
    if "seal" not in result:
        raise RunDirectoryError(f"{own} has no seal: it is of an earlier version. {again}")
    if not is_whole(result):
        raise RunDirectoryError(f"{own} was changed after it was written. {again}")
    changed = [file for key, file in FILES.items() if key in result and result[key] != _hash_of(directory / file)]
    if "spec.toml" in changed:
        raise RunDirectoryError(f"{directory}/spec.toml was changed after the run: restore it, or run {name} again.")
    if changed:
        raise RunDirectoryError(f"{directory / changed[0]} was changed after {own}, its result. {again}")


def lines(records: Iterable[Values]) -> str:
    """Records as JSON lines."""
    return "".join(jsontext.dumps(record) + "\n" for record in records)


def read(path: Path, kept: Callable[[bytes], bytes] = bytes) -> list[Values]:
    """The records of a file, or of the part of its bytes that is `kept`; each of them whole."""
    try:
        text = kept(path.read_bytes()).decode("utf-8-sig")  # some editors put a mark before the first record
    except OSError as error:
        raise RecordError(f"cannot read {path}: {error.strerror}. Check the path.") from None
    except UnicodeDecodeError as error:
        raise RecordError(f"{path} holds no records: {error}.") from None
    return [checked(line, f"{path}, line {n}") for n, line in enumerate(text.splitlines(), 1) if line.strip()]


def checked(line: str, where: str) -> Values:
    """A record whose seal holds; else an error that names the run to repeat."""
    try:
        record = loads(line)
        json.dumps(record, ensure_ascii=False, allow_nan=False).encode()  # no NaN, no infinity, no half a character
    except (ValueError, RecursionError):
        named = re.search(r'"name": "([^"]+)"', line)
        told = named[1] if named else "it"
        raise RecordError(f"{where}: not a whole record. Remove the line, and run {told} again.") from None
    if not isinstance(record, dict) or not isinstance(record.get("spec"), str):
        raise RecordError(f"{where}: a record without a spec. Run it again with this version of tacit.")
    name = record.get("name", "a run without a name")
    if record.get("spec_hash") != spec_hash(record["spec"]):
        raise RecordError(f"{where}: {name} is not the record of the spec it names. Run {name} again.")
    if not is_whole(record):
        raise RecordError(f"{where}: {name} was changed after it was written. Run {name} again.")
    if not _typed(record):
        raise RecordError(f"{where}: {name} has no number where one belongs. Run {name} again.")
    return record


def loads(text: str) -> Any:
    """JSON in which no name stands twice: another reader might take the other value."""
    return json.loads(text, object_pairs_hook=_once)


def _once(pairs: Sequence[tuple[str, Any]]) -> Values:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice")
    return found


def _typed(record: Values) -> bool:
    """Whether every value that must be a number is a number or null."""
    curve = record.get("curve") or {}
    if not isinstance(curve, dict) or not all(isinstance(column, list) for column in curve.values()):
        return False
    values = [record.get(key) for key in NUMBERS]
    values += [value for column in curve.values() for value in column]
    return all(value is None or (type(value) in (int, float) and abs(value) <= sys.float_info.max) for value in values)


def ends(curve: Sequence[float | None], value: float | None) -> bool:
    """Whether a curve, kept to six digits, ends with this value; what was not measured is None in both."""
    last = curve[-1]
    if value is None or last is None:
        return value is last
    return math.isclose(value, last, rel_tol=1e-5)


def _digest(record: Values) -> str:
    return _hash(json.dumps(record, sort_keys=True, allow_nan=False).encode())


def _hash_of(file: Path) -> str | None:
    return _hash(file.read_bytes()) if file.is_file() else None


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


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
            text = self._before_next + lines(fresh.values()).encode()
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        self._size, self._before_next = self._size + len(text), b""
        self.records |= fresh

    def _read(self) -> None:
        self.records = {}
        for one in read(self.path, self._whole_lines):
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
