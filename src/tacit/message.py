"""Forms of messages: what the parameters of a query must be before anything is done with them.

A form sees a message and public constants. It never sees a record, so that no refusal depends on one. A query states
the form of its parameters, and the gate of a deployed agent (tacit.agent) holds every question to that form.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tacit.errors import Unfit
from tacit.types import LARGEST, Array

Body = dict[str, Any]  # the parts of a message, by name


class Part(Protocol):
    """One value of a message."""

    @property
    def size(self) -> int:
        """How many numbers it has."""

    def checked(self, name: str, value: object) -> Any:
        """Return the value, of its one type; raise Unfit for anything else."""
        ...


@dataclass(frozen=True)
class Numbers:
    """A float64 array of exactly this shape, no entry larger than `largest`."""

    shape: tuple[int, ...]
    largest: float = LARGEST

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def checked(self, name: str, value: object) -> Array:
        if type(value) is not np.ndarray or value.dtype != np.float64 or value.shape != self.shape:
            raise Unfit(f"{name} must be a float64 array of shape {self.shape}, got {_kind(value)}.")
        own = np.array(value, dtype=np.float64, order="C")  # a copy: the sender could change its own after the check
        if not np.abs(own).max(initial=0.0) <= self.largest:  # NaN is refused too
            raise Unfit(f"{name} is not finite, or has an entry beyond {self.largest:g}: there is no gradient.")
        return own


@dataclass(frozen=True)
class Form:
    """The parts of a message, by name: exactly these."""

    parts: Mapping[str, Part]

    @property
    def size(self) -> int:
        """How many numbers all parts have together."""
        return sum(part.size for part in self.parts.values())

    def checked(self, body: object) -> Body:
        """Return every part of the message, checked; raise Unfit if one is missing, unknown or not of its form."""
        if type(body) is not dict or any(type(name) is not str for name in body) or set(body) != set(self.parts):
            raise Unfit(f"a message has the parts {', '.join(self.parts)} and no others.")
        return {name: part.checked(name, body[name]) for name, part in self.parts.items()}


def fingerprint(t: int, body: Body) -> str:
    """The name of a checked message: a message with any other round, part or bit has another fingerprint."""
    digest = hashlib.sha256(json.dumps([t, sorted(body)]).encode())
    for name in sorted(body):
        value = np.ascontiguousarray(body[name])
        digest.update(json.dumps([value.dtype.str, list(np.shape(body[name]))]).encode() + value.tobytes())
    return digest.hexdigest()


def _kind(value: object) -> str:
    """Return the kind of a value that is refused. Its content comes from someone else, and is not repeated."""
    return f"{value.dtype.name} of shape {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__
