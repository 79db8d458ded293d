"""The two tasks: the same records for every tool, scaled from public constants alone."""

from __future__ import annotations

import gzip
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tacit import data
from tacit.run import build
from tacit.run.presets import preset
from tacit.types import Array, Federation, Shard

EPSILON, DELTA, AGENTS = 1.0, 1e-6, 10
SCHEMA = Path(__file__).with_name("adult.toml")
VALIDATION = 6  # the last sixth of every agent's records validates: 10,000 of MNIST


class NoData(Exception):
    """The records of a task are not here."""


@dataclass(frozen=True, eq=False)
class Task:
    """Ten agents and a test set; rows have norm one (less one part in a million), as the sound preset scales them."""

    name: str
    over: Federation

    @property
    def pooled(self) -> Shard:
        """All training records in one place, for a tool that trusts a curator."""
        x, y = (np.concatenate([getattr(shard, part) for shard in self.over.shards]) for part in ("x", "y"))
        return Shard(x, y)

    def test_error(self, score: Array) -> float:
        """The share of test records whose largest score is not that of their class."""
        return float((score.argmax(axis=1) != self.over.test.y).mean())

    def validating(self) -> Task:
        """The task to tune on: a part of the training records in the place of the test set."""
        cuts = [len(shard) - len(shard) // VALIDATION for shard in self.over.shards]
        held = [shard.rows(slice(cut, None)) for shard, cut in zip(self.over.shards, cuts, strict=True)]
        test = Shard(np.concatenate([own.x for own in held]), np.concatenate([own.y for own in held]))
        kept = tuple(shard.rows(slice(cut)) for shard, cut in zip(self.over.shards, cuts, strict=True))
        return replace(self, over=replace(self.over, shards=kept, test=test))


def load(name: str, adult: str | None) -> Task:
    """A task by its name; `adult` is the directory of Adult's two tables."""
    loaded = data.load("mnist", agents=AGENTS) if name == "mnist" else _adult(adult)
    return Task(name, build.transformed(preset("sound", "objt"), loaded))


def find_adult(directory: str | None) -> dict[str, Path]:
    """The files of the training and the test table."""
    if directory is None:
        raise NoData("Adult is not shipped: give the directory of its train.csv(.gz) and test.csv(.gz), --adult DIR.")
    found = {
        part: next((path for end in (".csv", ".csv.gz") if (path := Path(directory, part + end)).is_file()), None)
        for part in ("train", "test")
    }
    for part, path in found.items():
        if path is None:
            raise NoData(f"{directory} holds no {part}.csv and no {part}.csv.gz: --adult DIR names Adult's directory.")
    return {part: path for part, path in found.items() if path is not None}


def _adult(directory: str | None) -> Federation:
    with tempfile.TemporaryDirectory() as folder:
        tables = {part: _plain(path, Path(folder, f"{part}.csv")) for part, path in find_adult(directory).items()}
        return data.load(str(tables["train"]), test=str(tables["test"]), schema=str(SCHEMA), agents=AGENTS)


def _plain(path: Path, unpacked: Path) -> Path:
    """The table without gzip, which tacit does not read."""
    if path.suffix != ".gz":
        return path
    with gzip.open(path) as packed, unpacked.open("wb") as out:
        shutil.copyfileobj(packed, out)
    return unpacked
