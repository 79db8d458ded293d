"""A tool that a user might pick, and what a run of it gives. Metadata need none of the tools installed."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any

from benchmarks.peers.task import Task
from tacit.types import Array

Constants = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Trained:
    """A model by its scores of the test records, and what its training took and promises."""

    score: Array  # (records of the test set, classes)
    seconds: float  # of training: wall clock, without loading, imports and `start_seconds`
    epsilon: float
    delta: float
    steps: str  # rounds or epochs, in words
    start_seconds: float = 0.0  # what must be up before training can begin, such as processes


@dataclass(frozen=True, eq=False)
class Peer:
    """One line of the table. `train` takes a task, a seed and constants; constants were found on the grid."""

    title: str
    trusts: str  # who sees records or their unprotected sums
    unit: str  # what one (epsilon, delta) protects
    accountant: str  # who states epsilon and delta
    train: Callable[[Task, int, Constants], Trained]
    constants: Mapping[str, Constants]  # data set -> what --tune found best
    grid: Mapping[str, Sequence[Any]]  # every combination is tried
    packages: tuple[str, ...] = ()  # on PyPI; the tool is skipped where one is not installed
    note: str = ""
    private: bool = True  # False: a ceiling, trained without noise
    settings: Callable[[], Mapping[str, Any]] = dict  # what else decides a run, such as a preset of tacit

    def missing(self) -> list[str]:
        """The packages that are not installed."""
        found = {distribution.name.lower() for distribution in importlib.metadata.distributions()}
        return [package for package in self.packages if package.lower() not in found]

    def versions(self) -> dict[str, str]:
        """Of the packages."""
        return {package: importlib.metadata.version(package) for package in self.packages}


PEERS = {
    "opacus": "benchmarks.peers.opacus_:PEER",
    "diffprivlib": "benchmarks.peers.diffprivlib_:PEER",
    "flower": "benchmarks.peers.flower_:PEER",
    "naive": "benchmarks.peers.naive_:PEER",
    "tacit": "benchmarks.peers.tacit_:AGENTS_ALONE",
    "tacit-secure-sum": "benchmarks.peers.tacit_:SECURE_SUM",
    "tacit-curator": "benchmarks.peers.tacit_:CURATOR",
}
# of the tables at several budgets; --tables tunes them in the same run
ON_TABLES = {
    "tacit": PEERS["tacit"],
    "tacit-secure-sum": PEERS["tacit-secure-sum"],
    "tacit-curator": PEERS["tacit-curator"],
    "dp-ebm": "benchmarks.peers.dp_ebm_:AS_IT_COMES",
    "dp-ebm-tuned": "benchmarks.peers.dp_ebm_:TUNED",
    "diffprivlib-features": "benchmarks.peers.diffprivlib_:FEATURES",
    "diffprivlib-columns": "benchmarks.peers.diffprivlib_:COLUMNS",
    "logistic-features": "benchmarks.peers.logistic_:FEATURES",
    "logistic-columns": "benchmarks.peers.logistic_:COLUMNS",
}

# of the figure of error against epsilon on MNIST (benchmarks/epsilon_figure.py)
ON_FIGURE = {
    "diffprivlib-budgets": "benchmarks.peers.diffprivlib_:AT_BUDGETS",
    "naive-budgets": "benchmarks.peers.naive_:AT_BUDGETS",
}


def find(name: str) -> Peer:
    """A peer by its name."""
    peer = resolve_name((PEERS | ON_TABLES | ON_FIGURE)[name])
    assert isinstance(peer, Peer)
    return peer
