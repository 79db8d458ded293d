"""What may cross the wall between a server and an agent: forms that a message must fit before anything is done with it.

A form looks at a message, at the number of its round and at public constants. It never sees a record, so nothing that
it refuses can tell of one. A method states the form of what it is asked and of what it answers; the gate of a deployed
agent (tacit.guarded) holds every message to that form.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tacit.errors import Unfit
from tacit.schedule import Schedule
from tacit.types import LARGEST, Array

Body = dict[str, Any]  # the parts of a message, by name


class Part(Protocol):
    """One value of a message."""

    def checked(self, name: str, value: object, t: int) -> Any:
        """The value, of its one type, for round t; Unfit where it is anything else."""
        ...


@dataclass(frozen=True)
class Numbers:
    """A float64 array of exactly this shape, no entry larger than `largest`."""

    shape: tuple[int, ...]
    largest: float = LARGEST

    def checked(self, name: str, value: object, t: int) -> Array:  # noqa: ARG002
        if type(value) is not np.ndarray or value.dtype != np.float64 or value.shape != self.shape:
            raise Unfit(f"{name} must be a float64 array of shape {self.shape}, got {_kind(value)}.")
        own = np.array(value, dtype=np.float64, order="C")  # a copy: the sender could change its own after the check
        if not np.abs(own).max(initial=0.0) <= self.largest:  # NaN is refused too
            raise Unfit(f"{name} is not finite, or has an entry beyond {self.largest:g}: there is no gradient.")
        return own


@dataclass(frozen=True)
class Scheduled:
    """The number that an agreed schedule has for the round, and no other."""

    schedule: Schedule

    def checked(self, name: str, value: object, t: int) -> float:
        agreed = float(self.schedule(t))
        if type(value) not in (float, np.float64) or value != agreed:
            raise Unfit(f"{name} of round {t} was agreed to be {agreed:g}, got {_kind(value)}.")
        return agreed


@dataclass(frozen=True)
class Earlier:
    """The number of a round before this one, 0 for none."""

    def checked(self, name: str, value: object, t: int) -> int:
        if type(value) is not int or not 0 <= value < t:
            raise Unfit(f"{name} is a round before round {t}, or 0, got {_kind(value)}.")
        return value


@dataclass(frozen=True)
class Whole:
    """A whole number from 0 to `most`."""

    most: int

    def checked(self, name: str, value: object, t: int) -> int:  # noqa: ARG002
        if type(value) is not int or not 0 <= value <= self.most:
            raise Unfit(f"{name} is a whole number from 0 to {self.most}, got {_kind(value)}.")
        return value


@dataclass(frozen=True)
class Names:
    """Names that can be printed, in order, each once."""

    def checked(self, name: str, value: object, t: int) -> tuple[str, ...]:  # noqa: ARG002
        fit = type(value) is tuple and all(type(one) is str and one and one.isprintable() for one in value)
        if not fit or not isinstance(value, tuple) or list(value) != sorted(set(value)):
            raise Unfit(f"{name} are names in their order, each once, got {_kind(value)}.")
        return value


@dataclass(frozen=True)
class Form:
    """The parts of a message, by name: exactly these."""

    parts: Mapping[str, Part]

    def checked(self, body: object, t: int) -> Body:
        """Every part of the message, checked; Unfit where one is missing, unknown or not of its form."""
        if type(body) is not dict or any(type(name) is not str for name in body) or set(body) != set(self.parts):
            raise Unfit(f"a message has the parts {', '.join(self.parts)} and no others.")
        return {name: part.checked(name, body[name], t) for name, part in self.parts.items()}


def fingerprint(t: int, body: Body) -> str:
    """The name of a checked message: a message with any other round, part or bit has another fingerprint."""
    digest = hashlib.sha256(json.dumps([t, sorted(body)]).encode())
    for name in sorted(body):
        value = np.ascontiguousarray(body[name])
        digest.update(json.dumps([value.dtype.str, list(np.shape(body[name]))]).encode() + value.tobytes())
    return digest.hexdigest()


def _kind(value: object) -> str:
    """The kind of a value that is refused. Its content comes from someone else, and is not repeated."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype.name} of shape {value.shape}"
    return f"{value:g}" if type(value) in (float, np.float64) else type(value).__name__
