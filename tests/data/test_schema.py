"""Schemas: any table becomes features in [0, 1], row by row, from public numbers alone."""

from __future__ import annotations

import csv
import dataclasses
import math
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, reject
from hypothesis import strategies as st

from tacit.data import load
from tacit.data.column_kinds import (
    KINDS,
    CategoricalColumn,
    DateColumn,
    FeatureColumn,
    LabelColumn,
    NumericColumn,
    Tally,
    TextColumn,
)
from tacit.data.columns.cross import Cross
from tacit.data.columns.date import PARTS
from tacit.data.columns.encoding import Counts, FeatureBlock
from tacit.data.encoded_table import count, encode, read_encoded
from tacit.data.formats import read_raw
from tacit.data.schema import OUTCOMES, Schema, parse
from tacit.data.table import RawTable
from tacit.data.transform import with_intercept
from tacit.errors import DataError, IncompatibleError, SpecError
from tacit.run import build
from tacit.run.spec import Spec
from tacit.types import Array, Norm

PATIENTS = """
missing_marks = ["?", -9]

[columns.age]
kind = "numeric"
lo = 20
hi = 120

[columns.smoker]
kind = "categorical"
values = ["never", "former", "current"]

[columns.stage]
kind = "categorical"
values = [1, 2, 3]
drop = 1
other = 3
missing = 2

[columns.outcome]
kind = "label"
classes = ["ill", "well", "unsure"]

[columns.hospital]
kind = "agent"

[columns.name]
kind = "ignore"
"""

DAYS = 'kind = "date"\nlo = 2020-01-01\nhi = 2021-01-01'

RECORDS: dict[str, list[Any]] = {
    "name": ["Ada", "Bo", "Cy", "Di", "Ed", "Flo"],
    "hospital": ["a", "a", "a", "b", "b", "b"],
    "age": ["20", "120", "70.0", "-1", "?", "old"],
    "smoker": ["never", "former", "current", "pipe", "", "?"],
    "stage": ["1", "2.0", "3", "4", "-9", ""],
    "outcome": ["ill", "well", "ill", "well", "ill", "well"],
}
ENCODED = [
    [0, 1, 0, 0, 0, 0],
    [1, 0, 1, 0, 1, 0],
    [0.5, 0, 0, 1, 0, 1],
    [0, 0, 0, 0, 0, 1],  # clipped, unknown to zeros, unknown to `other`
    [0.5, 0, 0, 0, 1, 0],  # missing to the middle, to zeros, to `missing`
    [0.5, 0, 0, 0, 1, 0],  # unreadable counts as missing
]


def write_csv(path: Path, columns: dict[str, list[Any]] = RECORDS) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(columns)
        rows.writerows(zip(*columns.values(), strict=True))
    return path


def write_schema(path: Path, text: str = PATIENTS) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def raw(columns: dict[str, list[Any]] = RECORDS) -> RawTable:
    return RawTable("t.csv", {name: np.array(column, dtype=object) for name, column in columns.items()})


def without(*names: str) -> dict[str, list[Any]]:
    return {name: column for name, column in RECORDS.items() if name not in names}


# --- the encoding


def test_each_cell_is_encoded_by_its_declaration_and_what_changed_is_counted() -> None:
    table = encode(raw(), parse(PATIENTS), training=True)
    counts = table.counts
    assert table.x.tolist() == ENCODED
    assert table.x.dtype == np.float32
    assert table.features == ("age", "smoker=never", "smoker=former", "smoker=current", "stage=2", "stage=3")
    assert counts.records == 6
    assert counts.columns == {
        "age": Tally(clipped=1, missing=1, unreadable=1),
        "smoker": Tally(missing=2, unknown=1),
        "stage": Tally(missing=2, unknown=1),
    }


