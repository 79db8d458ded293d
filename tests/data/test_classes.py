"""Declared classes: no label of one record decides whether a run ends well, and what is read from labels says so."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.cli import main
from tacit.compare.comparison import held_out
from tacit.data import load
from tacit.data.classes import parse_classes
from tacit.data.transform import rescale_rows, with_intercept
from tacit.errors import DataError, IncompatibleError, OwnerWarning, SpecError
from tacit.run import build
from tacit.run.spec import Spec
from tacit.types import Federation, Shard
from tests.data.test_tables import WRITERS

AGENTS = ["a", "a", "a", "b", "b", "b"]
SCHEMA = """
[columns.u]
kind = "numeric"
lo = 0
hi = 10
[columns.{label}]
kind = "label"
classes = ["yes", "no"]
[columns.agent]
kind = "agent"
"""

Write = Callable[[Path, dict[str, list[Any]]], Path]


def columns(labels: list[Any], label: str = "label") -> dict[str, list[Any]]:
    return {"u": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], label: labels, "agent": AGENTS}


def folder(path: Path, content: dict[str, list[Any]]) -> Path:
    """A directory with a table for each agent."""
    path.mkdir()
    for agent in sorted(set(AGENTS)):
        rows = [i for i, name in enumerate(AGENTS) if name == agent]
        own = {name: [column[i] for i in rows] for name, column in content.items() if name != "agent"}
        WRITERS["csv"](path / f"{agent}.csv", own)
    return path


FORMATS: dict[str, tuple[str, Write]] = {
    **{kind: (f"t.{kind}", write) for kind, write in WRITERS.items()},
    "directory": ("t", folder),
}


def declared(tmp_path: Path, kind: str, labels: list[Any], how: str) -> tuple[str, dict[str, Any]]:
    """A table in some format, and the options that declare yes and no."""
    name, write = FORMATS[kind]
    source = str(write(tmp_path / name, columns(labels)))
    if how == "class_names":
        return source, {"class_names": ["yes", "no"]}
    text = SCHEMA.format(label="y" if kind == "npz" else "label")
    if kind == "directory":
        text = text.replace('[columns.agent]\nkind = "agent"', "")
    (tmp_path / "s.toml").write_text(text)
    return source, {"schema": tmp_path / "s.toml"}


HOW = pytest.mark.parametrize("how", ["class_names", "schema"])
KIND = pytest.mark.parametrize("kind", FORMATS)


@HOW
@KIND
@pytest.mark.parametrize("label", ["maybe", "", "0.5"])
def test_a_record_whose_label_names_no_class_is_absent_in_its_place(
    tmp_path: Path, kind: str, how: str, label: str
) -> None:
    source, options = declared(tmp_path, kind, ["yes", label, "yes", "no", "no", "yes"], how)
    with pytest.warns(OwnerWarning, match="1 record of agent 'a'.*tacit data check"):
        over = load(source, test_fraction=0.0, **options)
    assert [len(shard) for shard in over.shards] == [3, 3]
    assert over.shards[0].x[1].tolist() == [0]
    assert (over.shards[0].x[[0, 2]] > 0).all()
    assert [shard.y.tolist() for shard in over.shards] == [[0, 0, 0], [1, 1, 0]]
    assert over.classes == ("yes", "no")


@HOW
@KIND
def test_declared_classes_need_not_be_there(tmp_path: Path, kind: str, how: str) -> None:
    source, options = declared(tmp_path, kind, ["yes"] * 6, how)
    assert load(source, test_fraction=0.0, **options).n_classes == 2


def test_parquet_labels_that_are_null_are_absent_too(tmp_path: Path) -> None:
    path = WRITERS["parquet"](tmp_path / "t.parquet", columns([0, None, 1, 0, 1, 1]))
    with pytest.warns(OwnerWarning):
        over = load(str(path), class_names=["0", "1"], test_fraction=0.0)
    assert over.shards[0].x[:, 0].tolist() == [1, 0, 3]


def test_a_test_record_whose_label_names_no_class_is_left_out(tmp_path: Path) -> None:
    train = WRITERS["csv"](tmp_path / "t.csv", columns(["yes", "no"] * 3))
    test = WRITERS["csv"](tmp_path / "test.csv", {"u": [7.0, 8.0, 9.0], "label": ["yes", "", "no"]})
    with pytest.warns(OwnerWarning, match="1 test record"):
        over = load(str(train), test=str(test), class_names=["yes", "no"])
    assert over.test.x[:, 0].tolist() == [7, 9]
    odd = WRITERS["csv"](tmp_path / "odd.csv", columns(["odd"] * 6))
    with pytest.warns(OwnerWarning, match="2 test records"):
        assert len(load(str(odd), class_names=["yes", "no"], test_fraction=0.3).test) == 0


def test_an_absent_record_has_no_intercept_and_no_length(tmp_path: Path) -> None:
    path = WRITERS["csv"](tmp_path / "t.csv", columns(["yes", "odd", "no", "yes", "no", "no"]))
    with pytest.warns(OwnerWarning):
        over = load(str(path), class_names=["yes", "no"], test_fraction=0.0)
    wide = rescale_rows(with_intercept(over), "l2", 1.0, "unit")
    assert wide.shards[0].x[1].tolist() == [0, 0]
    assert (wide.shards[0].x[[0, 2], 1] > 0).all()


def test_an_absent_record_is_within_any_bounds_and_the_others_are_moved_into_them(tmp_path: Path) -> None:
    path = WRITERS["csv"](tmp_path / "t.csv", columns(["yes", "odd", "no", "yes", "no", "no"]))
    with pytest.warns(OwnerWarning):
        over = load(str(path), class_names=["yes", "no"], bounds=(1.0, 6.0), test_fraction=0.0)
    assert over.bounds == (0.0, 6.0)
    WRITERS["csv"](path, columns(["yes"] * 6))
    with pytest.warns(OwnerWarning, match="outside the declared range"):
        over = load(str(path), class_names=["yes", "no"], bounds=(3.0, 6.0), test_fraction=0.0)
    assert over.bounds == (0.0, 6.0)


def test_an_absent_record_does_not_judge_a_comparison(tmp_path: Path) -> None:
    path = WRITERS["csv"](tmp_path / "t.csv", {"u": list(range(1, 25)), "label": ["yes", "odd"] * 12})
    with pytest.warns(OwnerWarning):
        over = load(str(path), agents=1, partition="contiguous", class_names=["yes", "no"], test_fraction=0.0)
    judged = held_out(over)
    there = judged.shards[0].present
    assert there is not None
    assert len(there) == 20
    assert len(judged.test) == 12 - there.sum() < 4
    assert judged.test.x.all()


def test_the_features_of_an_absent_record_must_be_zero() -> None:
    with pytest.raises(DataError, match="absent record"):
        Shard(np.ones((2, 1)), np.array([0, 1]), present=np.array([True, False]))
    with pytest.raises(DataError, match="present"):
        Shard(np.ones((2, 1)), np.array([0, 1]), present=np.array([True]))


def test_sizes_that_labels_decide_do_not_decide_whether_a_test_set_can_be_held_out(tmp_path: Path) -> None:
    """Dealt by label, four records may be 3 + 1 or 2 + 2: a fifth of three is rounded to one, of two to none."""
    said = set()
    for labels in (["yes", "no"] * 2, ["yes"] * 4, ["yes"] * 3 + ["no"], ["no"] * 2 + ["yes"] * 2):
        path = WRITERS["csv"](tmp_path / "t.csv", {"u": [1.0, 2.0, 3.0, 4.0], "label": labels})
        for seed in range(5):
            with pytest.raises(DataError, match="hold out") as error:
                load(str(path), agents=2, partition="dirichlet", class_names=["yes", "no"], seed=seed)
            said.add(str(error.value))
    assert len(said) == 1


def train(labels: list[str], out: str, *more: str) -> tuple[int, set[str]]:
    """(exit code, the names of what stdout and result.json say)."""
    WRITERS["csv"](Path("t.csv"), columns(labels))
    run = ["train", "--data", "t.csv", "--set", "data.test_fraction=0", "--rounds", "3", "--out", out, "-q"]
    code = main([*run, *more])
    return code, set(json.loads(Path(out, "result.json").read_text())) if code == 0 else set()


def test_tables_that_differ_in_one_label_give_runs_of_one_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text(SCHEMA.format(label="label"))
    for how in (["--classes", "yes,no"], ["--schema", "s.toml"]):
        kinds = []
        for n, last in enumerate(("yes", "no", "zebra", "")):
            name = f"{how[0][2:]}-{n}"
            kinds.append(train(["yes"] * 5 + [last], name, *how))
            out, err = capsys.readouterr()
            assert ("owner's eyes" in err) == (n > 1)
            assert "zebra" not in out + err
            assert "owner" not in out
            written = [path.name for path in Path(name).iterdir()]
            kinds[-1] += (sorted(written), [line.split()[0] for line in out.splitlines()])  # type: ignore[operator]
        assert all(kind == kinds[0] for kind in kinds)
        assert kinds[0][0] == 0


@pytest.mark.parametrize("engine", ["fast", "plain"])
def test_an_absent_record_moves_no_gradient(tmp_path: Path, engine: str) -> None:
    path = WRITERS["csv"](tmp_path / "t.csv", columns(["yes", "odd", "no", "yes", "no", "no"]))
    values = {"data.source": str(path), "data.class_names": "yes,no", "data.intercept": True, "run.engine": engine}
    with pytest.warns(OwnerWarning):
        over = build.federation(Spec().with_values(values | {"data.test_fraction": 0.0}))
    shard = over.shards[0]
    problem = build.objective(Spec(), over)
    w = np.array([[0.3, -0.2], [0.1, 0.4]], np.float32)
    np.testing.assert_allclose(problem.gradient(w, shard), problem.gradient(w, shard.rows([0, 2])), rtol=1e-6)


# --- classes that are named, and those that are read


@pytest.mark.parametrize(("text", "classes"), [
    ("yes,no", ("yes", "no")), (" ill , well , unsure ", ("ill", "well", "unsure")), ("3", ("0", "1", "2")),
    ("1.0,2", ("1", "2")), ("3,", None), ("1", None), ("0", None), ("-3", None), ("yes", None), ("", None),
    ("yes,,no", None), ("yes,yes", None), ("1,1.0", None), ("2.5", None), ("1000001", None), ("²", None),
])  # fmt: skip
def test_classes_are_names_with_commas_or_their_number(text: str, classes: tuple[str, ...] | None) -> None:
    if classes is not None:
        assert parse_classes(text) == classes
        return
    with pytest.raises(SpecError, match=r"--classes|data\.class_names"):
        parse_classes(text)


def test_named_classes_are_public(tmp_path: Path) -> None:
    path = str(WRITERS["csv"](tmp_path / "t.csv", columns(["yes", "no"] * 3)))
    assert not load(path).public_classes
    over = build.federation(Spec().with_values({"data.source": path, "data.class_names": "no, yes"}))
    assert (over.public_classes, over.classes) == (True, ("no", "yes"))


def test_classes_are_named_once_and_where_they_mean_something(tmp_path: Path) -> None:
    path = str(WRITERS["csv"](tmp_path / "t.csv", columns(["yes", "no"] * 3)))
    (tmp_path / "s.toml").write_text(SCHEMA.format(label="label"))
    values = {"data.source": path, "data.class_names": "2", "data.schema": str(tmp_path / "s.toml")}
    with pytest.raises(IncompatibleError, match=r"declares the classes.*--classes"):
        build.federation(Spec().with_values(values))
    for source in ("mnist", "synthetic"):
        with pytest.raises(IncompatibleError, match=r"--classes.* is for tables"):
            build.federation(Spec().with_values({"data.source": source, "data.class_names": "2"}))
    with pytest.raises(IncompatibleError, match="--classes or --schema"):
        load(path, class_count=2)


def test_a_text_is_no_list_of_classes(tmp_path: Path) -> None:
    path = str(WRITERS["csv"](tmp_path / "t.csv", columns(["yes", "no"] * 3)))
    with pytest.raises(SpecError, match="list of names"):
        load(path, class_names="yes,no")


@KIND
def test_whole_numbers_of_more_than_twenty_values_are_no_classes_unless_named(tmp_path: Path, kind: str) -> None:
    name, write = FORMATS[kind]
    content = {"u": [float(i) for i in range(42)], "label": [i % 21 - 3 for i in range(42)], "agent": ["a", "b"] * 21}
    if kind == "directory":
        path = tmp_path / name
        path.mkdir()
        WRITERS["csv"](path / "a.csv", {key: column for key, column in content.items() if key != "agent"})
    else:
        path = write(tmp_path / name, content)
    with pytest.raises(DataError, match=r"21 different whole numbers: bin them.*--classes.* or a schema"):
        load(str(path))
    assert load(str(path), class_names=[str(k) for k in range(-3, 18)]).n_classes == 21


def test_twenty_numbers_or_many_names_are_classes(tmp_path: Path) -> None:
    for labels in ([i % 20 for i in range(42)], [f"c{i % 21}" for i in range(42)]):
        path = WRITERS["csv"](tmp_path / "t.csv", {"u": [1.0] * 42, "label": labels})
        assert load(str(path), agents=2).n_classes in (20, 21)


@pytest.mark.parametrize("labels", [
    [f"{i}" for i in range(99)] + ["?"],
    [f"{i}" for i in range(21)] + ["?", "na", "NULL"],
    [f"{1000 + 37 * i:,}" for i in range(498)],
    [f"{i:+}%" if i % 2 else f"{i:+}" for i in range(-155, 156)],
    [f"${i}.50" for i in range(30)] + ["free", "sold"],
    [f"{i} 000 €" for i in range(1, 40)],
], ids=["one mark", "marks of three kinds", "thousands", "per cent", "dollars and words", "euros"])  # fmt: skip
def test_a_quantity_is_no_list_of_classes_though_some_of_its_values_are_not_plain_numbers(
    tmp_path: Path, labels: list[str]
) -> None:
    path = WRITERS["csv"](tmp_path / "t.csv", {"u": [1.0] * len(labels), "label": labels})
    with pytest.raises(DataError, match=r"different (whole )?numbers: bin them.*; if .*--classes.* or a schema"):
        load(str(path), agents=2)
    assert load(str(path), agents=2, class_names=labels).n_classes == len(labels)


def test_the_refusal_of_a_quantity_names_its_smallest_and_its_largest_value(tmp_path: Path) -> None:
    labels = ["?", *(f"{1000 * i:,}" for i in range(1, 31))]
    path = WRITERS["csv"](tmp_path / "t.csv", {"u": [1.0] * len(labels), "label": labels})
    with pytest.raises(DataError, match="the labels are 30 different whole numbers: bin them"):
        load(str(path), agents=2)


@pytest.mark.parametrize("labels", [
    [f"{i}" for i in range(20)] + ["?"],
    [f"{i}" for i in range(20)] + [f"word {i}" for i in range(3)],
    [f"{10 * i}-{10 * i + 9}" for i in range(21)],
    [f"2024-01-{i:02}" for i in range(1, 31)],
], ids=["twenty and a mark", "numbers and words", "ranges", "dates"])  # fmt: skip
def test_names_that_hold_digits_are_classes(tmp_path: Path, labels: list[str]) -> None:
    path = WRITERS["csv"](tmp_path / "t.csv", {"u": [1.0] * len(labels), "label": labels})
    assert load(str(path), agents=2).n_classes == len(labels)


def leaf(path: Path, train: list[Any], test: list[Any]) -> str:
    """A LEAF directory with one user, whose records have these labels."""
    for part, labels in (("train", train), ("test", test)):
        (path / part).mkdir()
        users = {"a": {"x": [[0.1 * i] for i in range(len(labels))], "y": labels}}
        content = {"users": ["a"], "num_samples": [len(labels)], "user_data": users}
        (path / part / "all.json").write_text(json.dumps(content))
    return str(path)


def test_leaf_with_a_declared_number_of_classes_refuses_no_label(tmp_path: Path) -> None:
    leaf(tmp_path, [0, 7, -1], [0, 9, 1])
    with pytest.raises(DataError, match="labels must be >= 0"):
        load(str(tmp_path))
    with pytest.warns(OwnerWarning, match="2 records of agent 'a', 1 test record"):
        over = load(str(tmp_path), class_count=2)
    assert over.shards[0].x[1:].tolist() == [[0], [0]]
    assert over.test.y.tolist() == [0, 1]


@pytest.mark.parametrize("label", [0.5, 10**19, -(10**30), None, "a", "1", True, float("nan"), float("inf"), [1], {}])
def test_a_leaf_label_of_any_kind_is_absent_in_its_place_where_the_classes_are_declared(
    tmp_path: Path, label: Any
) -> None:
    path = leaf(tmp_path, [1, label, 0], [1, label])
    with pytest.warns(OwnerWarning, match="1 record of agent 'a', 1 test record"):
        over = load(path, class_count=2, invert=False)
    (shard,) = over.shards
    assert (shard.y.tolist(), shard.x[1].tolist()) == ([1, 0, 0], [0])
    assert shard.present is not None
    assert shard.present.tolist() == [True, False, True]
    assert over.test.y.tolist() == [1]


def test_a_whole_leaf_label_counts_however_it_is_written(tmp_path: Path) -> None:
    assert load(leaf(tmp_path, [1.0, 0, 2], [2.0]), class_count=3).shards[0].y.tolist() == [1, 0, 2]


def test_nothing_is_told_where_every_label_is_known(tmp_path: Path) -> None:
    path = WRITERS["csv"](tmp_path / "t.csv", columns(["yes", "no"] * 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        over = load(str(path), class_names=["yes", "no"])
    assert isinstance(over, Federation)
    assert all(shard.present is None for shard in over.shards)
