"""What this machine gives a process: cores, and the compiled extensions of this installation."""

from __future__ import annotations

import importlib
import importlib.util
import os
from types import ModuleType


def cores() -> int:
    """The number of cores that this process may use: taskset or a cpuset may allow fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def extension(name: str) -> ModuleType | None:
    """The extension module of this name; None where it was not built, or TACIT_NO_KERNELS is set."""
    if os.environ.get("TACIT_NO_KERNELS") or importlib.util.find_spec(name) is None:
        return None
    return importlib.import_module(name)