TEXT = st.one_of(
    st.text(max_size=5),
    st.datetimes().map(str),
    st.sampled_from(["2020-02-29", "2020-02-30", "2020", "31.12.2019", "2020-02-29T25:00", "2020-02-29 10:00 PM"]),
    st.sampled_from(["the heart, the HEART", "!!!", "\ud800", "a\0", "level", "missing", "other"]),
    st.floats().map(repr),
    st.integers(-(10**400), 10**400).map(lambda n: f"{n:.1e}" if abs(n) < 10**300 else "9" * 400),
    st.sampled_from(["a", "b", "?", " 3.0 ", "3", "nan", "-inf", "1e999", "True", "1_000", "٣"]),
)
FINITE = st.floats(-1e300, 1e300)
NUMERIC = st.tuples(FINITE, FINITE).filter(lambda ends: ends[0] < ends[1]).map(lambda ends: NumericColumn(*ends))
CATEGORICAL = st.lists(st.sampled_from(["a", "b", "3", "c", "0.5", "level"]), min_size=2, unique=True).flatmap(
    lambda values: st.builds(
        CategoricalColumn,
        st.just(tuple(values)),
        *(st.none() | st.sampled_from(values) for _ in ("drop",)),
        *(st.none() | st.just("level") | st.sampled_from(values) for _ in ("other", "missing")),
        st.sampled_from([(), ("unsure", "-1")]),
    )
)
DATE = st.builds(
    DateColumn,
    st.sampled_from(["1000", "2010-01-01"]),
    st.sampled_from(["2020-02-28", "2024-05-06T07:08"]),
    st.lists(st.sampled_from(PARTS), unique=True).map(tuple),
    st.sampled_from([None, "%d.%m.%Y", "%Y-%m-%d %H:%M:%S"]),
    st.sampled_from([None, "level"]),
)
WORDS = st.builds(TextColumn, st.integers(2, 9), st.integers(0, 3))


@st.composite
def any_numeric(draw: st.DrawFn) -> NumericColumn:
    """A number that is bent in any way."""
    ends = ((FINITE, FINITE), (st.just(0.0), FINITE), (st.floats(1, 99), st.floats(1, 99)))
    lo, hi = sorted(draw(st.one_of(*(st.tuples(*two) for two in ends))))
    assume(lo < hi)
    bent = draw(st.sampled_from([{}, {"bins": 2}, {"bins": 7}, {"spline": 2}, {"spline": 5}, {"edges": 2}]))
    if "edges" in bent:
        bent = {"edges": tuple(sorted(draw(st.lists(st.floats(lo, hi), min_size=1, max_size=3))))}
    missing = draw(st.none() | st.just("level") | st.floats(lo, hi))
    scale = draw(st.sampled_from([None, "linear", "log"]))
    try:
        return NumericColumn(lo, hi, missing, scale=scale, marks=("7",), **bent)
    except SpecError:  # ends or edges that are too close, or a log scale of what is negative
        reject()


CELLS = st.one_of(
    TEXT, st.none(), st.booleans(), st.floats(), st.integers(), st.binary(max_size=4), st.dates(), st.datetimes(),
    st.just(Decimal("1e400")),
)  # fmt: skip


@st.composite
def tables(draw: st.DrawFn) -> tuple[Schema, dict[str, Array]]:
    """Any schema, and columns of text or of numbers that need not fit it."""
    kinds = draw(st.lists(any_numeric() | CATEGORICAL | DATE | WORDS, min_size=1, max_size=4))
    declared = {f"c{j}": kind for j, kind in enumerate(kinds)}
    crossed = [name for name, kind in declared.items() if kind.levels() is not None]
    crosses = {"both": Cross(tuple(crossed))} if len(crossed) > 1 and draw(st.booleans()) else {}
    n = draw(st.integers(1, 6))
    columns = {}
    for name in declared:
        texts = st.lists(CELLS, min_size=n, max_size=n).map(lambda found: np.array(found, dtype=object))
        numbers = st.lists(st.floats(width=32), min_size=n, max_size=n).map(lambda found: np.array(found, np.float32))
        columns[name] = draw(texts | numbers)
    return Schema(declared | {"y": LabelColumn(("0", "1"))}, marks=("?", "-9"), crosses=crosses), columns


@given(tables())
def test_any_table_becomes_features_within_the_public_bounds(found: tuple[Schema, dict[str, Array]]) -> None:
    schema, columns = found
    table = encode(RawTable("t", columns), schema)
    counts = table.counts
    assert table.x.shape == (counts.records, len(schema.features))
    assert table.x.dtype == np.float32
    low, high = schema.bounds
    assert table.x.min() >= low
    assert table.x.max() <= high == 1
    assert (low < 0) is any(isinstance(kind, TextColumn) for kind in schema.encoded.values())
    assert [one.start for one in schema.made] == [0, *(one.stop for one in schema.made[:-1])]
    assert schema.made[-1].stop == len(schema.features)
    for one in schema.made:
        block = table.x[:, one.start : one.stop].astype(np.float64)
        assert np.sqrt(np.square(block).sum(axis=1)).max() <= one.bound
    for norm, most in zip((Norm.L1, Norm.L2), schema.longest, strict=True):
        assert norm.of_rows(table.x).max() <= most


