"""python -m benchmarks.rounds NAME: test error against the number of rounds, at equal total budget (docs/rounds.md).

records/rounds-NAME.toml is a grid of the sound preset, as `tacit sweep` takes it. METHODS adds the other methods to the
grid, and all runs go through one sweep each, in runs/rounds-NAME: a command that was stopped goes on where it stopped.
The records go to records/rounds-NAME.jsonl, and the table is printed.

    python -m benchmarks.rounds mnist heart              run what is missing, write the records, print the tables
    python -m benchmarks.rounds --tables mnist heart     print the tables of the records, and run nothing
    python -m benchmarks.rounds --figure docs/img/rounds.svg mnist heart     draw the error of the preset
    python -m benchmarks.rounds --drawn                  the preset on drawn tables, on which its short runs were chosen
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks import tune_tables
from benchmarks.report import table as markdown
from benchmarks.study_tables import drawn
from benchmarks.table_variants import SHORT
from benchmarks.tune_tables import DRAWN, tried
from tacit import record, toml
from tacit.jsontext import Values, dumps
from tacit.run import build, sweep
from tacit.run.compose import federated_rounds
from tacit.run.directory import write_whole

RECORDS = Path(__file__).parent.parent / "records"
OUT = RECORDS / "rounds-drawn.jsonl"
LARGEST = 10_000
SLACK = 0.1  # the fewest rounds whose error is within this share of the least are said to do
MOST_STEPS = 500  # local steps of a run: beyond them there is nothing to learn about few rounds
# of a record of a sweep: the rest is the same in every line, or was not asked
KEPT = (
    "name", "algorithm", "preset", "dataset", "features", "agents", "records", "rounds", "seed", "test_error",
    "test_auc", "objective", "guarantee", "diverged", "engine", "seconds", "version", "sent_bytes", "spec",
)  # fmt: skip
ONE = "onemessage"
DEFAULT, RULE = "objt", "objt, rounds by the rule"
# what is run beside the preset, at the first of its budgets; the constants that are not named are those of the method
METHODS: dict[str, dict[str, Any]] = {
    "objt-local, 2 steps": {"algorithm.name": "objt-local", "method.local_steps": 2},
    "objt-local, 10 steps": {"algorithm.name": "objt-local", "method.local_steps": 10},
    "dpsgd-local, 2 steps": {"algorithm.name": "dpsgd-local", "method.local_steps": 2},
    "dpsgd-local, 10 steps": {"algorithm.name": "dpsgd-local", "method.local_steps": 10},
    ONE: {"algorithm.name": ONE, "run.rounds": 1},
}


def grids(config: Path) -> Iterator[tuple[str, Values]]:
    """Yield the label and the grid of every method: the preset at all budgets, other methods at the first budget."""
    base = toml.read(config)
    yield DEFAULT, base
    first = {"privacy.epsilon": base["privacy.epsilon"][0]}
    for label, own in METHODS.items():
        most = MOST_STEPS // own.get("method.local_steps", 1)
        grid = base | first | {"run.rounds": [t for t in base["run.rounds"] if t <= most]} | own
        if label == ONE:  # it clips no gradient: a record is at most as long as the bound of its row
            grid.pop("privacy.clip", None)
        yield label, grid


def run(name: str, out: Path) -> None:
    """Run what is missing of the grids of one data set, and write its records."""
    config = RECORDS / f"rounds-{name}.toml"
    kept: list[Values] = []
    for label, grid in grids(config):
        own = out / f"rounds-{name}" / label.replace(", ", "-").replace(" ", "")
        print(f"{name}: {label}", file=sys.stderr)
        kept += map(short, sweep.run(sweep.expand(grid, str(config)), own))
    kept += by_rule(config, out / f"rounds-{name}" / "rule")
    write_whole(RECORDS / f"rounds-{name}.jsonl", lambda file: file.write(record.lines(kept).encode()))


def by_rule(config: Path, out: Path) -> list[Values]:
    """Return the records of the preset in as many rounds as the rule gives, at every budget."""
    base = toml.read(config)
    kept: list[Values] = []
    federation = build.federation(sweep.expand(base, str(config))[0].spec)
    for epsilon in base["privacy.epsilon"]:
        budget = base | {"privacy.epsilon": epsilon}
        rounds = federated_rounds(sweep.expand(budget, str(config))[0].spec, federation)
        print(f"{config.stem}: {rounds} rounds at epsilon {epsilon:g}", file=sys.stderr)
        found = sweep.run(sweep.expand(budget | {"run.rounds": rounds}, str(config)), out / f"epsilon{epsilon:g}")
        kept += [short(one, by_rule=True) for one in found]
    return kept


def short(one: Values, by_rule: bool = False) -> Values:
    """Return the record with KEPT alone, and whether the rule chose its rounds, sealed again."""
    return record.sealed({key: one[key] for key in KEPT if key in one} | {"by_rule": by_rule})


def errors(records: Sequence[Values]) -> dict[tuple[str, float], dict[int, list[float]]]:
    """Return the test errors of (label, epsilon) by rounds; a run that diverged has the error of a guess, 1."""
    found: dict[tuple[str, float], dict[int, list[float]]] = {}
    for one in records:
        spec = toml.parsed(one["spec"], one["name"])
        label, steps = spec["algorithm.name"], spec.get("method.local_steps")
        label = f"{label}, {steps:g} steps" if steps else RULE if one["by_rule"] else label
        found.setdefault((label, spec["privacy.epsilon"]), {}).setdefault(spec["run.rounds"], []).append(
            one.get("test_error", 1.0)
        )
    return found


def fewest(by_rounds: Mapping[int, Sequence[float]], slack: float = SLACK) -> int:
    """Return the fewest rounds whose mean error is within `slack`, a share, of the least over rounds."""
    means = {t: mean(own) for t, own in by_rounds.items()}
    return min(t for t, own in means.items() if own <= (1 + slack) * min(means.values()))


def shown(records: Sequence[Values]) -> str:
    """Return the table of one data set: a line for each method and budget, a column for each number of rounds."""
    found = errors(records)
    rounds = sorted({t for (label, _), own in found.items() for t in own if label != RULE})
    lines = []
    for (label, epsilon), own in found.items():
        if label == RULE:
            continue
        cells = [f"{100 * mean(own[t]):.2f}" if t in own else "" for t in rounds]
        chosen = found.get((RULE, epsilon), {}) if label == DEFAULT else {}
        rule = " ".join(f"{100 * mean(told):.2f} in {t}" for t, told in chosen.items())
        lines.append([label, f"{epsilon:g}", *cells, rule, str(fewest(own)) if len(own) > 1 else ""])
    return markdown(["method", "epsilon", *map(str, rounds), "by the rule", f"fewest within {SLACK:.0%}"], lines)


def run_drawn() -> None:
    """Run the preset in few rounds on drawn tables of up to LARGEST records, and write what tune_tables writes."""
    wanted = list(itertools.product((*SHORT, "default"), (1.0, 3.0)))
    tables = (drawn(kind, records) for kind, records in DRAWN if records <= LARGEST)
    rows = [row for table in tables for batch in tried(table, wanted) for row in batch]
    OUT.write_text("".join(dumps(row) + "\n" for row in rows), encoding="utf-8")


def shown_drawn(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the error in few rounds over that of the preset, the mean and the largest over tables."""
    usual = {(row["table"], row["epsilon"]): row["error"] for row in rows if row["variant"] == "default"}
    lines = []
    for epsilon in sorted({row["epsilon"] for row in rows}):
        own = [row for row in rows if row["epsilon"] == epsilon]
        ratios = [[row["error"] / usual[row["table"], epsilon] for row in own if row["variant"] == v] for v in SHORT]
        lines.append([f"{epsilon:g}", *(f"{mean(found):.3f} ({max(found):.2f})" for found in ratios)])
    return markdown(["epsilon", *SHORT], lines)


