"""A file of records: each run once, every line whole and of its spec."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tacit import record
from tacit.data.spec import DataSpec
from tacit.errors import RecordError, SpecError
from tacit.paper.artefact import key_of, spec_of
from tacit.run import toml
from tacit.run.directory import write_whole
from tacit.run.lock import locked
from tacit.run.spec import Spec

Values = dict[str, Any]


class Archive:
    """The records of a file by what names their runs. A new one is on disk before `add` returns, or not at all.

    Several processes may add to one file: each waits for the others, and keeps what they wrote.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.records: dict[str, Values] = _read(path) if path.exists() else {}

    def __contains__(self, key: str) -> bool:
        return key in self.records

    def __iter__(self) -> Iterator[Values]:
        return iter(self.records.values())

    @property
    def data(self) -> dict[DataSpec, tuple[int, int]]:
        """How many agents and records the data of the recorded runs had."""
        found: dict[DataSpec, tuple[int, int]] = {}
        for one in self:
            if "diverged" not in one:
                size = one["agents"], one["records"]
                if found.setdefault(Spec().with_values(spec_of(one)).data, size) != size:
                    raise RecordError(
                        f"{self.path}: {one['name']} is of {size[1]} records, and another run of the same data is not. "
                        "Remove the runs of other data."
                    )
        return found

    def add(self, new: Iterable[Values]) -> None:
        """Keep records; a run that is there already stays as it is."""
        kept = list(new)
        for one in kept:
            check(one, str(self.path))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with _alone(self.path):
            if self.path.exists() and self.path.read_bytes() != self._bytes():  # another process wrote meanwhile
                self.records |= _read(self.path)
            for one in kept:
                self.records.setdefault(_key(one), one)
            write_whole(self.path, lambda file: file.write(self._bytes()))

    def _bytes(self) -> bytes:
        return record.lines(self).encode()


def _read(path: Path) -> dict[str, Values]:
    found: dict[str, Values] = {}
    for one in record.read(path):
        check(one, str(path))
        one = completed(one)
        if found.setdefault(_key(one), one) != one:
            raise RecordError(f"{path} holds two records of {one['name']}: remove both, and run it again.")
    return found


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold the lock beside a file while the block lasts."""
    lock = path.with_name(f".{path.name}.lock")
    lock.touch()
    with locked(lock, wait=True):
        yield


def _key(one: Values) -> str:
    return key_of(Spec().with_values(spec_of(one)))


def completed(one: Values) -> Values:
    """The record with every key that specs have by now: a run from before a key had its default."""
    spec = toml.dumps(Spec().with_values(spec_of(one)))
    return one if spec == one["spec"] else record.sealed(one | {"spec": spec})


def check(one: Values, where: str) -> None:
    """Refuse a record that says another length, seed or algorithm than its spec, or another end than its curve."""
    name = one.get("name", "a run without a name")
    try:
        spec = spec_of(one)
        Spec().with_values(spec)
        fits = _fits(one, spec)
    except (LookupError, AttributeError, TypeError, SpecError):  # without a section, a key, or a list
        fits = False
    if not fits:
        raise RecordError(f"{where}: the record of {name} does not fit its spec. Run {name} again.")


def _fits(one: Values, spec: Values) -> bool:
    asked = spec["algorithm.name"], spec["run.rounds"], spec["run.seed"], spec["run.rounds"]
    if "diverged" in one:
        return True
    told = one["algorithm"], one["rounds"], one["seed"], one["curve"]["t"][-1]
    sized = one["agents"] > 0 and one["records"] > 0
    return sized and told == asked and record.ends(one["curve"]["test_error"], one["test_error"])
