"""Versions, compiled loops, BLAS and threads."""

from __future__ import annotations

import argparse
import importlib.util
import json
import platform

from tacit._version import __version__
from tacit.cli.folding import say
from tacit.cli.options import finish
from tacit.errors import install_extra


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tacit info`."""
    finish(parser, __doc__, run)


def run(options: argparse.Namespace) -> int:
    """Print which code runs here."""
    import numpy as np

    from tacit.data.formats import chunk
    from tacit.engine.kernels import compiled
    from tacit.machine import cores, name_conflict
    from tacit.privacy import exact

    kernels = compiled()
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    facts = {
        "tacit": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "blas": f"{blas.get('name')} {blas.get('version')}",
        "kernels": "not built: the fast engine runs on NumPy" if kernels is None else f"compiled, {kernels.use()}",
        "noise": "exact noise: compiled" if exact.compiled() else "exact noise: not built, NumPy draws it",
        "csv": "compiled" if chunk.compiled() else "not built: Python reads CSV files",
        "mpi": "mpi4py" if importlib.util.find_spec("mpi4py") else f"not installed: {install_extra('mpi')}",
        "threads": cores(),
        "machine": f"{platform.system()} {platform.machine()}",
        "conflict": name_conflict(),
    }
    if options.json:
        print(json.dumps(facts))
        return 0
    say("\n".join(f"{name:<9} {value}" for name, value in facts.items() if value is not None), hang=10)
    return 0
