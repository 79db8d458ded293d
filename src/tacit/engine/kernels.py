"""What this machine offers: the compiled loops, if this installation has them, and cores."""

from __future__ import annotations

import importlib
import importlib.util
import os
from types import ModuleType


def compiled() -> ModuleType | None:
    """The extension module; None where it was not built, or TACIT_NO_KERNELS is set."""
    name = "tacit.engine._kernels"
    if os.environ.get("TACIT_NO_KERNELS") or importlib.util.find_spec(name) is None:
        return None
    return importlib.import_module(name)


def cores() -> int:
    """Those that this process may use: taskset or a cpuset may allow fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
