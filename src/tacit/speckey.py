"""A key of a spec is a dataclass field that carries its help text, the names it may take and when a run reads it."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping
from dataclasses import field
from typing import Any


class AnyBut:
    """Every value but some."""

    def __init__(self, *values: Any) -> None:
        self.values = values

    def __contains__(self, value: object) -> bool:
        return value not in self.values


Reads = Mapping[str, Container[Any]]  # another key of the spec -> the values of it under which a key is read


def key(
    default: Any, about: str, *names: str, choices: Collection[str] = (), when: Reads | None = None, path: bool = False
) -> Any:
    """Declare a key of a spec: the names it takes, or the registry that holds them; without either, any value.

    A run reads the key only if each key in `when` has one of its values there; without `when`, every run reads it. A
    `path` may name a file or a folder of this machine, and stays out of pages that are shared.
    """
    told = {"about": about, "choices": names or choices, "when": when or {}, "path": path}
    return field(default=default, metadata=told)
