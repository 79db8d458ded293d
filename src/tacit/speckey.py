"""A key of a spec is a dataclass field that carries its help text and the names it may take."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import field
from typing import Any


def key(default: Any, about: str, *names: str, choices: Collection[str] = (), path: bool = False) -> Any:
    """Declare a key of a spec: the names it takes, or the registry that holds them; without either, any value.

    A `path` may name a file or a folder of this machine, and stays out of pages that are shared.
    """
    return field(default=default, metadata={"about": about, "choices": names or choices, "path": path})
