"""Results as tables in Markdown, and into the document that explains them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from benchmarks import deployed, tables

NAMES = {
    "naive": "naive style, float32 records",
    "naive64": "naive style, float64 throughout",
    "plain": "tacit, plain engine",
    "fast": "tacit, fast engine",
    "fast10": "tacit, fast engine, 10 seeds at once, per run",
    "torch": "tacit, torch engine on the CPU",
    "now": "tacit, fast engine, in a process of its own",
    "now10": "the same, 10 seeds at once, per run",
    "before": "the other checkout, fast engine, in a process of its own",
    "before10": "the same, 10 seeds at once, per run",
    "read": "every record read once, nothing else",
}
TITLES = {
    "mnist": "MNIST",
    "femnist": "FEMNIST-shaped, 114 agents",
    "femnist195": "FEMNIST-shaped, 195 agents",
    "dense392": "Dense, 392 features",
    "table30": "Table of 30 columns",
    "table100": "Table of 100 columns",
    "table200": "Table of 200 columns",
}
RATIOS = {"mnist_single": 45, "mnist_sweep10": 110, "femnist_single": 20, "femnist195_single": 10}  # at least
DENSE_MS, OVER_READ = 15, 2.5  # at most: a round of dense392, and a round / reading its records once
SLOPE, OVER_DATA = 1.05, 2.0  # at most: of time in a log-log plot, and memory / the records in float32
APART = {"deployed": deployed, "tables": tables}  # each has its own command, and its own table
MEASURED = re.compile(r"(<!-- measured -->\n).*?(<!-- /measured -->)", re.DOTALL)


def insert(document: str, results: dict[str, Any]) -> str:
    """The document with the part between its markers replaced by the tables of `results`."""
    return MEASURED.sub(lambda found: f"{found[1]}\n{markdown(results)}\n{found[2]}", document)


def markdown(results: dict[str, Any]) -> str:
    """Every table that `results` has the numbers for."""
    parts = [_machine(results["machine"]), _ratios(results), _before(results), _over_read(results["instances"])]
    parts += [_instance(TITLES[name], own) for name, own in results["instances"].items()]
    if "roofline" in results:
        parts += [_limits(results["limits"]), _roofline(results["roofline"])]
    if "growth" in results:
        parts += [_growth(results["growth"]), _forms(results["growth"]), _largest(results["growth"])]
    parts += [own.markdown(results[name]) for name, own in APART.items() if name in results]
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
    rows = [[f"`{key}`", f"{results[key]:.1f}x", f"{target}x"] for key, target in RATIOS.items() if key in results]
    return "**Wall clock against the naive style**\n\n" + table(["key", "measured", "target"], rows)


def _before(results: dict[str, Any]) -> str:
    """Every instance against the other checkout."""
    rows = [
        [TITLES[name], NAMES[contender], f"{own['ratio']:.2f}x", "{:.2f} - {:.2f}".format(*own["quartiles"])]
        for name, instance in results["instances"].items()
        for contender, own in instance.get("before", {}).items()
    ]
    head = f"**Against commit {results.get('before')}**: each engine in a process of its own, in turns\n\n"
    return head + table(["", "", "before / this", "quartiles"], rows) if rows else ""


def _over_read(instances: dict[str, Any]) -> str:
    """Dense instances: how far a round is from one reading of its records."""
    rows = [
        [
            TITLES[name], f"{own['contenders']['read']['best_ms']:g}", f"{own['contenders']['fast']['best_ms']:g}",
            f"{own['over_read']['best']:.1f}x", f"{own['over_read']['ratio']:.1f}x", own["path"]["read"],
        ]
        for name, own in instances.items() if "over_read" in own
    ]  # fmt: skip
    head = (
        "**A dense round over one reading of its records**, fast engine, one seed; targets: "
        f"{TITLES['dense392']} in at most {DENSE_MS} ms, and at most {OVER_READ:g}x the reading\n\n"
    )
    columns = ["", "read, best ms", "round, best ms", "round / read, best", "median of pairs", "fastest way to read"]
    return head + table(columns, rows) if rows else ""


def _instance(title: str, own: dict[str, Any]) -> str:
    s = own["shape"]
    head = (
        f"**{title}**: P = {s['agents']}, I = {s['records']:,}, J = {s['features']}, K = {s['classes']}, "
        f"{100 * s['density']:.0f}% non-zero; {own['repetitions']} repetitions"
    )
    before = {name.replace("fast", "now"): f"{found['ratio']:.2f}x" for name, found in own.get("before", {}).items()}
    rows = [
        [
            NAMES[name], f"{c['wall_ms']:g}", f"{c['cpu_ms']:g}", f"{c['ratio']:.1f}x",
            "{:.1f} - {:.1f}".format(*c["quartiles"]), *([before.get(name, "")] if before else []), own["path"][name],
        ]
        for name, c in own["contenders"].items()
    ]  # fmt: skip
    columns = ["", "wall ms", "CPU ms", "naive / this", "quartiles", *(["before / this"] if before else []), "path"]
    return f"{head}\n\n" + table(columns, rows)


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
        f"**Growth** of a round of the fast engine; targets: slope at most {SLOPE:g}, over data at most "
        f"{OVER_DATA:g}\n\n{table(head, rows)}\n\nKept for each record, class and run: {kept:g} floats."
    )


def _forms(growth: dict[str, Any]) -> str:
    found = [own for own in growth["forms"] if "density" in own]
    if not found:
        return ""
    rows = [
        [own["runs"], name, *(f"{'**' * (name == best)}{ms:g}{'**' * (name == best)}" for ms, best in cells)]
        for own in found
        for name, spent in own["cpu_ms"].items()
        for cells in [zip(spent, own["chosen"], strict=True)]
    ]
    head = ["runs", "records kept as", *(f"{100 * d:.0f}%" for d in found[0]["density"])]
    title = "**Forms of the records**: CPU ms of a round, by density; the engine's choice is bold"
    return f"{title}\n\n{table(head, rows)}"


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
