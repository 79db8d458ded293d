"""How time and memory of a round grow: one quantity at a time, and the slope in a log-log plot.

Work is linear in non-zeros x R K and in P x J x R K, so no slope should exceed one but for noise; below one,
a part that the quantity does not touch is still visible. Time is CPU time, the least of several turns: it
shows work, and other processes hardly change it.
"""

from __future__ import annotations

import gc
import os
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.contenders import Rounds, fast
from benchmarks.instances import SPEC, pixels
from benchmarks.interleave import interleaved
from tacit.engine.kernels import compiled, patches
from tacit.engine.passes import Blas, Compiled, Form, Layout, row_norms


@dataclass(frozen=True)
class Size:
    """An instance of random pixels, dense where the density is one."""

    agents: int = 10
    records: int = 20_000
    features: int = 784
    classes: int = 10
    density: float = 0.15
    runs: int = 1

    def rounds(self) -> Rounds:
        """The fast engine over it."""
        over = pixels(self.agents, self.records, self.features, self.classes, density=self.density)
        return fast(SPEC, over, self.runs)

    @property
    def data_bytes(self) -> int:
        """Of the records in float32."""
        return 4 * self.records * self.features


# what is timed -> the quantity that grows, and the sizes
AXES: dict[str, tuple[str, list[Size]]] = {
    "records": ("records", [Size(records=n, features=200) for n in (10_000, 30_000, 100_000, 300_000, 1_000_000)]),
    "features": ("features", [Size(features=j) for j in (196, 392, 784, 1568, 3136)]),
    "agents": ("agents", [Size(agents=p, records=10 * p, features=30) for p in (100, 1000, 10_000, 100_000)]),
    "classes": ("classes", [Size(classes=k) for k in (16, 32, 64, 128, 256)]),  # whole registers: no padding
    "density": ("density", [Size(density=d) for d in (0.03, 0.06, 0.12, 0.24, 0.48)]),
    "runs": ("runs", [Size(runs=r, classes=16) for r in (1, 2, 4, 8, 16)]),
    "records, dense": (
        "records",
        [Size(records=n, features=100, density=1) for n in (10**4, 3 * 10**4, 10**5, 3 * 10**5)],
    ),
    "features, dense": ("features", [Size(features=j, density=1) for j in (49, 98, 196, 392, 784)]),
}
LARGEST = Size(agents=1000, records=1_000_000, density=0.12)


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Of log y over log x, by least squares."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def memory(size: Size) -> dict[str, float]:
    """Bytes an engine needs beside the records: at its peak while built and run, and kept between rounds."""
    over = pixels(size.agents, size.records, size.features, size.classes, density=size.density)
    gc.collect()
    tracemalloc.start()
    rounds = fast(SPEC, over, size.runs)
    rounds()
    rounds()
    gc.collect()
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return {"kept": kept, "peak": peak, "state": float(_state_bytes(rounds)), "data": size.data_bytes}


def _state_bytes(rounds: Rounds) -> int:
    """z, dual and w of the engine, and what the server keeps of every run."""
    engine = rounds.engine
    server = [array for own in rounds.states for array in (own.w, own.average, *own.own.values())]
    return sum(array.nbytes for array in (engine.z, engine.dual, engine.w, *server))


def grow(axis: str, seconds: float) -> dict[str, Any]:
    """Time and memory along one axis, and their slopes."""
    quantity, sizes = AXES[axis]
    x = [float(getattr(size, quantity)) for size in sizes]
    turns = interleaved({str(at): size.rounds() for at, size in zip(x, sizes, strict=True)}, seconds, turn=0.03)
    cpu = [min(own for _, own in turns[str(at)]) for at in x]
    wall = [min(own for own, _ in turns[str(at)]) for at in x]
    room = [memory(size) for size in sizes]
    return {
        "at": x,
        "cpu_ms": [float(f"{1e3 * ms:.3g}") for ms in cpu],
        "wall_ms": [float(f"{1e3 * ms:.3g}") for ms in wall],
        "time_slope": round(slope(x, cpu), 3),
        "last_slope": round(slope(x[-2:], cpu[-2:]), 3),
        "kept_mb": [round(own["kept"] / 1e6, 1) for own in room],
        "state_mb": [round(own["state"] / 1e6, 1) for own in room],
        "data_mb": [round(own["data"] / 1e6, 1) for own in room],
        "over_data": [round(_over_data(own), 2) for own in room],
        "memory_slope": round(slope(x, [own["kept"] + own["data"] for own in room]), 3),
    }


