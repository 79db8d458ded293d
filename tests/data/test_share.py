"""Processes that each read the records of some agents hold together what one process reads."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tacit.data import leaf_heads, sources
from tacit.data.formats import npz
from tacit.data.spec import DataSpec
from tacit.errors import DataError, OwnerWarning
from tacit.types import Federation
from tests.crew import crew

N, J = 90, 4
RNG = np.random.default_rng(3)
X = RNG.random((N, J)).round(3)
Y = RNG.integers(0, 3, N)
AGENT = RNG.integers(0, 7, N)


def csv(path: Path, rows: slice = slice(None), agent: bool = True, labels: object = None) -> Path:
    names = [f"x{j}" for j in range(J)]
    lines = [",".join([*names, *(["agent"] if agent else []), "label"])]
    for x, who, y in zip(X[rows], AGENT[rows], (Y if labels is None else np.asarray(labels))[rows], strict=True):
        lines.append(",".join([*map(str, x), *([f"a{who}"] if agent else []), str(y)]))
    path.write_text("\n".join(lines) + "\n")
    return path


def leaf(root: Path) -> DataSpec:
    """Three files of users; one user is in two of them, and some records are there twice."""
    for part, shift in (("train", 0), ("test", 1)):
        for i in range(3):
            users = {f"u{a}": (X[a == AGENT][i::3], Y[a == AGENT][i::3]) for a in range(i + shift, 7, 3)}
            users["u0"] = (X[AGENT == 0][i::3], Y[AGENT == 0][i::3])
            users["none"] = (X[:0], Y[:0])
            content = {
                "users": list(users), "num_samples": [len(y) for _, y in users.values()],
                "user_data": {name: {"x": x.tolist(), "y": y.tolist()} for name, (x, y) in users.items()},
            }  # fmt: skip
            if part == "test" and i == 1:  # an order in which the head does not come first
                content = dict(reversed(content.items()))
            (root / part).mkdir(parents=True, exist_ok=True)
            (root / part / f"all_{i}.json").write_text(json.dumps(content))
    return DataSpec(str(root), invert=True, dedup=True)


def table(folder: Path) -> DataSpec:
    return DataSpec(str(csv(folder / "t.csv")))


def cut(how: str) -> Callable[[Path], DataSpec]:
    return lambda folder: DataSpec(str(csv(folder / "t.csv", agent=False)), agents=5, partition=how)


def with_test(folder: Path) -> DataSpec:
    return DataSpec(str(csv(folder / "t.csv")), test=str(csv(folder / "test.csv", slice(40), agent=False)))


def unknown_labels(folder: Path) -> DataSpec:
    labels = np.where(np.arange(N) % 11 == 0, 9, Y)
    return DataSpec(str(csv(folder / "t.csv", labels=labels)), class_names="0,1,2", low=0.0, high=0.9)


def directory(folder: Path) -> DataSpec:
    (folder / "hospitals").mkdir()
    for i, rows in enumerate((slice(0, 20), slice(20, 25), slice(25, 60), slice(60, 90))):
        csv(folder / "hospitals" / f"h{i}.csv", rows, agent=False)
    return DataSpec(str(folder / "hospitals"))


def parquet(folder: Path) -> DataSpec:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    columns = {f"x{j}": X[:, j] for j in range(J)} | {"label": Y, "agent": AGENT}
    pyarrow.parquet.write_table(pa.table(columns), folder / "t.parquet")
    return DataSpec(str(folder / "t.parquet"))


def numbered(folder: Path) -> DataSpec:
    arrays = {f"x_{a}": X[a == AGENT] for a in range(7)} | {f"y_{a}": Y[a == AGENT] for a in range(7)}
    np.savez(folder / "t.npz", **arrays)
    return DataSpec(str(folder / "t.npz"))


def archive(folder: Path) -> DataSpec:
    np.savez_compressed(folder / "t.npz", x=X, y=Y, agent=AGENT)
    return DataSpec(str(folder / "t.npz"))


SOURCES: dict[str, Callable[[Path], DataSpec]] = {
    "leaf": leaf, "table": table, "shuffled": cut("shuffled"), "dirichlet": cut("dirichlet"), "with test": with_test,
    "unknown labels": unknown_labels, "directory": directory, "parquet": parquet, "numbered": numbered,
    "archive": archive, "synthetic": lambda _: DataSpec("synthetic", agents=5), "heart": lambda _: DataSpec("heart"),
}  # fmt: skip

PUBLIC = ("n_classes", "name", "agents", "classes", "features", "bounds", "public_classes", "longest", "schema",
          "image", "columns", "target")  # fmt: skip


@pytest.mark.filterwarnings("ignore::tacit.errors.OwnerWarning")
@pytest.mark.parametrize("size", [2, 3, 9])
@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_shares_are_what_one_process_reads(
    tmp_path: Path, source: Callable[[Path], DataSpec], size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(npz, "RUN", 7 * J * 8)  # seven records at a time
    spec = source(tmp_path)
    whole = sources.load(spec)
    found = crew(size, lambda member: sources.load(spec, member))
    holders = np.array([[shard.here for shard in own.shards] for own in found])
    np.testing.assert_array_equal(holders.sum(0), 1)
    for own in found:
        assert [getattr(own, name) for name in PUBLIC] == [getattr(whole, name) for name in PUBLIC]
        for shard, expected in zip(own.shards, whole.shards, strict=True):
            assert shard.x.shape == expected.x.shape
            if shard.here:
                same(shard, expected)
    same(found[0].test, whole.test)
    assert all(own.test.x.shape == (0, whole.n_features) for own in found[1:])


def same(shard: object, expected: object) -> None:
    for part in ("x", "y", "present"):
        np.testing.assert_array_equal(getattr(shard, part), getattr(expected, part))


def test_only_files_with_users_of_ones_own_are_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec, parsed = leaf(tmp_path), []
    real = leaf_heads.parse
    monkeypatch.setattr(leaf_heads, "parse", lambda path: (parsed.append(path.parent.name), real(path))[1])

    def own(member: object) -> Federation:
        return sources.load(spec, member)  # type: ignore[arg-type]

    crew(7, own)
    assert parsed.count("train") < 7 * 3


def test_a_bad_cell_is_told_by_the_process_that_keeps_its_record(tmp_path: Path) -> None:
    path = csv(tmp_path / "t.csv")
    lines = path.read_text().splitlines()
    lines[N] = lines[N].replace(",", ",x", 1)
    path.write_text("\n".join(lines))
    with pytest.raises(DataError, match=rf"line {N + 1}"):
        crew(3, lambda member: sources.load(DataSpec(str(path)), member))


def test_owners_are_told_of_records_that_another_process_holds(tmp_path: Path) -> None:
    spec = unknown_labels(tmp_path)
    with pytest.warns(OwnerWarning) as caught:
        crew(3, lambda member: sources.load(spec, member))
    assert len({str(one.message) for one in caught}) > 1


def _some(rows: slice) -> Callable[[Path], Path]:
    return lambda folder: csv(folder / "t.csv", rows)


def _another_agent(folder: Path) -> Path:
    path = csv(folder / "t.csv")
    path.write_text(path.read_text().replace(",a6,", ",a7,"))
    return path


def _without_an_agent(folder: Path) -> Path:
    path = csv(folder / "t.csv")
    path.write_text("".join(line for line in path.read_text().splitlines(keepends=True) if ",a6," not in line))
    return path


def _a_shorter_leaf(folder: Path) -> Path:
    leaf(folder)
    (folder / "train" / "all_2.json").unlink()
    return folder


@pytest.mark.parametrize(
    ("first", "other"),
    [
        (table, _some(slice(0, N - 9))),
        (table, _another_agent),
        (table, _without_an_agent),
        (leaf, _a_shorter_leaf),
    ],
)
def test_processes_that_read_different_files_are_refused(tmp_path, first, other):
    """Each machine has its own copy of the source, and one is old: the agents would be dealt out in two ways."""
    (tmp_path / "old").mkdir()
    (tmp_path / "new").mkdir()
    new, old = first(tmp_path / "new"), str(other(tmp_path / "old"))
    with pytest.raises(DataError, match="same files"):
        crew(3, lambda own: sources.load(new if own.rank < 2 else replace(new, source=old), own))
