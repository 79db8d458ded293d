"""A fault: a piece of text in one file, what stands there instead, and the test that finds it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


@dataclass(frozen=True)
class Mutant:
    """A fault: its name, the file below src/tacit, what stands there, what it becomes, and the test that finds it."""

    name: str
    file: str
    old: str
    new: str
    test: str
