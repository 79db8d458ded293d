"""A method: init and run_round -> (state, info), what it promises, and how it is built from a budget and a choice."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

import numpy as np

from tacit.methods.promise import Promise
from tacit.methods.task import Task
from tacit.privacy.budget import calibrate
from tacit.privacy.release import GaussianRelease
from tacit.types import Array

Choice = Mapping[str, float]  # the constants that tuning may choose, by name


@dataclass(frozen=True, eq=False)
class State:
    """The model after t rounds, and what else the next round needs, by name; leading axis P where agents keep it."""

    t: int
    w: Array
    own: Mapping[str, Array] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Info:
    """What one would plot, and `seen`: everything that those who are not trusted saw of this round."""

    seen: tuple[Array, ...]
    sent: float  # bytes that an agent sent, on average, in float32


class Method(Protocol):
    """A way to train."""

    @property
    def rounds(self) -> int: ...

    def promise(self, task: Task) -> Promise:
        """What the rounds release; from public numbers of the task only."""
        ...

    def init(self, task: Task) -> State: ...

    def run_round(self, task: Task, state: State) -> tuple[State, Info]: ...


@dataclass(frozen=True)
class Budget:
    """A total for the whole run; epsilon = inf asks for no noise."""

    epsilon: float
    dp_delta: float = 1e-6

    @property
    def private(self) -> bool:
        return not math.isinf(self.epsilon)

    def multiplier(self, releases: int, rate: float = 1.0) -> float:
        """Of Gaussian noise, with which `releases` of it spend the budget; 0 without one."""
        return _multiplier(self.epsilon, self.dp_delta, releases, rate) if self.private else 0.0


@lru_cache(maxsize=1024)
def _multiplier(epsilon: float, dp_delta: float, releases: int, rate: float) -> float:
    found = calibrate(GaussianRelease(1.0, rate), epsilon, dp_delta, releases)
    assert isinstance(found, GaussianRelease)
    return found.multiplier


@dataclass(frozen=True)
class Entry:
    """One line of the registry. Every grid has TRIALS choices, the first of them the default."""

    name: str
    about: str
    build: Callable[[Task, Budget, Choice], Method]
    grid: tuple[Choice, ...]


TRIALS = 4


def start(task: Task, **own: Array) -> State:
    """Round zero, every variable zero."""
    return State(0, np.zeros(task.shape), own)


def model_bytes(task: Task, models: float = 1) -> float:
    """Of `models` arrays of J K float32 numbers."""
    return 4.0 * models * math.prod(task.shape)