def _over_data(own: dict[str, float]) -> float:
    """(records + engine at its peak - state) / records: the target is 2."""
    return (own["data"] + own["peak"] - own["state"]) / own["data"]


def kept_with_records_and_runs(records: tuple[int, int] = (20_000, 40_000), runs: tuple[int, int] = (1, 16)) -> float:
    """Floats kept for each record, class and run: the part of memory that grows with I x K x R; the aim is none."""
    size = Size(classes=16)
    few, many = (np.diff([memory(replace(size, records=n, runs=r))["kept"] for n in records]).item() for r in runs)
    return round(float(many - few) / (4 * size.classes * (runs[1] - runs[0]) * (records[1] - records[0])), 3)


def largest(size: Size = LARGEST) -> dict[str, Any]:
    """One round at 1,000 agents and 10^6 records, and the peak of the whole process; run it in a fresh one."""
    import resource

    over = pixels(size.agents, size.records, size.features, size.classes, density=size.density)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rounds = fast(SPEC, over, size.runs)
    turns = interleaved({"fast": rounds}, 3.0)["fast"]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "agents": size.agents, "records": size.records, "features": size.features, "classes": size.classes,
        "density": size.density, "path": rounds.path,
        "wall_ms": round(1e3 * min(wall for wall, _ in turns), 1),
        "cpu_ms": round(1e3 * min(cpu for _, cpu in turns), 1),
        "data_mb": round(size.data_bytes / 1e6), "state_mb": round(_state_bytes(rounds) / 1e6),
        "rss_with_records_mb": round(before / 1e3), "rss_peak_mb": round(peak / 1e3),
    }  # fmt: skip


def forms(runs: int, seconds: float, densities: Sequence[float] = (0.05, 0.1, 0.2, 0.3, 0.5, 1.0)) -> dict[str, Any]:
    """Rounds with every form of the gradient over the same random pixels, ten classes: ms at each density."""
    kernels = compiled()
    if kernels is None:
        return {"runs": runs, "why": "the compiled loops are not built"}
    spent: dict[str, list[float]] = {}
    chosen = []
    for density in densities:
        first = replace(Size(), density=density, runs=runs).rounds()
        shards = [agent.shard for agent in first.engine.runs[0]]
        x_norm = row_norms(shards, [bound.norm for bound in first.engine.asked[0].bounds])
        chosen.append(first.engine.gradients.form.value)
        players = {form.value: Rounds("fast", first.setups) for form in Form} | {"BLAS": Rounds("fast", first.setups)}
        for form in Form:  # whether or not it would find room
            layout = Layout(form, patches(shards[0].x.shape[1]) if form is Form.GROUPED else None)
            players[form.value].engine.gradients = Compiled(layout, shards, x_norm, 10, runs, kernels)
        players["BLAS"].engine.gradients = Blas(shards, x_norm, 10)
        for name, turns in interleaved(players, seconds / len(densities)).items():
            spent.setdefault(name, []).append(round(1e3 * min(cpu for _, cpu in turns), 2))
    return {"runs": runs, "density": list(densities), "cpu_ms": spent, "chosen": chosen}


def in_a_fresh_process(work: Callable[[], dict[str, Any]], settings: dict[str, str]) -> dict[str, Any]:
    """Peak memory and the threads of BLAS belong to a process, so what depends on them runs in its own."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    before = dict(os.environ)
    os.environ.update(settings)
    try:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:
            return alone.submit(work).result()
    finally:
        os.environ.clear()
        os.environ.update(before)


def everything(seconds: float, say: Callable[[str], None]) -> dict[str, Any]:
    """All of the above; `seconds` for each axis, and for the forms."""
    found: dict[str, Any] = {}
    for axis in AXES:
        say(f"growth with {axis}")
        found[axis] = grow(axis, seconds)
    say("growth: forms of the records")
    found["forms"] = [forms(runs, seconds) for runs in (1, 10)]
    say("growth: what is kept")
    found["kept_with_records_and_runs"] = kept_with_records_and_runs()
    if os.name == "posix":
        say("growth: 1,000 agents and 10^6 records")
        found["largest"] = in_a_fresh_process(largest, {})
    return found
