"""The compiled loops, if this installation has them."""

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
