"""How near a round of the fast engine is to what the machine allows.

    gradient   each number of the records (all of them in whole rows, those of groups that are not empty, or the
               non-zeros) multiplies R K columns of the model for the scores, and of the residuals for the sums: 4 R K
               flops, and 8 R K bytes from cache; records are read once, lists of non-zeros by record and by feature
    update     z and dual are read and written, and z is read once more for the mean: 5 * 4 P J W bytes, W = R K padded
               to 16; noise costs one draw an entry, at the rate of the engine's own generator

The bound of a phase is its slowest resource, that of the round their sum; nothing can be faster without
touching less. `reached` is bound / measured, both the best of several.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.contenders import Rounds
from benchmarks.machine import best_seconds
from tacit.engine.fast import FastEngine
from tacit.engine.kernels import compiled
from tacit.machine import cores
from tacit.engine.passes import Blas


def work(engine: FastEngine) -> dict[str, float]:
    """Flops, bytes and draws of one round."""
    agents, features, _ = engine.z.shape
    columns = len(engine.runs) * engine.classes
    numbers, read = engine.gradients.work
    cached = 0.0 if isinstance(engine.gradients, Blas) else 8.0 * numbers * columns
    return {
        "flops": 4.0 * numbers * columns, "data_bytes": float(read), "cached_bytes": cached,
        "state_bytes": 5.0 * engine.z.nbytes, "draws": float(agents * features * columns),
    }  # fmt: skip


def draws_per_second() -> float:
    """Laplace numbers a second on all cores, from a buffer that stays in cache."""
    kernels, n = compiled(), 20_000
    if kernels is None:
        rng, small = np.random.default_rng(0), np.empty(n, np.float32)
        return n / best_seconds(lambda: rng.standard_exponential(out=small, dtype=np.float32), 0.3)
    out = np.empty(n, np.float32)
    seconds = best_seconds(lambda: kernels.noise(kernels.LAPLACE, 1, 2, 3, 0, out), 0.3)
    return cores() * n / seconds


def roofline(rounds: Rounds, limits: dict[str, float]) -> dict[str, Any]:
    """Work, time at each limit, and the share of the bound that is reached."""
    own = work(rounds.engine)
    at_limit = {
        "flops": own["flops"] / limits["sgemm_gflops"] / 1e6,
        "data": own["data_bytes"] / limits["memory_gb_s"] / 1e6,
        "cache": own["cached_bytes"] / limits["cache_gb_s"] / 1e6,
        "state": own["state_bytes"] / limits["memory_gb_s"] / 1e6,
        "noise": 1e3 * own["draws"] / limits["draws_per_s"],
    }
    gradient = max(at_limit[name] for name in ("flops", "data", "cache"))
    update = max(at_limit["state"], at_limit["noise"])
    rounds()
    measured = 1e3 * best_seconds(rounds, 2.0)
    return {
        **{name: float(f"{value:.4g}") for name, value in own.items()},
        "ms_at_limit": {name: round(ms, 2) for name, ms in at_limit.items()},
        "bound_ms": round(gradient + update, 2),
        "measured_ms": round(measured, 2),
        "reached": round((gradient + update) / measured, 3),
    }
