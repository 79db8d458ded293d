"""A key of a spec is a dataclass field that carries its help text and the names it may take."""

from __future__ import annotations

from dataclasses import field
from typing import Any


def key(default: Any, about: str, *choices: str) -> Any:
    """Declare a key of a spec; without `choices` every value of the right type is allowed."""
    return field(default=default, metadata={"about": about, "choices": choices})
