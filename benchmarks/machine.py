"""What a measurement ran on, and what this machine can do at best."""

from __future__ import annotations

import itertools
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.engine.kernels import compiled
from tacit.machine import cores

PART = 2**20  # numbers a thread reads at a time


def facts() -> dict[str, Any]:
    """The processor, the software, and how busy it was at the start."""
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    kernels = compiled()
    return {
        "cpu": _cpu(),
        "cores": cores(),
        "load_at_start": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "blas": f"{blas.get('name')} {blas.get('version')}",
        "kernels": "not built" if kernels is None else kernels.use(),
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown"


def best_seconds(work: Callable[[], object], seconds: float = 2.0) -> float:
    """The least time that `work` took: what the machine can do when left alone."""
    best, end = np.inf, time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return float(best)


def limits() -> dict[str, float]:
    """Measured on all cores: sgemm, reading from memory, and reading rows of a model from cache."""
    n = 768
    a = np.ones((n, n), np.float32)
    out = np.empty_like(a)
    gemm = 2 * n**3 / best_seconds(lambda: np.matmul(a, a, out=out))
    parts = itertools.cycle(np.ones((10, 20_000_000), np.float32))  # 80 MB each: back in turn, none is in a cache

    def read() -> object:
        part = next(parts)
        return part @ part

    memory = 80e6 / best_seconds(read)
    # one matmul of many equal vectors is a C loop of sdot over 48 KB that stay in cache: the size of MNIST's z
    times, vector = 2000, np.ones(6000, np.float32)
    again = np.broadcast_to(vector, (times, 1, len(vector)))
    cache = 2 * vector.nbytes * times / best_seconds(lambda: np.matmul(again, vector[:, None]))
    # sdot of this length runs on one core
    return {"sgemm_gflops": gemm / 1e9, "memory_gb_s": memory / 1e9, "cache_gb_s": cores() * cache / 1e9}


class Read:
    """Every number of some arrays is read once, on all cores; the fastest of a few ways, found at the start."""

    def __init__(self, arrays: Sequence[NDArray[np.float32]], seconds: float = 0.2) -> None:
        flat = [array.ravel() for array in arrays]
        self.pool = ThreadPoolExecutor(cores())
        self.parts = [part for own in flat for part in np.array_split(own, -(-own.size // PART))]
        ways: dict[str, Callable[[], object]] = {
            "sum, a part a thread": partial(self._spread, lambda part: np.einsum("i->", part)),
            "max, a part a thread": partial(self._spread, np.max),
            "dot, threads of BLAS": lambda: [own @ own for own in flat],
        }
        self.path, self.way = min(ways.items(), key=lambda way: best_seconds(way[1], seconds))

    def _spread(self, work: Callable[[Any], object]) -> object:
        """Threads take strided lists of parts: a future a part would cost more than some parts."""
        own = [self.parts[i :: cores()] for i in range(cores())]
        return list(self.pool.map(lambda parts: [work(part) for part in parts], own))

    def __call__(self) -> None:
        """Read all."""
        self.way()


def startup(times: int = 5) -> dict[str, float]:
    """Wall seconds of whole processes, the interpreter's own start included: the median of a few."""
    commands = {
        "python": [sys.executable, "-c", ""],
        "import_tacit": [sys.executable, "-c", "import tacit"],
        "tacit_help": [sys.executable, "-m", "tacit", "--help"],
    }
    spent: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(times):
        for name, command in commands.items():
            start = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            spent[name].append(time.perf_counter() - start)
    return {name: round(median(seconds), 3) for name, seconds in spent.items()}
