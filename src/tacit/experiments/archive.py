"""A file of records: each run once, every line whole and of its spec."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tacit import record, tomltext
from tacit.errors import RecordError
from tacit.experiments.paper import key_of, spec_of
from tacit.experiments.spec import Spec
from tacit.experiments.store import write_whole

Values = dict[str, Any]


class Archive:
    """The records of a file by what names their runs. A new one is on disk before `add` returns, or not at all."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.records: dict[str, Values] = {}
        for one in record.read(path) if path.exists() else []:
            if self.records.setdefault(_key(one), one) != one:
                raise RecordError(f"{path} holds two records of {one['name']}: remove both, and run it again.")
            check(one, str(path))

    def __contains__(self, key: str) -> bool:
        return key in self.records

    def __iter__(self) -> Iterator[Values]:
        return iter(self.records.values())

    def add(self, new: Iterable[Values]) -> None:
        """Keep records; a run that is there already stays as it is."""
        for one in new:
            check(one, str(self.path))
            self.records.setdefault(_key(one), one)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self.path, lambda file: file.write(record.lines(self).encode()))


def _key(one: Values) -> str:
    return key_of(Spec().with_values(spec_of(one)))


def check(one: Values, where: str) -> None:
    """Refuse a record that says another length, seed or algorithm than its spec, or ends before its last round."""
    if "diverged" in one:
        return
    spec = tomltext.loads(one["spec"], f"{where}: the spec of {one['name']}")
    told = (one.get("algorithm"), one.get("rounds"), one.get("seed"), one.get("curve", {}).get("t", [None])[-1])
    rounds = spec["run"]["rounds"]
    if told != (spec["algorithm"]["name"], rounds, spec["run"]["seed"], rounds):
        raise RecordError(f"{where}: the record of {one['name']} does not fit its spec. Run {one['name']} again.")