@given(tables(), st.randoms(use_true_random=False))
def test_a_row_depends_on_its_own_record_alone(found: tuple[Schema, dict[str, Array]], random: Any) -> None:
    schema, columns = found
    n = len(columns["c0"])
    whole = encode(RawTable("t", columns), schema)
    counts = whole.counts
    order = random.sample(range(n), n)
    shuffled = encode(RawTable("t", {name: column[order] for name, column in columns.items()}), schema)
    same = shuffled.counts
    assert np.array_equal(shuffled.x, whole.x[order])
    assert same == counts
    alone = [encode(RawTable("t", {k: c[[i]] for k, c in columns.items()}), schema) for i in range(n)]
    assert np.array_equal(np.concatenate([table.x for table in alone]), whole.x)
    assert sum((table.counts for table in alone), Counts(0, {})) == counts


@given(NUMERIC, FINITE)
def test_numbers_are_scaled_in_proportion_and_clipped_outside(kind: NumericColumn, value: float) -> None:
    x, tally = kind.encode(np.array([value, kind.lo, kind.hi]), ())
    expected = (min(max(value, kind.lo), kind.hi) - kind.lo) / (kind.hi - kind.lo)
    assert x[:, 0].tolist() == pytest.approx([expected, 0, 1], rel=1e-6, abs=1e-30)
    assert tally == Tally(clipped=not kind.lo <= value <= kind.hi)


def test_the_row_bounds_are_reached() -> None:
    schema = parse(PATIENTS)
    table = encode(raw({"age": [120], "smoker": ["former"], "stage": [3]}), schema)
    assert tuple(float(norm.of_rows(table.x)[0]) for norm in (Norm.L1, Norm.L2)) == schema.longest
    assert schema.longest == (3, math.sqrt(3))


def test_a_missing_number_can_be_declared_in_the_units_of_the_column() -> None:
    x, tally = NumericColumn(0, 10, missing=9).encode(np.array(["", "1"], dtype=object), ())
    assert x[:, 0].tolist() == pytest.approx([0.9, 0.1])
    assert tally == Tally(missing=1)


def test_a_numeric_mark_is_missing_however_it_is_written() -> None:
    kind, marks = NumericColumn(-10, 10), ("-9",)
    texts, _ = kind.encode(np.array(["-9", "-9.0", "-9e0"], dtype=object), marks)
    numbers, tally = kind.encode(np.array([-9.0, -9, -9]), marks)
    assert texts.tolist() == numbers.tolist() == [[0.5]] * 3
    assert tally == Tally(missing=3)


def test_csv_parquet_and_npz_encode_alike(tmp_path: Path) -> None:
    text = """
        [columns.u]
        kind = "numeric"
        lo = 0
        hi = 4
        [columns.c]
        kind = "categorical"
        values = [1, 2]
        [columns.y]
        kind = "label"
        classes = [0, 1]
        [columns.agent]
        kind = "agent"
    """
    u, c, y, agent = [1.5, 9.0, math.nan], [1, 2, 3], [0, 1, 1], ["b", "a", "b"]
    write_csv(tmp_path / "t.csv", {"u": ["1.5", "9", ""], "c": c, "y": y, "agent": agent})
    pq.write_table(pa.table({"u": [1.5, 9.0, None], "c": c, "y": y, "agent": agent}), tmp_path / "t.parquet")
    np.savez(tmp_path / "t.npz", x=np.array([u, c]).T, features=["u", "c"], y=y, agent=agent)
    for kind in ("csv", "parquet", "npz"):
        table = read_encoded(tmp_path / f"t.{kind}", parse(text), training=True)
        assert table.x.tolist() == [[0.375, 1, 0], [1, 0, 1], [0.5, 0, 0]]
        assert table.labels is not None
        assert table.agents is not None
        assert (table.labels.tolist(), table.agents.tolist()) == (["0", "1", "1"], ["b", "a", "b"])
        counts = count(read_raw(tmp_path / f"t.{kind}"), parse(text)).columns
        assert counts == {"u": Tally(clipped=1, missing=1), "c": Tally(unknown=1), "y": Tally(), "agent": Tally()}


KINDS_OF_NUMBERS = {
    "bins": "kind = 'numeric'\nlo = 0\nhi = 9\nbins = 4\nmissing = 'level'",
    "log": "kind = 'numeric'\nlo = 0\nhi = 9\nscale = 'log'",
    "spline": "kind = 'numeric'\nlo = 0\nhi = 9\nspline = 4\nmarks = [3]",
    "list": "kind = 'categorical'\nvalues = [1, 2]\nother = 'level'\nmissing = 'level'",
    "year": "kind = 'date'\nlo = 1000\nhi = 3000\nmissing = 'level'",
    "words": "kind = 'text'\nsize = 5",
}


