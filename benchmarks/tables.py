"""python -m benchmarks.tables: how fast tables are read and how much memory that takes, beside pyarrow.

A table of random numbers is written to a temporary directory, as CSV and, where pyarrow is installed, as Parquet.
Every measurement is a process of its own, and all take turns, with files in the page cache:

    shards      the whole way from the file to the shards of a federation, as `tacit train --data FILE` goes
    features    the part of it up to the matrix of features
    declared    the same by a schema: every cell encoded, and a malformed record read as missing. Beside it, how long
                finding the cells takes by the layout of a schema, over finding them strictly
    pyarrow     its own reading, and one copy into a matrix (n, J) of float32
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import machine
from benchmarks.growth import in_a_fresh_process
from tacit.types import Array

if TYPE_CHECKING:
    from tacit.data.file_layout import FileLayout

AGENTS, CLASSES = 10, 3
TEXT_RECORDS = 20_000  # different records of a CSV file: they are written over and over, text takes long to make
BLOCK = 1_000_000  # records of a row group of a Parquet file
ROUNDS = 5


# --- the tables


def block(n: int, features: int, seed: int) -> tuple[Array, list[str], list[str]]:
    """Features (n, features) in float32, labels and agents."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, features), np.float32)
    labels, agents = rng.integers(CLASSES, size=n), rng.integers(AGENTS, size=n)
    return x, [f"class{k}" for k in labels], [f"site{p}" for p in agents]


def names(features: int) -> list[str]:
    return [f"x{j}" for j in range(features)]


def write_csv(path: Path, records: int, features: int) -> None:
    """Numbers of seven decimals, as programs write them that round: some ten bytes each."""
    x, labels, agents = block(min(TEXT_RECORDS, records), features, 0)
    numbers = (",".join(map("{:.7f}".format, row)) for row in x.tolist())
    lines = [f"{row},{label},{agent}\n" for row, label, agent in zip(numbers, labels, agents, strict=True)]
    whole = "".join(lines)
    with path.open("w", encoding="utf-8") as file:
        file.write(",".join([*names(features), "label", "agent"]) + "\n")
        for start in range(0, records, len(lines)):
            left = records - start
            file.write(whole if left >= len(lines) else "".join(lines[:left]))


def write_parquet(path: Path, records: int, features: int) -> None:
    """Numbers of 32 bits."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def tables() -> Iterator[Any]:
        for start in range(0, records, BLOCK):
            x, labels, agents = block(min(BLOCK, records - start), features, start)
            columns = dict(zip(names(features), x.T, strict=True))
            yield pa.table(columns | {"label": labels, "agent": agents})

    writer = None
    for table in tables():
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


# --- what is measured, each in a process of its own


def resident() -> tuple[int, int]:
    """Bytes of memory that this process has, and has had at most."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = (line.split() for line in status.read_text().splitlines())
        found = {words[0]: 1024 * int(words[1]) for words in lines if words and words[0] in ("VmRSS:", "VmHWM:")}
        return found["VmRSS:"], found["VmHWM:"]
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return most, most


