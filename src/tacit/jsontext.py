"""JSON that every reader takes: it has no infinity and no NaN, so null stands for them.

Frozen dataclasses are objects of JSON by `described`, and are read again by `read`, which refuses a field that is
missing, unknown or of another type. Types of fields: numbers, texts, members of an Enum (by their names in small
letters), tuples of these, None where the annotation says so, and what `own` names. Nothing is converted, and nothing
has a default.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from enum import Enum
from types import NoneType, UnionType
from typing import Any, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

from tacit.errors import RecordError, TacitError

Values: TypeAlias = dict[str, Any]  # what an object of JSON, a record or a spec says, by name
Own: TypeAlias = Mapping[Any, tuple[Callable[[Any], Any], Callable[[Any], Any]]]  # a type: how it is written and read
Kind = TypeVar("Kind")

LARGEST = 2**53  # of whole numbers


def dumps(value: Any, indent: int | None = None) -> str:
    """The value as JSON, numbers that are not finite as null."""
    return json.dumps(_finite(value), indent=indent, allow_nan=False)


def canonical(value: Any) -> str:
    """JSON of which every value has one spelling only."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def described(value: Any, own: Own) -> Values:
    """Return the fields of a dataclass as an object of JSON."""
    return {one.name: _finite(_plain(getattr(value, one.name), own)) for one in fields(value)}


def read(kind: type[Kind], values: object, own: Own) -> Kind:
    """Return the dataclass that `described` described; RecordError says which field is wrong."""
    hints = get_type_hints(kind)
    if not isinstance(values, dict):
        raise RecordError("it is no object of JSON")
    if odd := sorted(map(str, values.keys() ^ hints.keys())):
        raise RecordError(f"it {'lacks' if odd[0] in hints else 'has an unknown field,'} {odd[0][:40]!r}")
    found = {}
    for name, hint in hints.items():
        try:
            found[name] = _typed(hint, values[name], own)
        except (AttributeError, TypeError, ValueError, KeyError, OverflowError, RecursionError, TacitError):
            raise RecordError(f"its {name} is of another kind, or out of range") from None
    try:
        return kind(**found)
    except ValueError as error:
        raise RecordError(str(error)) from None


def _plain(value: Any, own: Own) -> Any:
    if isinstance(value, Enum):
        return value.name.lower()
    if isinstance(value, tuple | list):
        return [_plain(one, own) for one in value]
    return next((write(value) for kind, (write, _) in own.items() if isinstance(value, kind)), value)


def _typed(hint: Any, value: Any, own: Own) -> Any:
    """Return the value that JSON gives for a type; an exception if it gives none."""
    origin, parts = get_origin(hint), get_args(hint)
    if hint in own:
        return own[hint][1](value)
    if origin in (Union, UnionType):
        (other,) = (part for part in parts if part is not NoneType)
        return None if value is None else _typed(other, value, own)
    if origin in (tuple, Sequence):
        if not isinstance(value, list):
            raise TypeError
        each = len(parts) == 1 or parts[-1] is Ellipsis  # Sequence[X] or tuple[X, ...]
        kinds = [parts[0]] * len(value) if each else parts
        return tuple(_typed(kind, one, own) for kind, one in zip(kinds, value, strict=True))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return {one.name.lower(): one for one in hint}[value]
    return {float: number, int: _whole, str: _text}[hint](value)


def number(value: Any) -> float:
    """Return a finite number of JSON as a float; an exception for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(found := float(value)):
        raise TypeError
    return found


def _whole(value: Any) -> int:
    if type(value) is not int or not 0 <= value < LARGEST:
        raise TypeError
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise TypeError
    value.encode()  # half a character is no text
    return value
