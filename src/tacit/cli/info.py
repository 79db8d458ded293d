"""tacit info: which code runs here."""

from __future__ import annotations

import argparse
import json
import platform

from tacit._version import __version__
from tacit.cli.options import Commands, add_common


def add_to(commands: Commands, about: str) -> None:
    parser = commands.add_parser(
        "info", help=about, description="Versions, compiled loops, BLAS and threads."
    )
    add_common(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    facts = _facts()
    print(json.dumps(facts) if options.json else "\n".join(f"{name:<9} {value}" for name, value in facts.items()))
    return 0


def _facts() -> dict[str, str | int]:
    import numpy as np

    from tacit.engine.kernels import compiled, cores

    kernels = compiled()
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return {
        "tacit": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "blas": f"{blas.get('name')} {blas.get('version')}",
        "kernels": "not built: the fast engine runs on NumPy" if kernels is None else f"compiled, {kernels.use()}",
        "threads": cores(),
        "machine": f"{platform.system()} {platform.machine()}",
    }