def timed(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """What `work` returns, and the seconds and the memory that it took."""
    before, _ = resident()
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    spent = {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}
    return result, spent | {"peak": resident()[1] - before}


def shards(path: str) -> dict[str, Any]:
    """From a file to a federation, as `tacit train --data FILE` reads it; then rounds of the fast engine on it."""
    from benchmarks.contenders import fast
    from benchmarks.instances import SPEC
    from tacit.data import load

    warm(path)
    federation, spent = timed(partial(load, path))
    data = 4 * (federation.n_records + len(federation.test)) * federation.n_features
    rounds = fast(SPEC, federation)
    rounds()
    seconds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        rounds()
        seconds.append(time.perf_counter() - start)
    return spent | {"over_data": spent["peak"] / data, "round_ms": 1e3 * min(seconds), "path": rounds.path}


def features(path: str) -> dict[str, Any]:
    """From a file to a matrix of features with labels and agents."""
    from tacit.data.feature_table import read_numbers

    warm(path)
    return timed(lambda: read_numbers(path).x)[1]


def declared(path: str) -> dict[str, Any]:
    """From a file to a matrix of features by a schema."""
    from tacit.data.encoded_table import read_encoded
    from tacit.data.formats import read_raw
    from tacit.data.schema import parse

    warm(path)
    with Path(path).open("rb") as file:
        columns = len(file.readline().split(b",")) - 2
    numbers = "".join(f'[columns.{name}]\nkind = "numeric"\nlo = -4\nhi = 4\n' for name in names(columns))
    classes = [f"class{k}" for k in range(CLASSES)]
    schema = parse(f'{numbers}[columns.label]\nkind = "label"\nclasses = {classes}\n[columns.agent]\nkind = "agent"\n')
    spent = timed(lambda: read_encoded(path, schema, training=True).x)[1]

    def cells(layout: FileLayout | None) -> float:
        return timed(lambda: sum(map(len, read_raw(path, layout))))[1]["cpu_seconds"]

    turns = [(cells(schema.file), cells(None)) for _ in range(5)]
    return spent | {"cells_over_strict": min(own for own, _ in turns) / min(strict for _, strict in turns)}


def pyarrow(path: str) -> dict[str, Any]:
    """From a file to a table of pyarrow, and from that to a matrix of features."""
    import pyarrow.csv
    import pyarrow.parquet

    def work() -> Array:
        table = pyarrow.csv.read_csv(path) if path.endswith(".csv") else pyarrow.parquet.read_table(path)
        wanted = [name for name in table.column_names if name.startswith("x")]
        x = np.empty((len(table), len(wanted)), np.float32)
        for j, name in enumerate(wanted):
            x[:, j] = table.column(name).to_numpy()
        return x

    return timed(work)[1]


def warm(path: str) -> None:
    """Read a few records, so that no import is measured."""
    from tacit.data import load

    with tempfile.TemporaryDirectory() as folder:
        few = Path(folder, Path(path).name)
        (write_csv if few.suffix == ".csv" else write_parquet)(few, 100, 2)
        load(str(few))


# --- all together


def measure(records: int, n_features: int, times: int, say: Callable[[str], None]) -> dict[str, Any]:
    """Every measurement of every format, `times` times in turn."""
    arrow = find_spec("pyarrow") is not None
    found: dict[str, Any] = {"machine": machine.facts(), "records": records, "features": n_features, "times": times}
    found["data_mb"] = 4e-6 * records * n_features
    with tempfile.TemporaryDirectory() as folder:
        for kind, write in (("csv", write_csv), ("parquet", write_parquet)) if arrow else (("csv", write_csv),):
            path = Path(folder, f"t.{kind}")
            say(f"{kind}: writing {records} records")
            write(path, records, n_features)
            ours = (shards, features, declared) if kind == "csv" else (shards, features)
            found[kind] = _of_one(path, times, say, (*ours, pyarrow) if arrow else ours)
            path.unlink()
    return found


def _of_one(
    path: Path, times: int, say: Callable[[str], None], kinds: Sequence[Callable[[str], Any]]
) -> dict[str, Any]:
    """The medians of one file, and ratios of what was measured in the same turn."""
    with path.open("rb") as file:  # into the page cache
        while file.read(1 << 24):
            pass
    turns = []
    for turn in range(times):
        say(f"{path.suffix[1:]}: turn {turn + 1} of {times}")
        turns.append({work.__name__: in_a_fresh_process(partial(work, str(path)), {}) for work in kinds})

    def middle(who: str, key: str) -> float:
        return float(f"{median(turn[who][key] for turn in turns):.3g}")

    size = path.stat().st_size
    own: dict[str, Any] = {"file_mb": round(size / 1e6, 1)}
    for who in turns[0]:
        speed = float(f"{median(1e-6 * size / turn[who]['seconds'] for turn in turns):.3g}")
        own[who] = {"seconds": middle(who, "seconds"), "cpu_seconds": middle(who, "cpu_seconds"), "mb_s": speed}
        if who != "pyarrow" and "pyarrow" in turns[0]:
            ratios = [turn[who]["seconds"] / turn["pyarrow"]["seconds"] for turn in turns]
            own[who]["over_pyarrow"] = round(median(ratios), 2)
    if "declared" in turns[0]:
        own["cells_over_strict"] = middle("declared", "cells_over_strict")
    own["peak_over_data"] = round(max(turn["shards"]["over_data"] for turn in turns), 2)
    own["round_ms"], own["path"] = middle("shards", "round_ms"), turns[0]["shards"]["path"]
    return own


TITLES = {
    "shards": "tacit, file to shards",
    "features": "tacit, file to features",
    "declared": "tacit, file to features by a schema",
    "pyarrow": "pyarrow, file to matrix",
}


def markdown(found: dict[str, Any]) -> str:
    """The numbers as a table."""
    shape = f"{found['records']} records of {found['features']} features ({found['data_mb']:.0f} MB in float32)"
    rows = [f"**Tables**: {shape}, medians of {found['times']} turns", ""]
    rows += ["| file | | seconds | MB/s | over pyarrow | peak memory over data |", "|---|---|---|---|---|---|"]
    for kind in ("csv", "parquet"):
        for who, title in TITLES.items():
            if who in found.get(kind, {}):
                own, peak = found[kind][who], found[kind]["peak_over_data"] if who == "shards" else ""
                cells = (f"{kind}, {found[kind]['file_mb']:.0f} MB", title, own["seconds"], own["mb_s"])
                rows.append("| " + " | ".join(map(str, (*cells, own.get("over_pyarrow", ""), peak))) + " |")
    rounds = [f"{found[kind]['round_ms']:g} ms" for kind in ("csv", "parquet") if kind in found]
    rows += ["", f"One round of the fast engine on these records: {' and '.join(rounds)}."]
    if "cells_over_strict" in found.get("csv", {}):
        over = found["csv"]["cells_over_strict"]
        rows.append(f"Finding cells by the layout of a schema takes {over} times as long as finding them strictly.")
    return "\n".join(rows)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tables", description="Reading tables, beside pyarrow.")
    parser.add_argument("--records", type=int, default=10**6, metavar="N")
    parser.add_argument("--features", type=int, default=30, metavar="J")
    parser.add_argument("--times", type=int, default=3, metavar="N", help="turns of every measurement (default 3)")
    parser.add_argument("--json", action="store_true", help="print JSON in place of a table")
    options = parser.parse_args(argv)
    start = time.perf_counter()

    def say(what: str) -> None:
        print(f"{time.perf_counter() - start:6.1f} s  {what}", file=sys.stderr, flush=True)

    found = measure(options.records, options.features, options.times, say)
    print(json.dumps(found) if options.json else markdown(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