@pytest.mark.parametrize("kind", KINDS_OF_NUMBERS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint8, np.bool_])
def test_text_compiled_text_and_numbers_of_any_type_encode_alike(tmp_path: Path, kind: str, dtype: type) -> None:
    schema = parse(f"[columns.c]\n{KINDS_OF_NUMBERS[kind]}\n[columns.y]\nkind = 'label'\nclasses = [0, 1]")
    values = np.array([0, 1, 2, 3, 9, 200, 2020] * 20).astype(dtype)
    if values.dtype.kind == "f":
        values[::8] = np.nan
        values[1::8] = np.inf
        values[2::8] = 0.1
    texts = ["" if v != v else str(v).lower() for v in values.tolist()]
    write_csv(tmp_path / "t.csv", {"c": texts, "y": [0] * len(texts)})
    if dtype is np.float32:  # such a column has other digits than those that it was read from
        texts = ["" if v != v else repr(float(v)) for v in values]
        write_csv(tmp_path / "t.csv", {"c": texts, "y": [0] * len(texts)})
    numbers = encode(RawTable("t", {"c": values}), schema)
    text = encode(RawTable("t", {"c": np.array(texts, dtype=object)}), schema)
    np.testing.assert_array_equal(text.x, numbers.x)
    np.testing.assert_array_equal(read_encoded(tmp_path / "t.csv", schema).x, numbers.x)


def test_columns_of_bytes_lists_and_nulls_can_be_ignored_or_missing(tmp_path: Path) -> None:
    columns = {"u": pa.array([None, None], pa.int64()), "b": [b"\xff", b""], "l": [[1], None], "y": [0, 1]}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    unused = 'b={kind="ignore"}\nl={kind="ignore"}'
    text = '[columns]\nu={kind="numeric",lo=0,hi=4}\ny={kind="label",classes=[0,1]}\n' + unused
    table = read_encoded(tmp_path / "t.parquet", parse(text), training=True)
    assert table.x.tolist() == [[0.5], [0.5]]
    counts = count(read_raw(tmp_path / "t.parquet"), parse(text))
    assert counts.columns == {"u": Tally(missing=2), "y": Tally()}


def test_truth_values_beside_nulls_are_spelled_as_truth_values_alone(tmp_path: Path) -> None:
    text = '[columns]\nu={kind="categorical",values=["true","false"]}\ny={kind="label",classes=[0,1]}'
    for name, cells in (("alone", [True, False]), ("beside", [True, False, None])):
        pq.write_table(pa.table({"u": cells, "y": [0, 1, 1][: len(cells)]}), tmp_path / f"{name}.parquet")
        x = read_encoded(tmp_path / f"{name}.parquet", parse(text), training=True).x
        assert x.tolist() == [[1, 0], [0, 1], [0, 0]][: len(cells)]


