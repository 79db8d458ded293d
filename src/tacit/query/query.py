"""What a query is: a public description of a value, with a proof of how far one record moves it; and its evaluators.

    sensitivity = bound(norm, adjacency) * allowance of the evaluator

`bound` holds for exact arithmetic, and its proof is in the docstring of each query. `allowance` is a factor that bounds
what the evaluator's rounding adds. Both are functions of public numbers: the description, and the number of records.

The order of an answer is fixed: parameters are checked, then records are read. After the check no record makes a value
fail, and an absent record contributes zero, whatever its row holds.
"""

from __future__ import annotations

import enum
import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import numpy as np

from tacit.errors import DataError, IncompatibleError, SpecError
from tacit.message import Body, Form
from tacit.problem.sensitivity import Adjacency
from tacit.query.records import Reader, Reads, Records
from tacit.types import Array, Norm, fits

SMALLEST_CONSTANT, LARGEST_CONSTANT = 1e-50, 1e50
UNIT_ROUNDOFF = 2.0**-53

Value: TypeAlias = Callable[[Body], Array]  # checked parameters -> value; threads may ask at the same time


class Query(Protocol):
    """A frozen dataclass that refuses wrong parameters when it is made, and reads no record."""

    @property
    def reads(self) -> Reads:
        """The view of the records that it reads."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a model that it is about; (J, K) if it reads rows."""

    @property
    def size(self) -> int:
        """How many numbers a value has."""

    @property
    def additive(self) -> bool:
        """Whether every agent is asked the same, and value(A + B) = value(A) + value(B) up to rounding."""

    @property
    def parameters(self) -> Form:
        """What one question may hold: the allowed set of its parameters."""

    @property
    def evaluator(self) -> Evaluator[Any]:
        """The evaluator in NumPy; another may be injected."""

    def bound(self, norm: Norm, adjacency: Adjacency) -> float:
        """How far two neighbours' values are apart in l1 or l2, in exact arithmetic; the docstring proves it."""

    def check(self, reader: Reader) -> None:
        """Refuse records of another form, such as labels out of range, when an agent is built."""


Q = TypeVar("Q", bound=Query)


@dataclass(frozen=True, eq=False)
class Evaluator(Generic[Q]):
    """Who computes a query's values over the records of one agent.

    `prepare` may pack the records once. `allowance` is one plus what the rounding of two neighbours' values adds to
    their distance, as a share of the bound, for so many records.
    """

    prepare: Callable[[Q, Reader], Value]
    allowance: Callable[[Q, int], float]


@dataclass(frozen=True, eq=False)
class AgentQuery(Generic[Q]):
    """A query of the records of one agent."""

    query: Q
    records: Records
    evaluator: Evaluator[Q]

    @property
    def _reader(self) -> Reader:
        return Reader(self.records, self.query.reads)

    def sensitivity(self, norm: Norm, adjacency: Adjacency) -> float:
        """How far one record moves a value, as it is computed."""
        return self.query.bound(norm, adjacency) * self.evaluator.allowance(self.query, len(self.records))

    def check(self) -> None:
        """Refuse records that the query cannot be asked of."""
        self.query.check(self._reader)

    @cached_property
    def value(self) -> Value:
        """The values of checked parameters."""
        self.check()
        return self.evaluator.prepare(self.query, self._reader)

    def answer(self, parameters: object) -> Array:
        """The value of parameters that anybody may have sent; Unfit before any record is read."""
        checked = self.query.parameters.checked(parameters)
        with np.errstate(all="ignore"):  # a flag that a record raises is no reason to stop
            return self.value(checked)


def described(value: object) -> Any:
    """Return a description as plain values, the same on two sides that agree; floats are in hexadecimal digits."""
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value).hex()
    if isinstance(value, tuple):
        return [described(one) for one in value]
    kind = type(value)
    if not is_dataclass(value) or isinstance(value, type) or not kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise IncompatibleError(f"{kind.__name__} cannot be compared with another side's: make it a frozen dataclass.")
    own = {one.name: described(getattr(value, one.name)) for one in fields(value)}
    return {"is": f"{kind.__module__}.{kind.__qualname__}"} | own


def fingerprint(query: Query) -> str:
    """Return the hash of a description: any other parameter has another one."""
    return hashlib.sha256(json.dumps(described(query), sort_keys=True).encode()).hexdigest()


def check_constant(what: str, value: object) -> None:
    """Refuse a constant so far out that float64 arithmetic with it could overflow, or that is no number."""
    if not isinstance(value, int | float | np.integer | np.floating) or isinstance(value, bool):
        raise SpecError(f"the {what} of a query is a number, got {type(value).__name__}: give a float.")
    number = value.item() if isinstance(value, np.generic) else value
    if not SMALLEST_CONSTANT <= number <= LARGEST_CONSTANT:  # NaN is refused too
        raise IncompatibleError(
            f"a deployed agent takes constants from {SMALLEST_CONSTANT:g} to {LARGEST_CONSTANT:g}, and the {what} of "
            f"its query is {number!r:.20}: change it."
        )


def plain_numbers(query: object) -> None:
    """Make NumPy's numbers in a new description Python's: arithmetic in a narrow type would round a bound down."""
    for name, value in list(vars(query).items()):
        object.__setattr__(query, name, _plain(value))


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_plain(one) for one in value)
    return value.item() if isinstance(value, np.generic) else value


def check_shape(shape: object, most: int) -> None:
    """Refuse what is no shape (J, K) of at most so many numbers."""
    two = isinstance(shape, tuple) and len(shape) == 2 and all(_counts(n) for n in shape)
    if not two or not isinstance(shape, tuple) or math.prod(shape) > most:
        raise SpecError(f"the shape of a query is (features, scores), whole numbers with a product of 1 to {most}.")


def _counts(n: object) -> bool:
    return isinstance(n, int | np.integer) and not isinstance(n, bool) and int(n) > 0


def check_rows(reader: Reader, shape: tuple[int, ...]) -> None:
    """Refuse rows or labels that do not fit a model of shape (J, K)."""
    for width, y in reader.outcomes():
        if width != shape[0] or not fits(y, shape[1]):
            raise DataError(f"records and labels do not fit a model of shape {shape}: encode labels as 0..K-1.")
