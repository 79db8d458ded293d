"""The tasks: the same records for every tool, scaled from public constants alone."""

from __future__ import annotations

import gzip
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.peers.auc import auc
from tacit import data
from tacit.data import sources
from tacit.data.transform import with_intercept
from tacit.run import build
from tacit.run.presets import preset
from tacit.types import Array, Federation, Shard

EPSILON, DELTA, AGENTS = 1.0, 1e-6, 10
SCHEMA = Path(__file__).with_name("adult.toml")
VALIDATION = 6  # a sixth of every agent's records validates: 10,000 of MNIST
TESTED = 1 / 3  # of every hospital's patients, in each split of heart


class NoData(Exception):
    """The records of a task are not here."""


@dataclass(frozen=True, eq=False)
class Task:
    """Agents, a test set and a budget; records are as the sound preset makes them, of norm one at most."""

    name: str
    over: Federation
    plain: Federation | None = None  # the same records before tacit's features: columns as the schema codes them
    epsilon: float = EPSILON

    @property
    def pooled(self) -> Shard:
        """All training records in one place, for a tool that trusts a curator."""
        x, y = (np.concatenate([getattr(shard, part) for shard in self.over.shards]) for part in ("x", "y"))
        return Shard(x, y)

    @property
    def columns(self) -> Task:
        """The task on plain columns and an intercept, in place of tacit's features."""
        assert self.plain is not None
        return replace(self, over=with_intercept(self.plain))

    @property
    def longest(self) -> float:
        """The public bound on the norm of a record that its columns have."""
        assert self.over.longest is not None
        return self.over.longest[1]

    def test_error(self, score: Array) -> float:
        """The share of test records whose largest score is not that of their class."""
        return float((score.argmax(axis=1) != self.over.test.y).mean())

    def auc(self, score: Array) -> float | None:
        """The area under the ROC curve of the second class; None with more than two classes."""
        return auc(score[:, 1] - score[:, 0], self.over.test.y == 1) if self.over.n_classes == 2 else None

    def validating(self) -> Task:
        """The task to tune on: a part of the training records in the place of the test set.

        The part is drawn: a file may be sorted by class, as one hospital's is, and its end would be of one class.
        """
        rng = np.random.default_rng(0)
        held = [np.sort(rng.permutation(len(shard))[: len(shard) // VALIDATION]) for shard in self.over.shards]
        plain = None if self.plain is None else _holding_out(self.plain, held)
        return replace(self, over=_holding_out(self.over, held), plain=plain)


def _holding_out(over: Federation, held: list[Array]) -> Federation:
    """The federation with these records of each agent as its test set, and without them among the agents'."""
    tested = [shard.rows(rows) for shard, rows in zip(over.shards, held, strict=True)]
    test = Shard(np.concatenate([own.x for own in tested]), np.concatenate([own.y for own in tested]))
    rest = (np.setdiff1d(np.arange(len(shard)), rows) for shard, rows in zip(over.shards, held, strict=True))
    kept = tuple(shard.rows(rows) for shard, rows in zip(over.shards, rest, strict=True))
    return replace(over, shards=kept, test=test)


def load(name: str, adult: str | None, split: int = 0) -> Task:
    """A task by its name; `adult` is the directory of Adult's two tables, `split` says which patients of heart test."""
    loaded = {
        "mnist": lambda: data.load("mnist", agents=AGENTS),
        "mnist-pixels": lambda: data.load("mnist", agents=AGENTS),
        "adult": lambda: _adult(adult),
        "heart": lambda: _heart(split),
    }[name]()
    spec = preset("sound", "objt").with_values({"features.map": "none"} if name == "mnist-pixels" else {})
    return Task(name, build.transformed(spec, loaded), loaded if loaded.columns else None)


def _heart(split: int) -> Federation:
    """Four hospitals, each an agent; a part of each one's patients tests."""
    find_heart()
    return data.load("heart", seed=split, test_fraction=TESTED)


def check_there(name: str, adult: str | None) -> None:
    """Refuse a task whose records are not here."""
    if name == "adult":
        find_adult(adult)
    if name == "heart":
        find_heart()


def find_heart() -> None:
    """Refuse a version of tacit without the data."""
    if "heart" not in sources.NAMED:
        raise NoData("heart is not shipped with this version of tacit: take a later one.")


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
