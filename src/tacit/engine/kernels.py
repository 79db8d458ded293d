"""What this machine offers: the compiled loops, if this installation has them, and cores."""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Callable
from types import ModuleType

import numpy as np

from tacit.privacy import noise
from tacit.types import Array


def compiled() -> ModuleType | None:
    """The extension module; None where it was not built, or TACIT_NO_KERNELS is set."""
    name = "tacit.engine._kernels"
    if os.environ.get("TACIT_NO_KERNELS") or importlib.util.find_spec(name) is None:
        return None
    return importlib.import_module(name)


def cores() -> int:
    """The number of cores that this process may use: taskset or a cpuset may allow fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def normals() -> Callable[[tuple[int, int], int, int, tuple[int, ...]], Array]:
    """privacy.noise.gaussian, compiled where it can be: equal to within float32's rounding of ln and cos."""
    kernels = compiled()
    if kernels is None:
        return noise.gaussian

    def gaussian(key: tuple[int, int], t: int, step: int, shape: tuple[int, ...]) -> Array:
        out = np.empty(shape, np.float32)
        kernels.noise(kernels.GAUSSIAN, *key, t, step, out)
        return out

    return gaussian
