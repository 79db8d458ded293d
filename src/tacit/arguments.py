"""Check arguments of the Python API. An error names the type of a wrong argument, and never prints its contents."""

from __future__ import annotations

import os
from numbers import Real
from pathlib import PurePath
from typing import Any

from tacit.errors import SpecError, is_document, printable


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