def test_a_feature_of_an_npz_cannot_be_called_as_its_labels(tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", x=[[1.0]], y=[0], features=["y"])
    with pytest.raises(DataError, match="2 columns are named 'y'"):
        list(read_raw(tmp_path / "t.npz"))


def test_numbered_arrays_of_an_npz_are_agents(tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", x_0=[[1.0], [2.0]], y_0=[0, 1], x_7=[[3.0]], y_7=[1])
    text = '[columns]\nx0={kind="numeric",lo=0,hi=4}\ny={kind="label",classes=[0,1]}\nagent={kind="agent"}'
    table = read_encoded(tmp_path / "t.npz", parse(text), training=True)
    assert table.agents is not None
    assert (table.x.ravel().tolist(), table.agents.tolist()) == ([0.25, 0.5, 0.75], ["0", "0", "7"])
    assert count(read_raw(tmp_path / "t.npz"), parse(text)).records == 3


# --- what a schema may say


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("lo = 20", "low = 20", "unknown key of numeric column 'age' 'low': did you mean 'lo'?"),
        ("drop = 1", "dropp = 1", "did you mean 'drop'?"),
        ("missing_marks", "missing_mark", "unknown key 'missing_mark': did you mean 'missing_marks'?"),
        ('kind = "numeric"', 'kind = "numerical"', "did you mean 'numeric'?"),
        ('kind = "numeric"', "", "columns.age needs a kind: one of numeric"),
        ("hi = 120", "hi = 20", "columns.age: lo must be less than hi"),
        ("hi = 120", "hi = inf", "both finite"),
        ("hi = 120", "hi = nan", "both finite"),
        ("hi = 120", "hi = true", "hi takes a number, got True"),
        ("hi = 120", 'hi = "120"', "hi takes a number"),
        ("hi = 120", f"hi = 1{'0' * 400}", "hi is beyond the range"),
        ("hi = 120", "", "columns.age has no hi"),
        ("hi = 120", "hi = 120\nmissing = 121", "missing = 121 lies outside"),
        ("hi = 120", "hi = 120\nread_from_data = 1", "takes true or false"),
        ("hi = 120", "hi = 120\nbins = 1", "columns.age: bins takes a whole number from 2 to 4096, got 1"),
        ("hi = 120", "hi = 120\nbins = 4097", "from 2 to 4096"),
        ("hi = 120", "hi = 120\nbins = 2.0", "bins takes a whole number, got 2.0"),
        ("hi = 120", "hi = 120\nbins = true", "bins takes a whole number, got True"),
        ("hi = 120", "hi = 120\nspline = 1", "spline takes a whole number from 2"),
        ("hi = 120", "hi = 120\nspline = 3\nbins = 4", "bins and spline each say what becomes of the number"),
        ("hi = 120", "hi = 120\nedges = [30]\nbins = 4", "bins and edges each say"),
        ("hi = 120", "hi = 120\nedges = 30", "edges takes a list of numbers"),
        ("hi = 120", 'hi = 120\nedges = ["30"]', "edges takes a number, got '30'"),
        ("hi = 120", "hi = 120\nedges = [50, 30]", "edges must increase and lie between lo = 20 and hi = 120"),
        ("hi = 120", "hi = 120\nedges = [20, 30]", "which are ends already"),
        ("hi = 120", "hi = 120\nedges = [30, 130]", "edges must increase and lie between"),
        ("hi = 120", "hi = 120\nedges = [nan]", "edges must increase"),
        ("hi = 120", 'hi = 120\nscale = "ln"', "scale takes 'linear' or 'log', got 'ln'"),
        ("lo = 20", 'lo = -1\nscale = "log"', "a log scale needs lo >= 0, got lo = -1"),
        ("hi = 120", 'hi = 120\nscale = "log"\nedges = [30]', "a log scale changes nothing"),
        ("hi = 120", "hi = 20.000000000000004\nbins = 9", "too close for so many bins or knots"),
        ("lo = 20", 'lo = 119.99999999999999\nscale = "log"', "too close for a log scale"),
        ("hi = 120", 'hi = 120\nmissing = "lvl"', "missing takes a number or \"level\", got 'lvl'"),
        ("hi = 120", "hi = 120\nmarks = 0", "marks takes a list"),
        ("drop = 1", 'drop = "level"', "drop = 'level' is not among the values"),
        ("drop = 1", "marks = [2]", "columns.stage: '2' is a value and a missing mark"),
        ('kind = "ignore"', 'kind = "date"\nlo = 2020-01-01', "columns.name has no hi: a date column needs it"),
        ('kind = "ignore"', 'kind = "date"\nlo = 2020-01-01\nhi = 2020-01-01', "lo must be before hi"),
        ('kind = "ignore"', 'kind = "date"\nlo = "1.1.2020"\nhi = 2020-01-01', "'1.1.2020' is no date"),
        ('kind = "ignore"', f"{DAYS}\nparts = ['years']", "unknown part of a date 'years': did you mean 'year'?"),
        ('kind = "ignore"', f"{DAYS}\nparts = ['year', 'year']", "parts lists one value 2 times, at places 1 and 2"),
        ('kind = "ignore"', f"{DAYS}\nmissing = 3", "missing takes \"level\" here"),
        ('kind = "ignore"', f"{DAYS}\nformat = '%d.%m'", "must say the year"),
        ('kind = "ignore"', f"{DAYS}\nformat = '%Y %Y'", "each thing once"),
        ('kind = "ignore"', f"{DAYS}\nformat = '%Q %Y'", "holds %Q: use %Y"),
        ('kind = "ignore"', f"{DAYS}\nformat = '%Y %'", "holds %: use %Y"),
        ('kind = "ignore"', f"{DAYS}\nbins = 3", "unknown key of date column 'name' 'bins'"),
        ('kind = "ignore"', 'kind = "text"\nsize = 1', "size takes a whole number from 2 to 65536, got 1"),
        ('kind = "ignore"', 'kind = "text"\nseed = -1', "seed takes a whole number from 0"),
        ('classes = ["ill", "well", "unsure"]', "", "classes needs at least 2"),
        ('classes = ["ill"', 'groups = { a = [1], b = [2] }\nclasses = ["ill"', "drop the list of classes"),
        ('classes = ["ill", "well", "unsure"]', "groups = { a = [1], b = [1.0] }", "groups lists one value 2 times"),
        ('classes = ["ill", "well", "unsure"]', "groups = { a = [1], b = [] }", "the group 'b' needs at least 1"),
        ('classes = ["ill", "well", "unsure"]', "groups = { a = [1, 2] }", "classes needs at least 2"),
        ('classes = ["ill", "well", "unsure"]', "groups = [1]", "groups takes classes and their labels"),
        ("[1, 2, 3]", "[]", "columns.stage: values needs at least 2 of them, got 0"),
        ("[1, 2, 3]", "[1]", "values needs at least 2"),
        ('["never", "former", "current"]', "[]", "values needs at least 1 of them, got 0"),
        ("[1, 2, 3]", '[1, 2, 3, "3.0"]', "values lists one value 2 times, at places 3 and 4"),
        ("[1, 2, 3]", '[1, 2, 3, " "]', "values holds an empty text"),
        ("[1, 2, 3]", "[1, 2, true]", "write it in quotes"),
        ("[1, 2, 3]", '"1, 2, 3"', "values takes a list"),
        ("drop = 1", "drop = 5", "drop = '5' is not among the values"),
        ("other = 3", "other = 5", "other = '5' is not among the values"),
        ('"unsure"]', '"ill"]', "classes lists one value 2 times, at places 1 and 3"),
        ('["ill", "well", "unsure"]', '["ill"]', "classes needs at least 2"),
        ('kind = "label"\nclasses = ["ill", "well", "unsure"]', 'kind = "ignore"', 'no columns have kind = "label"'),
        ('kind = "ignore"', 'kind = "agent"', '2 columns have kind = "agent"'),
        ('["?", -9]', '["never"]', "'never' is a value of 'smoker' and a missing mark"),
        ("[columns.age]", '[columns."stage=2"]', "2 features would be called 'stage=2'"),
        ("[columns.age]", "[columns.age", "is not TOML"),
        ("[columns.name]", "[columns]\nx = 3\n[columns.name]", "not TOML|columns.x is 3"),
    ],
)  # fmt: skip
def test_a_bad_schema_is_named_with_its_place(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert old in PATIENTS
    path = write_schema(tmp_path / "s.toml", PATIENTS.replace(old, new, 1))
    with pytest.raises(SpecError) as error:
        load(str(write_csv(tmp_path / "t.csv")), schema=path)
    assert re.search("|".join(map(re.escape, says.split("|"))), str(error.value))
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", ["", "columns = 3", "[columns]", '[columns]\ny = {kind="label",classes=[0,1]}'])
def test_a_schema_without_features_is_refused(text: str) -> None:
    with pytest.raises(SpecError, match="no column"):
        parse(text)


def test_an_underscore_in_a_number_makes_it_unreadable_here_as_in_tables_without_schema() -> None:
    x, tally = NumericColumn(0, 20).encode(np.array(["1_0", "10"], dtype=object), ())
    assert tally == Tally(unreadable=1)
    assert x.tolist() == [[0.5], [0.5]]


def test_an_unreadable_schema_is_refused(tmp_path: Path) -> None:
    table = str(write_csv(tmp_path / "t.csv"))
    with pytest.raises(SpecError, match="cannot read"):
        load(table, schema=tmp_path / "absent.toml")
    (tmp_path / "s.toml").write_bytes(b"\xff")
    with pytest.raises(SpecError, match="is not TOML"):
        load(table, schema=tmp_path / "s.toml")


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        (without("age", "smoker"), r"t\.csv lacks 'age', 'smoker' of schema: add"),
        (without("outcome"), "lacks 'outcome'"),
        (without("hospital"), "lacks 'hospital'"),
        (RECORDS | {"weight": [1] * 6}, r"t\.csv has 'weight', not in schema: declare"),
    ],
)
def test_columns_that_do_not_match_are_named(columns: dict[str, list[Any]], says: str) -> None:
    with pytest.raises(DataError, match=says):
        encode(raw(columns), parse(PATIENTS), training=True)


