"""The constants of a method that tuning may choose: which key of a spec holds each, and what values it may have."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tacit.errors import SpecError
from tacit.methods.method import Choice, Entry

SHARED = {"rounds": "run.rounds", "clip": "privacy.clip", "score_noise": "schedule.score_noise"}


def key_of(constant: str) -> str:
    """The key of a spec that holds a constant of a choice: one that methods share, or one of [method]."""
    return SHARED.get(constant, f"method.{constant}")


def choice_of(entry: Entry, values: Mapping[str, Any]) -> Choice:
    """The choice that the dotted keys of a spec make; a constant that they leave out has its default."""
    return {name: values.get(key_of(name), default) for name, default in entry.grid[0].items()}


def own_constants(entry: Entry) -> tuple[str, ...]:
    """The constants of a method that [method] holds."""
    return tuple(name for name in entry.grid[0] if name not in SHARED)


SHARES = {"rate": 1.0, "fraction": 1.0, "averaged": 1.0, "share": 0.999, "jacobian": 0.999}  # the largest there can be
MAY_BE_ZERO = {"mu", "damping", "batch", "averaged", "share"}


def check_constant(entry: Entry, name: str, value: float) -> None:
    """Refuse a value that a constant of the method cannot have; one whose default is whole must be whole."""
    tried = [choice[name] for choice in entry.grid]
    if value in tried or (min(tried) < 0 and math.isfinite(value)):
        return
    whole, most = isinstance(tried[0], int), SHARES.get(name, math.inf)
    if not 0 <= value <= most or math.isinf(value) or (value == 0 and name not in MAY_BE_ZERO):
        least = "at least 0" if name in MAY_BE_ZERO else "above 0"
        allowed = f"{least}, finite" if math.isinf(most) else f"{least}, at most {most:g}"
        raise SpecError(f"method.{name} of {entry.name} must be {allowed}: got {value:g}.")
    if whole and value != int(value):
        raise SpecError(f"method.{name} of {entry.name} must be a whole number: got {value:g}.")
