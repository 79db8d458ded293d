"""A number to predict: read by its public bounds, one record at a time, whatever a cell holds."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit.data.column_kinds import TargetColumn
from tacit.data.schema import parse
from tacit.data.schema_draft import draft_schema
from tacit.data.table import RawTable
from tacit.errors import DataError, IncompatibleError, OwnerWarning, SpecError
from tacit.types import Federation, Shard, Target

SCHEMA = """
missing_marks = ["?", "-9"]
[columns.age]
kind = "numeric"
lo = 0
hi = 100
[columns.days]
kind = "target"
lo = 0
hi = 60
"""


def table(path: Path, cells: list[str]) -> Path:
    rows = [f"{10 + i},{cell}" for i, cell in enumerate(cells)]
    path.write_text("\n".join(["age,days", *rows]) + "\n")
    return path


def load(path: Path, schema: bool = True, **options: object) -> Federation:
    if schema:
        (path.parent / "schema.toml").write_text(SCHEMA)
        options |= {"schema": path.parent / "schema.toml"}
    else:
        options |= {"label_column": "days", "target": (0.0, 60.0)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OwnerWarning)
        return tacit.load(path, agents=2, partition="contiguous", test_fraction=0.0, **options)


def outcomes(federation: Federation) -> list[float]:
    return np.concatenate([shard.y for shard in federation.shards]).tolist()


def there(federation: Federation) -> list[bool]:
    parts = [np.ones(len(s), bool) if s.present is None else s.present for s in federation.shards]
    return np.concatenate(parts).tolist()


@pytest.mark.parametrize("schema", [True, False])
def test_a_target_is_scaled_by_its_public_bounds(tmp_path: Path, schema: bool) -> None:
    found = load(table(tmp_path / "t.csv", ["0", "15", "30", "60"]), schema)
    assert outcomes(found) == [-1.0, -0.5, 0.0, 1.0]
    assert (found.target, found.n_classes, found.classes) == (Target(0.0, 60.0), 1, ())
    assert found.public_classes


@pytest.mark.parametrize("schema", [True, False])
@pytest.mark.parametrize(("cell", "y"), [("1e300", 1.0), ("-1e300", -1.0), ("inf", 1.0), ("61", 1.0), ("-3", -1.0)])
def test_a_number_outside_the_bounds_moves_to_their_end(tmp_path: Path, schema: bool, cell: str, y: float) -> None:
    found = load(table(tmp_path / "t.csv", ["30", cell, "30", "30"]), schema)
    assert outcomes(found) == [0.0, y, 0.0, 0.0]
    assert all(there(found))


@pytest.mark.parametrize("schema", [True, False])
@pytest.mark.parametrize("cell", ["", "nan", "a week", "1_0", "?"])
def test_a_record_without_a_number_is_absent_in_its_place_and_changes_no_other(
    tmp_path: Path, schema: bool, cell: str
) -> None:
    whole, odd = (load(table(tmp_path / "t.csv", ["6", other, "12", "60"]), schema) for other in ("9", cell))
    assert there(odd) == [True, False, True, True]
    for p, (before, after) in enumerate(zip(whole.shards, odd.shards, strict=True)):
        same = np.array([i != 1 for i in range(2 * p, 2 * p + 2)])
        np.testing.assert_array_equal(before.x[same], after.x[same])
        np.testing.assert_array_equal(before.y[same], after.y[same])
    assert not odd.shards[0].x[1].any()
    assert odd.shards[0].y[1] == 0.0
    assert (odd.n_records, odd.bounds) == (whole.n_records, whole.bounds)


def test_a_mark_of_the_schema_counts_as_missing_however_the_number_is_written(tmp_path: Path) -> None:
    assert there(load(table(tmp_path / "t.csv", ["6", "-9.0", "?", "60"]))) == [True, False, False, True]


def test_the_owner_alone_is_told_which_labels_hold_no_number(tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", ["6", "soon", "12", "60"])
    with pytest.warns(OwnerWarning, match="labels that hold no number: 1 record of agent '0'"):
        tacit.load(path, agents=2, label_column="days", target=(0.0, 60.0), test_fraction=0.0, partition="contiguous")


def test_a_test_record_without_a_number_is_left_out(tmp_path: Path) -> None:
    path, test = table(tmp_path / "t.csv", ["6", "3"]), table(tmp_path / "u.csv", ["", "60"])
    assert load(path, test=test).test.y.tolist() == [1.0]


@given(lo=st.floats(-1e12, 1e12), width=st.floats(1e-3, 1e12), share=st.floats(0, 1))
def test_a_number_comes_back_from_its_scale(lo: float, width: float, share: float) -> None:
    target = Target(lo, lo + width)
    value = min(max(lo + share * width, target.lo), target.hi)
    back = float(target.in_units(target.scaled(np.array([value])))[0])
    assert back == pytest.approx(value, abs=1e-9 * (abs(lo) + width))
    assert target.lo <= back <= target.hi


@given(value=st.floats(allow_nan=False), score=st.floats(allow_nan=False))
def test_what_is_stored_and_what_is_predicted_lie_within_the_bounds(value: float, score: float) -> None:
    target = Target(-2.5, 1e6)
    assert -1 <= target.scaled(np.array([value]))[0] <= 1
    assert target.lo <= target.in_units(np.array([score]))[0] <= target.hi


@pytest.mark.parametrize(("lo", "hi"), [(1.0, 1.0), (2.0, 1.0), (0.0, np.inf), (np.nan, 1.0), (-1e308, 1e308)])
def test_bounds_that_bound_nothing_are_refused(lo: float, hi: float) -> None:
    with pytest.raises(SpecError, match="two finite numbers, the lower first"):
        Target(lo, hi)
    with pytest.raises(SpecError, match="two finite numbers"):
        TargetColumn(lo, hi)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('kind = "target"\nlo = 0', "has no hi: a target column needs it"),
        ('kind = "target"\nlo = 5\nhi = 5', "columns.days: the bounds of the target"),
        ('kind = "target"\nlo = 0\nhi = 5\nclasses = ["a", "b"]', "unknown key of target column 'days' 'classes'"),
        ('kind = "label"\nclasses = ["a", "b"]\nlo = 0', "unknown key of label column 'days' 'lo'"),
        ('kind = "ignore"', 'no columns have kind = "label" or "target"'),
        ('kind = "target"\nlo = 0\nhi = 5\n[columns.y]\nkind = "label"\nclasses = ["a", "b"]',
         '2 columns have kind = "label" or "target"'),
    ],
)  # fmt: skip
def test_a_schema_that_declares_the_target_badly_is_refused(lines: str, message: str) -> None:
    text = f'[columns.age]\nkind = "numeric"\nlo = 0\nhi = 9\n[columns.days]\n{lines}\n'
    with pytest.raises(SpecError, match=message):
        parse(text)


def test_classes_and_bounds_of_one_label_are_refused(tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", ["6", "3"])
    with pytest.raises(IncompatibleError, match="not both: drop one"):
        tacit.load(path, agents=1, label_column="days", class_names=["3", "6"], target=(0.0, 9.0))
    with pytest.raises(IncompatibleError, match=r"declares the classes or the target.*--target-low"):
        load(path, target=(0.0, 9.0))
    with pytest.raises(IncompatibleError, match="is for tables, and this is synthetic data"):
        tacit.load("synthetic", target=(0.0, 9.0))


def test_records_are_not_dealt_by_a_number_as_if_it_were_a_class(tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", ["6", "3", "5", "4"])
    with pytest.raises(IncompatibleError, match="the label is a number: use shuffled or unequal"):
        tacit.load(path, agents=2, label_column="days", target=(0.0, 9.0), partition="dirichlet")


def test_labels_that_measure_something_are_pointed_to_a_target(tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", ["6.5", "3.25", "5.1", "4.0"])
    with pytest.raises(DataError, match="to predict the number itself, declare its public bounds"):
        tacit.load(path, agents=2, label_column="days")


def test_a_draft_takes_a_quantity_for_a_target_and_marks_its_bounds() -> None:
    raw = RawTable("stays.csv", {"age": np.arange(40.0) % 30, "days": np.arange(40) + 0.5})
    draft = draft_schema([raw], "stays.csv", "days")
    assert 'kind = "target"\nlo = 0.5  # READ FROM THE DATA' in draft.text
    assert parse(draft.text).target == Target(0.5, 39.5)


def test_a_tally_counts_what_training_would_change_in_a_target() -> None:
    cells = np.array(["5", "70", "", "soon", "-9", None], dtype=object)
    tally = TargetColumn(0.0, 60.0).tally(cells, ("-9",))
    assert (tally.clipped, tally.missing, tally.unreadable, tally.unknown) == (1, 3, 1, 0)


def test_a_federation_holds_labels_or_numbers_and_never_both() -> None:
    x, target = np.zeros((2, 1)), Target(0.0, 1.0)
    numbers, labels = Shard(x, np.array([0.5, -1.0])), Shard(x, np.array([0, 1]))
    assert (numbers.y.dtype, labels.y.dtype) == (np.float64, np.int64)
    with pytest.raises(DataError, match=r"labels must be integers 0\.\.K-1, got float64"):
        Federation((numbers,), labels, 2)
    with pytest.raises(DataError, match="labels must be numbers in"):
        Federation((labels,), numbers, 1, target=target)
    with pytest.raises(DataError, match="give n_classes = 1, and no classes"):
        Federation((numbers,), numbers, 2, target=target)
    for y in ([1.5, 0.0], [np.nan, 0.0]):
        with pytest.raises(DataError, match=r"numbers to predict lie in \[-1, 1\]"):
            Shard(x, np.array(y))