def test_ignored_columns_may_be_absent_and_predicting_needs_features_only() -> None:
    schema = parse(PATIENTS)
    assert encode(raw(without("name")), schema, training=True).x.tolist() == ENCODED
    table = encode(raw(without("name", "outcome", "hospital") | {"weight": [1] * 6}), schema)
    assert table.x.tolist() == ENCODED
    assert table.labels is None
    assert table.agents is None
    with pytest.raises(DataError, match="lacks 'age'"):
        encode(raw(without("age")), schema)


# --- labels that mean one class together


def test_labels_in_groups_are_the_class_of_their_group_and_the_name_of_a_group_is_no_label() -> None:
    text = PATIENTS.replace('classes = ["ill", "well", "unsure"]', 'groups = { well = [0], ill = [1, 2, "bad"] }')
    schema = parse(text)
    assert schema.classes == ("well", "ill")
    records = raw(RECORDS | {"outcome": ["0", "1.0", 2, "bad", "ill", ""]})
    table = encode(records, schema, training=True)
    assert table.labels is not None
    assert table.labels.tolist() == ["well", "ill", "ill", "ill", "", ""]
    assert count([records], schema).columns["outcome"] == Tally(missing=1, unknown=1)


# --- federations


def test_a_federation_knows_what_the_schema_declares_and_no_counts(tmp_path: Path) -> None:
    schema = write_schema(tmp_path / "s.toml")
    federation = load(str(write_csv(tmp_path / "t.csv")), schema=schema, test_fraction=0.0)
    assert federation.classes == ("ill", "well", "unsure")  # the last is in no record
    assert federation.features == parse(PATIENTS).features
    assert (federation.bounds, federation.longest) == ((0.0, 1.0), (3, math.sqrt(3)))
    assert federation.agents == ("a", "b")
    assert np.concatenate([shard.x for shard in federation.shards]).tolist() == ENCODED
    assert federation.schema == PATIENTS
    held = [getattr(federation, field.name) for field in dataclasses.fields(federation)]
    assert not any(isinstance(value, Counts | Tally) for value in held)


