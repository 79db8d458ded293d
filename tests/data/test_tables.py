"""Tables: the same records from every format, and a clear word on every bad file."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.data.feature_table import FeatureTable, align
from tacit.data.feature_table import read_numbers as read
from tacit.data.formats import read_raw
from tacit.data.formats.csv import CELLS
from tacit.data.formats.parquet import RECORDS
from tacit.errors import DataError, MissingDependency, SpecError
from tests.conftest import claim_too_much, encrypt

COLUMNS: dict[str, list[Any]] = {
    "age": [1.5, 2.0, -3.25],
    "label": [10, 9, 10],
    "agent": ["b", "a", "b"],
    "dose": [0.1, 1e-9, 7.0],
}


def text(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8")
    return path


def write_csv(path: Path, columns: dict[str, list[Any]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(columns)
        rows.writerows(zip(*columns.values(), strict=True))
    return path


def write_parquet(path: Path, columns: dict[str, list[Any]]) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def write_npz(path: Path, columns: dict[str, list[Any]]) -> Path:
    features = [name for name in columns if name not in ("label", "agent")]
    arrays: dict[str, Any] = {"x": np.array([columns[name] for name in features]).T, "features": features}
    arrays |= {key: columns[name] for key, name in (("y", "label"), ("agent", "agent")) if name in columns}
    np.savez(path, **arrays)
    return path


WRITERS = {"csv": write_csv, "parquet": write_parquet, "npz": write_npz}


def assert_same(a: FeatureTable, b: FeatureTable) -> None:
    assert a.features == b.features
    assert np.array_equal(a.x, b.x)
    assert a.x.dtype == b.x.dtype == np.float32
    for left, right in ((a.labels, b.labels), (a.agents, b.agents)):
        assert (left is None) == (right is None)
        if left is not None:
            assert right is not None
            assert left.tolist() == right.tolist()


@settings(max_examples=25)
@given(
    rows=st.lists(
        st.tuples(
            st.floats(-1e30, 1e30),
            st.floats(-(2.0**100), 2.0**100, width=32),
            st.integers(-3, 12),
            st.sampled_from(["north", "south-east", "3", "007", "ü"]),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_csv_parquet_and_npz_hold_the_same_table(
    rows: list[tuple[float, float, int, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("round")
    u, v, label, agent = map(list, zip(*rows, strict=True))
    columns = {"u": u, "label": label, "v": v, "agent": agent}
    by_format = [read(write(folder / f"t.{kind}", columns)) for kind, write in WRITERS.items()]
    assert_same(by_format[0], by_format[1])
    assert_same(by_format[0], by_format[2])
    assert by_format[0].x[:, 0].tolist() == np.array(u, np.float32).tolist()


@pytest.mark.parametrize("kind", WRITERS)
def test_a_table_without_labels_or_agents_can_be_read_for_prediction(tmp_path: Path, kind: str) -> None:
    table = read(WRITERS[kind](tmp_path / f"t.{kind}", {"age": [1.0], "dose": [2.0]}))
    assert table.labels is None
    assert table.agents is None
    assert table.x.tolist() == [[1, 2]]


@pytest.mark.parametrize("kind", WRITERS)
def test_labels_that_are_needed_are_asked_for(tmp_path: Path, kind: str) -> None:
    path = WRITERS[kind](tmp_path / f"t.{kind}", {"age": [1.0], "dose": [2.0]})
    with pytest.raises(DataError, match="label"):
        read(path, need_labels=True)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_columns_of_labels_and_agents_can_have_other_names(tmp_path: Path, kind: str) -> None:
    path = WRITERS[kind](tmp_path / f"t.{kind}", {"u": [1.0], "k": [2], "site": ["z"]})
    table = read(path, label_column="k", agent_column="site")
    assert table.features == ("u",)
    assert table.labels is not None
    assert table.agents is not None
    assert (table.labels.tolist(), table.agents.tolist()) == (["2"], ["z"])


@pytest.mark.parametrize("values", [[3, 4], [3.0, 4.0], ["3", "4"], ["3.0", "+4"]])
def test_whole_numbers_are_one_name_however_written(tmp_path: Path, values: list[Any]) -> None:
    for kind, write in WRITERS.items():
        table = read(write(tmp_path / f"t.{kind}", {"u": [0.0, 1.0], "label": values}))
        assert table.labels is not None
        assert table.labels.tolist() == ["3", "4"]


def test_csv_forgives_a_byte_order_mark_blank_lines_spaces_and_quotes(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b'\xef\xbb\xbfu, label\r\n 1.5 ," a,b "\r\n\r\n2,c\r\n')
    table = read(path)
    assert table.labels is not None
    assert (table.x.tolist(), table.labels.tolist()) == ([[1.5], [2]], ["a,b", "c"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("u,v,label\n1,2,a\n1,b\n", "line 3: 2 cells under a header of 3"),
        ("u,v,label\n1,2,a\n1,red,b\n", "line 3, column 'v' is not a number: declare"),
        ("u,v,label\n1_0,2,a\n", "line 2, column 'u' is not a number"),
        ("u,v,label\n1,,a\n", "line 2, column 'v' is empty: impute"),
        ("u,v,label\nnan,2,a\n", "line 2, column 'u' is not a finite"),
        ("u,v,label\n1,-inf,a\n", "column 'v' is not a finite"),
        ("u,v,label\n1,1e39,a\n", "column 'v' is not a finite"),
        ("u,v,label\n1,2, \n", "line 2, column 'label' is empty: fill"),
        ("u,u,label\n1,2,a\n", "2 columns are named 'u'"),
        ("u,,label\n1,2,a\n", "column 2 has no name"),
        ("u,v,lable\n1,2,a\n", "no column 'label': did you mean 'lable'"),
        ("u,v,Label\n1,2,a\n", "did you mean 'Label'"),
        ("5.1,3.5,0\n4.9,3.0,1\n", "the first row is the header"),
        ("u;v;label\n1;2;a\n", "no column 'label'"),
        ("u,v,label\n", "holds no records"),
        ("label\na\n", "holds no features"),
        ("", "is empty"),
        ('u,v,label\n1,2,"a\n', "not a readable CSV"),
    ],
)
def test_a_bad_csv_is_named_with_its_place(tmp_path: Path, content: str, message: str) -> None:
    path = text(tmp_path / "bad.csv", content)
    with pytest.raises(DataError, match=message) as error:
        read(path, need_labels=True)
    assert str(path) in str(error.value)


def test_a_long_csv_is_read_in_runs_and_named_by_its_lines(tmp_path: Path) -> None:
    n = 3 * CELLS + 1
    path = text(tmp_path / "t.csv", "u,label\n\n" + "".join(f"{i},{i % 2}\n" for i in range(n)))
    table = read(path)
    assert table.x.ravel().tolist() == list(range(n))
    assert table.labels is not None
    assert table.labels.tolist() == [str(i % 2) for i in range(n)]
    text(path, path.read_text() + "1,\n")
    with pytest.raises(DataError, match=f"line {n + 3}, column 'label' is empty"):
        read(path)


def test_truth_values_beside_nulls_are_numbers_and_the_null_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="record 2, column 'u' is empty: impute"):
        read(write_parquet(tmp_path / "t.parquet", {"u": [True, None]}))


def test_a_csv_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_bytes(b"u,label\n1,\xff\n")
    with pytest.raises(DataError, match="UTF-8"):
        read(path)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"u": [1.0, None]}, "record 2, column 'u' is empty: impute"),
        ({"u": [1.0, float("nan")]}, "record 2, column 'u' is not a finite"),
        ({"u": [1.0, 1e39]}, "record 2, column 'u' is not a finite"),
        ({"u": ["red", "blue"]}, "column 'u' holds string, not numbers"),
        ({"u": [[1.0], [2.0]]}, "not numbers"),
        ({"u": [1.0, 2.0], "label": ["a", None]}, "record 2, column 'label' is empty: fill"),
        ({"u": [1.0, 2.0], "label": [0.0, float("nan")]}, "record 2, column 'label' is empty: fill"),
        ({"u": [1.0], "__index_level_0__": [7]}, "pandas index"),
    ],
)
def test_a_bad_parquet_column_is_named(tmp_path: Path, columns: dict[str, list[Any]], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(write_parquet(tmp_path / "bad.parquet", columns))


def test_a_record_of_a_long_parquet_file_is_numbered_from_its_beginning(tmp_path: Path) -> None:
    n = 2 * RECORDS + 5
    columns: dict[str, list[Any]] = {"u": [1.0] * n, "label": ["a", "b", "b"] * (n // 3) + ["c"] * (n % 3)}
    table = read(write_parquet(tmp_path / "t.parquet", columns))
    assert table.labels is not None
    assert table.labels.tolist() == columns["label"]
    assert table.x.tolist() == [[1]] * n
    columns["u"][n - 2] = None
    with pytest.raises(DataError, match=f"record {n - 1}, column 'u' is empty: impute"):
        read(write_parquet(tmp_path / "t.parquet", columns))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())])
def test_texts_of_a_parquet_file_are_names_however_they_are_stored(tmp_path: Path, kind: Any) -> None:
    cells = pa.array(["3.0", "b", "3", "b"]).cast(kind)
    pq.write_table(pa.table({"u": [1, 2, 3, 4], "label": cells}), tmp_path / "t.parquet")
    table = read(tmp_path / "t.parquet")
    assert table.labels is not None
    assert (table.labels.tolist(), table.labels.names) == (["3", "b", "3", "b"], ("3", "b"))


def test_negative_zero_is_another_label_than_zero(tmp_path: Path) -> None:
    for kind, write in WRITERS.items():
        table = read(write(tmp_path / f"t.{kind}", {"u": [0.0, 1.0, 2.0], "label": [-0.0, 0.0, 1.0]}))
        assert table.labels is not None
        assert table.labels.tolist() == ["-0", "0", "1"]


def test_parquet_folder_names_add_no_columns(tmp_path: Path) -> None:
    (tmp_path / "agent=7").mkdir()
    assert read(write_parquet(tmp_path / "agent=7" / "t.parquet", {"u": [1.0]})).agents is None


def test_a_corrupt_parquet_file_is_refused(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "bad.parquet", COLUMNS)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DataError, match="not a readable Parquet"):
        read(path)


def test_without_pyarrow_the_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_parquet(tmp_path / "t.parquet", COLUMNS)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependency, match="the extra 'parquet'"):
        read(path)


def test_npz_agents_can_be_numbered_arrays(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    np.savez(path, x_10=[[5, 6]], y_10=[0], x_2=[[1, 2], [3, 4]], y_2=[1, 0])
    table = read(path)
    assert table.x.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert table.features == ("x0", "x1")
    assert table.labels is not None
    assert table.agents is not None
    assert (table.labels.tolist(), table.agents.tolist()) == (["1", "0", "0"], ["2", "2", "10"])


X = np.ones((2, 3))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"y": [0, 1]}, "missing or unknown: x"),
        ({"x": X, "z": X}, "missing or unknown: z"),
        ({"x_0": X, "y_0": [0, 1], "x_1": X}, "missing or unknown: y_1"),
        ({"x_0": X, "y_0": [0, 1], "agent": [0, 1]}, "missing or unknown: agent"),
        ({"x": X, "y": [0, 1, 2]}, "y has shape"),
        ({"x": X, "y": [[0, 1]]}, "y has shape"),
        ({"x": X, "y": [0, 1], "agent": [0]}, "agent has shape"),
        ({"x": np.ones((2, 3, 4))}, "real matrix"),
        ({"x": np.ones((2, 3)) * 1j}, "real matrix"),
        ({"x": np.array([["a"]])}, "real matrix"),
        ({"x": np.array([[1.0, np.nan]])}, "record 1, column 'x1' is not a finite"),
        ({"x": np.array([[1e39, 1.0]])}, "record 1, column 'x0' is not a finite"),
        ({"x": X, "features": ["a", "b"]}, "2 names for 3 features"),
        ({"x": X, "features": ["a", "b", "a"]}, "2 columns are named 'a'"),
        ({"x_0": X, "x_1": np.ones((2, 4))}, "adds 'x3'"),
        ({"x": np.ones((0, 3))}, "no records"),
    ],
)
def test_a_bad_npz_array_is_named(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    path = tmp_path / "bad.npz"
    np.savez(path, **arrays)
    with pytest.raises(DataError, match=message):
        read(path)


def test_npz_files_are_never_unpickled(tmp_path: Path) -> None:
    path = tmp_path / "bad.npz"
    np.savez(path, x=np.array([[object()]]))
    with pytest.raises(DataError, match="not a readable NPZ"):
        read(path)


def test_npz_files_that_ask_for_72_terabytes_or_a_password_are_refused(tmp_path: Path) -> None:
    claim_too_much(tmp_path / "large.npz")
    encrypt(write_npz(tmp_path / "secret.npz", COLUMNS))
    for name in ("large.npz", "secret.npz"):
        with pytest.raises(DataError, match=f"{name} is not a readable NPZ"):
            read(tmp_path / name)


@pytest.mark.parametrize("kind", WRITERS)
def test_suffixes_may_be_in_capitals(tmp_path: Path, kind: str) -> None:
    lower = WRITERS[kind](tmp_path / f"t.{kind}", COLUMNS)
    upper = lower.with_name(f"U.{kind.upper()}")
    upper.write_bytes(lower.read_bytes())
    assert_same(read(lower), read(upper))
    lower.unlink()
    assert_same(read(upper), read(tmp_path))
    assert len(next(read_raw(tmp_path))) == 3


def test_corrupt_npz_files_are_refused(tmp_path: Path) -> None:
    good = write_npz(tmp_path / "t.npz", COLUMNS).read_bytes()
    np.save(tmp_path / "single.npy", X)
    damaged = good[:60] + bytes(20) + good[80:]
    for content in (good[:-30], b"", b"text", damaged, (tmp_path / "single.npy").read_bytes()):
        path = tmp_path / "bad.npz"
        path.write_bytes(content)
        with pytest.raises(DataError, match="not a readable NPZ"):
            read(path)


def test_paths_that_are_no_tables_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        read(tmp_path / "none.csv")
    with pytest.raises(DataError, match="convert it"):
        read(text(tmp_path / "t.xlsx", ""))
    with pytest.raises(DataError, match="holds no table"):
        read(tmp_path)
    with pytest.raises(SpecError, match="name two columns"):
        read(tmp_path / "t.csv", label_column="k", agent_column="k")


def test_align_orders_columns_by_name_and_names_those_that_differ() -> None:
    table = FeatureTable("t.csv", ("b", "a"), [np.array([[2, 1]])])
    assert align(table, ("a", "b"), "first.csv").x.tolist() == [[1, 2]]
    with pytest.raises(DataError, match=r"t\.csv lacks 'c'; adds 'b', unlike first\.csv"):
        align(table, ("a", "c"), "first.csv")
