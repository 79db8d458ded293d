"""Check arguments and numbers that a user gives. An error names the type of a wrong one, never its contents."""

from __future__ import annotations

import math
import os
from numbers import Real
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import DataError, SpecError, is_document, printable


def path_text(name: str, value: object, takes: str = "a path") -> str:
    """Return a path argument as text; refuse anything else by its type."""
    if not isinstance(value, str | PurePath) or (is_document(str(value)) and not os.path.exists(value)):
        raise SpecError(f"{name} takes {takes}, got {printable(value)}.")
    return str(value)


def two_numbers(name: str, value: Any) -> tuple[float, float]:
    """Return the two numbers of a range; refuse anything else by its type."""
    if not (isinstance(value, tuple | list) and len(value) == 2 and all(isinstance(end, Real) for end in value)):
        raise SpecError(f"{name} takes two numbers, (lo, hi), got {printable(value)}.")
    return float(value[0]), float(value[1])


def check_bounds(bounds: Any) -> None:
    """Refuse bounds that bound nothing."""
    two = isinstance(bounds, tuple | list) and len(bounds) == 2 and all(isinstance(end, Real) for end in bounds)
    if bounds is not None and not (two and -math.inf < bounds[0] <= bounds[1] < math.inf):
        got = bounds if two else printable(bounds)
        raise DataError(f"bounds are two finite numbers, the lower first, got {got}: give None for no bounds.")


def numbers(what: str, values: Any, dtype: Any = np.float64) -> NDArray[Any]:
    """Return values as an array; NumPy's own error would print a value that is not a number."""
    try:
        return np.ascontiguousarray(values, dtype=dtype)
    except (TypeError, ValueError):
        raise DataError(f"{what} must hold numbers, got {printable(values)} with something else.") from None
