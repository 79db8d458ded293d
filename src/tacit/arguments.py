"""Check arguments that Python code gives. An error says what is wrong with the type, and prints no contents."""

from __future__ import annotations

import math
from numbers import Real
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import DataError, SpecError, printable


def path_text(name: str, value: object, takes: str = "a path") -> str:
    """Return a path that an argument was given as text; refuse anything else by its type."""
    if not isinstance(value, str | PurePath) or len(str(value).splitlines()) > 1:
        raise SpecError(f"{name} takes {takes}, got {printable(value)}.")
    return str(value)


def two_numbers(name: str, value: Any) -> tuple[float, float]:
    """Return the two numbers of a range; refuse anything else by its type."""
    if not (isinstance(value, tuple | list) and len(value) == 2 and all(isinstance(end, Real) for end in value)):
        raise SpecError(f"{name} takes two numbers, (lo, hi), got {printable(value)}.")
    return float(value[0]), float(value[1])


def numbers(what: str, values: Any, dtype: Any = np.float64) -> NDArray[Any]:
    """Return values as an array; NumPy's own error would print a value that is no number."""
    try:
        return np.ascontiguousarray(values, dtype=dtype)
    except (TypeError, ValueError):
        raise DataError(f"{what} must hold numbers, got {printable(values)} with something else.") from None


def check_bounds(bounds: Any) -> None:
    """Refuse bounds that bound nothing."""
    if bounds is None:
        return
    low, high = two_numbers("bounds", bounds)
    if not -math.inf < low <= high < math.inf:
        raise DataError(f"bounds are two finite numbers, the lower first, got {bounds}: give None for no bounds.")