EVERY = f"""
[columns.age]
kind = "numeric"
lo = 20
hi = 120
missing = "level"
[columns.smoker]
kind = "categorical"
values = ["never", "former"]
other = "level"
[columns.stage]
kind = "numeric"
lo = 1
hi = 4
spline = 3
[columns.name]
kind = "text"
size = 8
[columns.day]
{DAYS}
[columns.outcome]
kind = "label"
groups = {{ ill = ["ill"], well = ["well"] }}
[columns.hospital]
kind = "agent"
[crosses]
age_smoker = ["age", "smoker"]
"""


def test_every_kind_comes_through_the_feature_map_of_columns_within_its_bounds(tmp_path: Path) -> None:
    days = ["2020-01-31", "2020-06-01T10:00", "never", "", "1000-01-01", "31.1.2020"]
    table = write_csv(tmp_path / "t.csv", RECORDS | {"day": days})
    federation = load(str(table), schema=write_schema(tmp_path / "s.toml", EVERY), test_fraction=0.0)
    assert federation.bounds == (-1.0, 1.0)
    assert federation.longest == (7 + math.sqrt(8), math.sqrt(8))  # a date has three parts here
    values = {"data.row_norm": "l2", "features.map": "columns", "privacy.sensitivity": "clip"}
    mapped = build.transformed(Spec().with_values(values), federation)
    assert [one.column for one in mapped.columns] == [*(one.column for one in federation.columns), "intercept"]
    for shard in mapped.shards:
        assert Norm.L2.of_rows(shard.x).max() <= 1


def test_the_order_of_the_columns_in_the_file_is_no_matter(tmp_path: Path) -> None:
    schema = write_schema(tmp_path / "s.toml")
    turned = dict(reversed(RECORDS.items()))
    ways = [load(str(write_csv(tmp_path / f"{n}.csv", t)), schema=schema) for n, t in enumerate((RECORDS, turned))]
    assert all(np.array_equal(a.x, b.x) for a, b in zip(ways[0].shards, ways[1].shards, strict=True))


def test_a_directory_without_agent_column_has_an_agent_a_file(tmp_path: Path) -> None:
    schema = write_schema(tmp_path / "s.toml", PATIENTS.replace('[columns.hospital]\nkind = "agent"', ""))
    (tmp_path / "sites").mkdir()
    for site in ("north", "south"):
        write_csv(tmp_path / "sites" / f"{site}.csv", without("hospital"))
    federation = load(str(tmp_path / "sites"), schema=schema, test_fraction=0.0)
    assert federation.agents == ("north", "south")
    assert federation.shards[1].x.tolist() == ENCODED
    with pytest.raises(DataError, match="names no agents"):
        load(str(tmp_path / "sites" / "north.csv"), schema=schema)
    assert load(str(tmp_path / "sites" / "north.csv"), schema=schema, agents=2).n_agents == 2


def test_test_records_go_through_the_same_schema(tmp_path: Path) -> None:
    schema = write_schema(tmp_path / "s.toml")
    test = write_csv(tmp_path / "test.csv", without("hospital", "name"))
    assert load(str(write_csv(tmp_path / "t.csv")), schema=schema, test=str(test)).test.x.tolist() == ENCODED


def test_numbers_read_from_the_data_are_refused(tmp_path: Path) -> None:
    schema = write_schema(tmp_path / "s.toml", PATIENTS.replace("hi = 120", "hi = 120\nread_from_data = true"))
    with pytest.raises(SpecError, match="'age' still hold numbers or lists read from the data"):
        load(str(write_csv(tmp_path / "t.csv")), schema=schema)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"label_column": "age"}, "label column is 'outcome'"),
        ({"agent_column": "site"}, "agent column is 'hospital'"),
        ({"bounds": (0.0, 1.0)}, "drop yours"),
        ({"class_names": ["ill", "well"]}, "drop yours"),
    ],
)
def test_what_the_schema_says_is_not_said_again(tmp_path: Path, options: dict[str, Any], says: str) -> None:
    with pytest.raises(IncompatibleError, match=says):
        load(str(write_csv(tmp_path / "t.csv")), schema=write_schema(tmp_path / "s.toml"), **options)