def draw(names: Sequence[str], path: Path) -> None:
    """Draw the error of the preset over its error at the best number of rounds, a line for each data set."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.4), layout="constrained")
    place = figure.add_subplot()
    for name in names:
        found = errors(record.read(RECORDS / f"rounds-{name}.jsonl"))
        own = next(by_rounds for (label, _), by_rounds in found.items() if label == DEFAULT)
        means = {t: mean(own[t]) for t in sorted(own)}
        place.plot(list(means), [one / min(means.values()) for one in means.values()], marker="o", label=name)
    place.axhline(1 + SLACK, color="grey", linewidth=0.8, linestyle=":")
    place.set(xscale="log", xlabel="rounds", ylabel="test error / the least over rounds", ylim=(0.95, 2.5))
    place.set_xticks(sorted(own), list(map(str, sorted(own))), minor=False)
    place.legend(frameon=False)
    figure.savefig(path, metadata={"Date": None})


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rounds")
    parser.add_argument("names", nargs="*", metavar="NAME", help="of records/rounds-NAME.toml")
    parser.add_argument("--tables", action="store_true", help="run nothing")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="draw the error of the preset, and run nothing")
    parser.add_argument("--out", type=Path, default=Path("runs"), metavar="DIR", help="where runs are kept")
    parser.add_argument("--drawn", action="store_true", help="the preset on drawn tables too")
    asked = parser.parse_args(argv)
    if asked.figure:
        draw(asked.names, asked.figure)
        return
    if asked.drawn:
        if not asked.tables:
            run_drawn()
        print(f"**drawn tables**\n\n{shown_drawn(tune_tables.read(OUT))}\n")
    for name in asked.names:
        if not asked.tables:
            run(name, asked.out)
        print(f"**{name}**\n\n{shown(record.read(RECORDS / f'rounds-{name}.jsonl'))}\n")


if __name__ == "__main__":
    main()
