"""Results as tables in Markdown, and into the document that explains them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

NAMES = {
    "naive": "naive style, float32 records",
    "naive64": "naive style, float64 throughout",
    "plain": "tacit, plain engine",
    "fast": "tacit, fast engine",
    "fast10": "tacit, fast engine, 10 seeds at once, per run",
}
TITLES = {
    "mnist": "MNIST",
    "femnist": "FEMNIST-shaped, 114 agents",
    "femnist195": "FEMNIST-shaped, 195 agents",
}
MEASURED = re.compile(r"(<!-- measured -->\n).*?(<!-- /measured -->)", re.DOTALL)


def insert(document: str, results: dict[str, Any]) -> str:
    """The document with the part between its markers replaced by the tables of `results`."""
    return MEASURED.sub(lambda found: f"{found[1]}\n{markdown(results)}\n{found[2]}", document)


def markdown(results: dict[str, Any]) -> str:
    """Every table that `results` has the numbers for."""
    parts = [_machine(results["machine"]), _ratios(results)]
    parts += [_instance(TITLES[name], own) for name, own in results["instances"].items()]
    if "roofline" in results:
        parts += [_limits(results["limits"]), _roofline(results["roofline"])]
    if "growth" in results:
        parts += [_growth(results["growth"]), _crossover(results["growth"]), _largest(results["growth"])]
    parts.append(_startup(results["startup"]))
    return "\n\n".join(part for part in parts if part)


def table(head: Sequence[object], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table; the first column to the left, numbers to the right."""
    lines = [head, ["---", *["--:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def _machine(machine: dict[str, Any]) -> str:
    return (
        f"Machine: {machine['cpu']}, {machine['cores']} cores, {machine['system']}; Python {machine['python']}, "
        f"NumPy {machine['numpy']} with {machine['blas']}; compiled loops: {machine['kernels']}; "
        f"load average at the start: {machine['load_at_start']}."
    )


def _ratios(results: dict[str, Any]) -> str:
    targets = {"mnist_single": 20, "mnist_sweep10": 40, "femnist_single": 10, "femnist195_single": 10}
    rows = [[f"`{key}`", f"{results[key]:.1f}x", f"{target}x"] for key, target in targets.items() if key in results]
    return "**Wall clock against the naive style**\n\n" + table(["key", "measured", "target"], rows)


def _instance(title: str, own: dict[str, Any]) -> str:
    s = own["shape"]
    head = (
        f"**{title}**: P = {s['agents']}, I = {s['records']:,}, J = {s['features']}, K = {s['classes']}, "
        f"{100 * s['density']:.0f}% non-zero; {own['repetitions']} repetitions"
    )
    rows = [
        [
            NAMES[name], f"{c['wall_ms']:g}", f"{c['cpu_ms']:g}", f"{c['ratio']:.1f}x",
            "{:.1f} - {:.1f}".format(*c["quartiles"]), own["path"][name],
        ]
        for name, c in own["contenders"].items()
    ]  # fmt: skip
    return f"{head}\n\n" + table(["", "wall ms", "CPU ms", "naive / this", "quartiles", "path"], rows)


def _limits(limits: dict[str, float]) -> str:
    return (
        f"**Roofline**: sgemm {limits['sgemm_gflops']:.0f} GFLOP/s, memory {limits['memory_gb_s']:.1f} GB/s, "
        f"cache {limits['cache_gb_s']:.0f} GB/s, Laplace noise {limits['draws_per_s'] / 1e6:.0f} million draws/s"
    )


def _roofline(roofs: dict[str, Any]) -> str:
    rows = [
        [
            name, f"{own['flops'] / 1e9:.2f}", f"{own['data_bytes'] / 1e6:.0f}", f"{own['cached_bytes'] / 1e6:.0f}",
            f"{own['state_bytes'] / 1e6:.1f}", f"{own['draws'] / 1e6:.2f}",
            " / ".join(f"{ms:.1f}" for ms in own["ms_at_limit"].values()),
            f"{own['bound_ms']:.1f}", f"{own['measured_ms']:.1f}", f"{100 * own['reached']:.0f}%",
        ]
        for name, own in roofs.items()
    ]  # fmt: skip
    head = [
        "a round of", "GFLOP", "data MB", "cached MB", "state MB", "million draws",
        "ms at each limit: flops / data / cache / state / noise", "bound ms", "best ms", "reached",
    ]  # fmt: skip
    return table(head, rows)


def _growth(growth: dict[str, Any]) -> str:
    rows = [
        [
            axis, " ".join(f"{at:g}" for at in own["at"]), " ".join(f"{ms:g}" for ms in own["cpu_ms"]),
            own["time_slope"], own["last_slope"], " ".join(f"{mb:g}" for mb in own["kept_mb"]),
            own["memory_slope"], max(own["over_data"]),
        ]
        for axis, own in growth.items() if isinstance(own, dict) and "time_slope" in own
    ]  # fmt: skip
    head = [
        "with", "at", "CPU ms a round", "slope", "last two", "kept beside the records, MB", "memory slope",
        "most over data",
    ]  # fmt: skip
    kept = growth["kept_with_records_and_runs"]
    return (
        f"**Growth** of a round of the fast engine\n\n{table(head, rows)}\n\n"
        f"Kept for each record, class and run: {kept:g} floats."
    )


def _crossover(growth: dict[str, Any]) -> str:
    both = {"crossover": "default", "crossover_one_blas_thread": "one"}
    found = [(threads, own) for key, threads in both.items() for own in growth[key] if "density" in own]
    if not found:
        return ""
    rows = [
        [own["runs"], threads, *own["dense_over_sparse"], own["crossover"] or "none"] for threads, own in found
    ]
    head = ["runs", "BLAS threads", *(f"{100 * d:.0f}%" for d in found[0][1]["density"]), "equal at"]
    return "**Dense or sparse**: time of a dense round over a sparse one, by density\n\n" + table(head, rows)


def _largest(growth: dict[str, Any]) -> str:
    if "largest" not in growth:
        return ""
    own = growth["largest"]
    return (
        f"**Largest**: {own['agents']:,} agents, {own['records']:,} records of {own['features']} features, "
        f"{100 * own['density']:.0f}% non-zero: {own['wall_ms']:g} ms a round ({own['cpu_ms']:g} ms of CPU time); "
        f"records {own['data_mb']:,} MB as float32, state {own['state_mb']:,} MB, "
        f"peak of the process {own['rss_peak_mb']:,} MB."
    )


def _startup(startup: dict[str, float]) -> str:
    return (
        f"**Start-up**, whole processes: `import tacit` {startup['import_tacit']:.2f} s, `tacit --help` "
        f"{startup['tacit_help']:.2f} s, of which Python itself {startup['python']:.2f} s."
    )