def test_data_that_are_no_tables_take_no_schema(tmp_path: Path) -> None:
    for source in ("mnist", "synthetic"):
        with pytest.raises(IncompatibleError, match="schema is for tables"):
            load(source, schema=write_schema(tmp_path / "s.toml"))


@pytest.mark.parametrize(("mechanism", "norm"), [("laplace", Norm.L1), ("gaussian", Norm.L2)])
def test_noise_is_scaled_by_the_columns_of_the_schema_and_not_by_its_features(
    tmp_path: Path, mechanism: str, norm: Norm
) -> None:
    table, schema = write_csv(tmp_path / "t.csv"), write_schema(tmp_path / "s.toml")
    values = {"data.source": str(table), "data.schema": str(schema), "privacy.sensitivity": "feature_bounds"}
    spec = Spec().with_values(values | {"privacy.mechanism": mechanism})
    over = build.federation(spec)
    bound = build.setup(spec, over).agents[0].variant.bound
    assert bound.row_norm == parse(PATIENTS).longest[norm is Norm.L2]  # type: ignore[attr-defined]
    wider = build.setup(spec, with_intercept(over)).agents[0].variant.bound
    assert wider.row_norm == pytest.approx(4 if norm is Norm.L1 else 2)  # type: ignore[attr-defined]


def test_a_record_that_is_longer_than_declared_is_refused(tmp_path: Path) -> None:
    federation = load(str(write_csv(tmp_path / "t.csv")), schema=write_schema(tmp_path / "s.toml"))
    with pytest.raises(DataError, match="norm is above the declared"):
        dataclasses.replace(federation, longest=(3, 0.5))


# --- the page and the room for more


PAGE = (Path(__file__).parents[2] / "docs" / "schema.md").read_text(encoding="utf-8")


FEATURES = [kind for kind, column in KINDS.items() if issubclass(column, FeatureColumn)]


@pytest.mark.parametrize("text", re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL))
def test_every_schema_of_the_page_can_be_read(text: str) -> None:
    label = '\n[columns.y]\nkind = "label"\nclasses = [0, 1]\n'
    feature = '\n[columns.x]\nkind = "numeric"\nlo = 0\nhi = 1\n'
    has_label, has_feature = (any(f'"{kind}"' in text for kind in kinds) for kinds in (OUTCOMES, FEATURES))
    whole = text + ("" if has_label else label) + ("" if has_feature else feature)
    assert parse(whole).features


def test_the_page_names_every_kind_and_every_key() -> None:
    for kind, column in KINDS.items():
        assert f'| `"{kind}"` |' in PAGE
        for key in dataclasses.fields(column):
            assert f"`{key.name}" in PAGE


@dataclasses.dataclass(frozen=True)
class Flag(FeatureColumn):
    """1 where a cell is not empty."""

    kind = "flag"
    weight: float = 1.0

    def blocks(self, column: str) -> tuple[FeatureBlock, ...]:
        return (FeatureBlock(column, (f"{column} is there",), l1=self.weight, l2=self.weight),)

    def levels(self) -> None: ...

    def encode(self, cells: Any, marks: Any) -> tuple[Array, Tally]:  # noqa: ARG002
        return np.array([[self.weight * bool(cell)] for cell in cells.tolist()], np.float32), Tally()


def test_a_new_kind_is_one_class_and_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "flag", Flag)
    schema = parse('[columns]\nf={kind="flag",weight=0.5}\ny={kind="label",classes=[0,1]}')
    table = encode(RawTable("t", {"f": np.array(["", "x"], dtype=object)}), schema)
    assert table.x.tolist() == [[0], [0.5]]
    assert schema.longest == (0.5, 0.5)
    assert schema.features == ("f is there",)
    with pytest.raises(SpecError, match="did you mean 'flag'"):
        parse('[columns]\nf={kind="flagg"}\ny={kind="label",classes=[0,1]}')


def test_a_schema_of_a_strangers_making_is_refused_before_its_features_are_named() -> None:
    label = '[columns.y]\nkind = "label"\nclasses = ["0", "1"]\n'
    many = "".join(f'[columns.t{i}]\nkind = "text"\nsize = 65536\n' for i in range(40))
    with pytest.raises(SpecError, match="the columns become 2621440 features, more than"):
        parse(label + many)
