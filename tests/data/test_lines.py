"""Text files by the layout of a schema: attacks by one record on how another is read, and on whether the run ends."""

from __future__ import annotations

import csv
import gzip
import io
import os
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tacit.data import load
from tacit.data.encoded_table import count, read_encoded
from tacit.data.feature_table import read_numbers
from tacit.data.file_layout import FileLayout
from tacit.data.formats import chunk, lines_python, read_raw
from tacit.data.schema import parse
from tacit.errors import DataError, OwnerWarning, SpecError

COLUMNS = """
[columns.u]
kind = "numeric"
lo = -10
hi = 10
[columns.c]
kind = "categorical"
values = ["red", "blue"]
[columns.label]
kind = "label"
classes = ["a", "b"]
[columns.agent]
kind = "agent"
"""
LAYOUTS = [FileLayout(), FileLayout(";", "'", ","), FileLayout("\t", ""), FileLayout("|", '"', ",")]
READERS = ["compiled", "python"] if chunk.compiled() else ["python"]
MISSING = [0.5, 0.0, 0.0]  # the features of a record that has no readable cell


def schema(layout: FileLayout | None = None) -> Any:
    layout = layout or FileLayout()
    keys = {"separator": layout.separator, "quote": layout.quote, "decimal": layout.decimal}
    text = "".join(f"{key} = '''{value}'''\n" for key, value in keys.items() if value is not None)
    return parse(f"[file]\n{text}newlines = {str(layout.newlines).lower()}\n{COLUMNS}")


@contextmanager
def reading(reader: str, size: int = 1 << 20) -> Iterator[None]:
    with (
        mock.patch.dict(os.environ, {"TACIT_NO_KERNELS": "1"} if reader == "python" else {}),
        mock.patch.object(chunk, "CHUNK", size),
        mock.patch.object(chunk, "CHUNK_ROWS", 0),
    ):
        yield


def records(path: Path, declared: Any) -> list[Any]:
    """Every record of a file: the bits of its features, its label and its agent."""
    table = read_encoded(path, declared)
    assert table.labels is not None
    assert table.agents is not None
    return list(zip(table.x.view(np.uint32).tolist(), table.labels.tolist(), table.agents.tolist(), strict=True))


def lines_of(layout: FileLayout, n: int) -> list[bytes]:
    """Honest records, some quoted, of two agents."""
    between = layout.separator or ","
    found = [between.join(("u", "c", "label", "agent"))]
    for i in range(n):
        number = f"{i / 8}".replace(".", layout.decimal)
        name = f"{layout.quote}{('red', 'blue')[i % 2]}{layout.quote}" if i % 3 else "red"
        quoted = f"{layout.quote}{number}{layout.quote}" if between == layout.decimal else number
        found.append(between.join((quoted, name, "ab"[i % 2], f"site{i % 2}")))
    return [line.encode() for line in found]


# what a writer that does not quote may let through
HOSTILE = st.lists(
    st.sampled_from(
        [b'"', b'""', b"'", b",", b";", b"\t", b"|", b"1", b"ab", b"\xff", b"\xc3", b"\0", b"\r", b" ", b"\\"]
    )
    | st.binary(max_size=3),
    min_size=1,
    max_size=12,
).map(lambda parts: b"".join(parts).replace(b"\n", b""))


@settings(max_examples=250, deadline=None)
@given(
    hostile=st.dictionaries(st.integers(0, 6), HOSTILE.filter(lambda line: line.strip(b"\r")), min_size=1),
    layout=st.sampled_from(LAYOUTS), ending=st.sampled_from([b"\n", b"\r\n"]), last=st.booleans(),
    size=st.sampled_from([1, 7, 64, 1 << 20]), reader=st.sampled_from(READERS),
)  # fmt: skip
@example(hostile={2: b'1,"red,a,site0'}, layout=LAYOUTS[0], ending=b"\n", last=True, size=1 << 20, reader=READERS[0])
@example(hostile={0: b'"', 6: b'"'}, layout=LAYOUTS[0], ending=b"\n", last=False, size=7, reader=READERS[0])
@example(hostile={3: b"1,\xc3,a,s"}, layout=LAYOUTS[0], ending=b"\n", last=True, size=1 << 20, reader=READERS[0])
def test_a_line_of_any_bytes_leaves_every_other_record_as_it_is(
    hostile: dict[int, bytes], layout: FileLayout, ending: bytes, last: bool, size: int, reader: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:  # fmt: skip
    path, honest = tmp_path_factory.mktemp("hostile") / "t.csv", lines_of(layout, 7)
    path.write_bytes(ending.join(honest))
    want = records(path, schema(layout))
    attacked = [hostile.get(i, line) for i, line in enumerate(honest[1:])]
    path.write_bytes(ending.join([honest[0], *attacked]) + ending * last)
    with reading(reader, size):
        found = records(path, schema(layout))
        total = sum(map(len, read_raw(path, layout)))
    assert total == len(found) == len(want)
    for i, (record, expected) in enumerate(zip(found, want, strict=True)):
        if i not in hostile:
            assert record == expected


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"1,red,a", "too few cells"),
        (b"1,red,a,site0,more", "too many cells"),
        (b'"1,red,a,site0', "an open quote"),
        (b'1,"red"x,a,site0', "text behind a quote"),
        (b"1,red,a\xff,site0", "bytes that are not UTF-8"),
        (b"x" * (lines_python.LIMIT + 1) + b",red,a,site0", "a cell beyond the limit"),
        (b'"' + b"x" * (lines_python.LIMIT + 1) + b'",red,a,site0', "a quoted cell beyond the limit"),
        (b"x" * (4 * lines_python.LIMIT + 100), "a line that no record can be as long as"),
        (b" ", "one blank"),
    ],
)
def test_a_malformed_line_is_a_record_whose_cells_are_all_missing(
    tmp_path: Path, reader: str, line: bytes, why: str
) -> None:
    path, honest = tmp_path / "t.csv", lines_of(FileLayout(), 4)
    path.write_bytes(b"\n".join([*honest[:2], line, *honest[2:]]))
    with reading(reader, 64):
        table = read_encoded(path, schema())
        counts = count(read_raw(path, FileLayout()), schema())
    assert table.x[1].tolist() == MISSING, why
    assert table.labels is not None
    assert table.labels.tolist()[1] == ""
    assert counts.places == ("line 3",)
    assert counts.columns["u"].missing == counts.columns["label"].missing == 1
    assert counts.columns["u"].unreadable == 0
    with pytest.raises(DataError):  # without a schema it is refused, as ever
        read_numbers(path)


def test_a_quote_inside_a_cell_is_a_sign_like_others(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('a,b\n5" pipe,x"y"\n')
    (raw,) = read_raw(tmp_path / "t.csv", FileLayout())
    assert [cells.tolist() for cells in raw.columns.values()] == [['5" pipe'], ['x"y"']]
    assert not len(raw.unreadable)


CELL = st.text(st.sampled_from("ab ,\"\n\r'ü1"), max_size=6)


@settings(max_examples=150, deadline=None)
@given(
    rows=st.lists(st.tuples(CELL, CELL.filter(str.strip)), min_size=2, max_size=6), swap=CELL, at=st.integers(0, 5),
    size=st.sampled_from([1, 7, 1 << 20]), reader=st.sampled_from(READERS),
)  # fmt: skip
def test_with_newlines_cells_that_were_quoted_come_back_and_change_no_other(
    rows: list[tuple[str, str]], swap: str, at: int, size: int, reader: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rows[at % len(rows)] = (swap, "x")
    text = io.StringIO(newline="")
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([("u", "v"), *rows])
    path = tmp_path_factory.mktemp("newlines") / "t.csv"
    path.write_text(text.getvalue(), newline="")
    with reading(reader, size):
        tables = list(read_raw(path, FileLayout(newlines=True)))
    found = [row for raw in tables for row in zip(*(cells.tolist() for cells in raw.columns.values()), strict=True)]
    assert found == rows
    assert not any(len(raw.unreadable) for raw in tables)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("size", [1, 40, 1 << 20])
def test_with_newlines_a_stray_quote_costs_its_own_line_alone(tmp_path: Path, reader: str, size: int) -> None:
    honest = lines_of(FileLayout(), 40)  # two of three lines hold quoted cells
    for i in (1, 17, 40):
        for line in (b'1,"red,a,site0', b'"1,red,a,site0', b'1,red,a,"site0', b'1,red,a,"""'):
            path = tmp_path / "t.csv"
            path.write_bytes(b"\n".join([*honest[:i], line, *honest[i:]]) + b"\n")
            with reading(reader, size):
                table = read_encoded(path, schema(FileLayout(newlines=True)))
                places = count(read_raw(path, FileLayout(newlines=True)), schema()).places
            assert table.x[i - 1].tolist() == MISSING
            assert len(table) == 41
            assert places == (f"line {i + 1}",)


BYTES = st.lists(
    st.sampled_from([b'"', b'"', b",", b"\n", b"\n", b"\r\n", b"\r", b"a", b"1", b"\xff", b"ab,cd\n", b'"a\nb",c\n']),
    max_size=30,
).map(b"".join)


@pytest.mark.skipif(len(READERS) < 2, reason="the compiled reader is not built")
@settings(max_examples=300, deadline=None)
@given(
    body=BYTES, size=st.sampled_from([1, 3, 1 << 20]), newlines=st.booleans(), limit=st.sampled_from([2, 5, 1 << 17])
)
def test_both_readers_give_the_same_whatever_the_bytes_the_chunks_and_the_limits(
    body: bytes, size: int, newlines: bool, limit: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path, layout = tmp_path_factory.mktemp("twins") / "t.csv", FileLayout(newlines=newlines)
    path.write_bytes(b"u,v\n" + body + b"\n1,2\n")

    def outcome(reader: str, size: int) -> Any:
        with reading(reader, size):
            tables = list(read_raw(path, layout))
        cells = [row for raw in tables for row in zip(*(c.tolist() for c in raw.columns.values()), strict=True)]
        places = [raw.place(i) for raw in tables for i in raw.unreadable]
        return cells, [line for raw in tables for line in raw.lines], places

    with mock.patch.object(lines_python, "LIMIT", limit):
        assert outcome("compiled", size) == outcome("python", size) == outcome("python", 1 << 20)


@pytest.mark.parametrize("reader", READERS)
def test_a_line_that_never_ends_is_not_held(tmp_path: Path, reader: str) -> None:
    path = tmp_path / "t.csv"
    with path.open("wb") as file:
        file.write(b"u,c,label,agent\n1,red,a,s\n")
        for _ in range(64):
            file.write(b"x" * (1 << 20))
        file.write(b"\n2,red,a,s\n")
    with reading(reader):
        tracemalloc.start()
        try:
            table = read_encoded(path, schema())
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert table.x[:, 1].tolist() == [1, 0, 1]
    assert peak < 48 << 20


@pytest.mark.parametrize("reader", READERS)
def test_the_header_is_public_and_refused_without_a_look_at_records(tmp_path: Path, reader: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text('u,"c\n1,secret\n2,"\n3,4\n')
    with reading(reader), pytest.raises(DataError) as error:
        list(read_raw(path, FileLayout()))
    assert "secret" not in str(error.value)
    for content, says in ((b"u,c\n", "no records"), (b"", "is empty"), ("u\n1".encode("utf-16"), "UTF-16")):
        path.write_bytes(content)
        with reading(reader), pytest.raises(DataError, match=says):
            list(read_raw(path, FileLayout()))


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\r"])
def test_lines_end_as_the_header_does_and_a_byte_order_mark_is_no_part_of_it(
    tmp_path: Path, reader: str, ending: bytes
) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xef\xbb\xbf" + ending.join([b"u,v", b"1,2", b"", b"3,4", b""]))
    for size in (1, 1 << 20):
        with reading(reader, size):
            tables = list(read_raw(path, FileLayout()))
        found = [pair for raw in tables for pair in zip(raw.lines, raw.columns["v"].tolist(), strict=True)]
        assert found == [(2, "2"), (4, "4")]
        assert set(tables[0].columns) == {"u", "v"}


@pytest.mark.parametrize("reader", READERS)
def test_a_decimal_comma_is_declared_and_a_point_is_then_no_number(tmp_path: Path, reader: str) -> None:
    path = tmp_path / "t.csv"
    cells = ["1,5", "-2", "1.500", "1e1", "1,2,3", "-9,0", " ,25 ", "00000000000000000000000,5", "٣,5"]
    path.write_text("u;c;label;agent\n" + "".join(f"{cell};red;a;s\n" for cell in cells), encoding="utf-8")
    declared = parse('missing_marks = ["-9"]\n[file]\nseparator = ";"\ndecimal = ","\n' + COLUMNS)
    with reading(reader):
        table, counts = read_encoded(path, declared), count(read_raw(path, declared.file), declared)
    values = [1.5, -2, 0, 10, 0, 0, 0.25, 0.5, 3.5]  # the middle, 0, where there is none
    assert table.x[:, 0].tolist() == [np.float32((value + 10) / 20) for value in values]
    assert (counts.columns["u"].unreadable, counts.columns["u"].missing) == (2, 1)


@pytest.mark.parametrize("layout", [FileLayout(), None])
def test_packed_and_tab_separated_files_are_read(tmp_path: Path, layout: FileLayout | None) -> None:
    want = None
    for name, between in (("t.csv", ","), ("t.CSV.gz", ","), ("t.tsv", "\t"), ("t.tsv.gz", "\t")):
        text = "".join(between.join(row) + "\n" for row in (("u", "v"), ("1", '"a,b\tc"'), ("2", "d")))
        data = gzip.compress(text.encode()) if name.endswith("gz") else text.encode()
        (tmp_path / name).write_bytes(data)
        (raw,) = read_raw(tmp_path / name, layout)
        found = {column: cells.tolist() for column, cells in raw.columns.items()}
        assert found == {"u": ["1", "2"], "v": ["a,b\tc", "d"]}
        want = want or found
    with pytest.raises(DataError, match="4 files for 't'"):
        list(read_raw(tmp_path, layout))
    for damaged in (gzip.compress(b"u,v\n1,2\n" * 100)[:-9], b"no archive"):
        (tmp_path / "d.csv.gz").write_bytes(damaged)
        with pytest.raises(DataError, match="not a readable CSV file"):
            list(read_raw(tmp_path / "d.csv.gz", layout))


def test_numbers_of_packed_files_are_read_by_the_compiled_reader_too(tmp_path: Path) -> None:
    rows = "".join(f"{i},{i % 2},s\n" for i in range(50))
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(f"u,label,agent\n{rows}".encode()))
    federation = load(str(tmp_path / "t.csv.gz"))
    assert (federation.name, federation.n_records + len(federation.test)) == ("t", 50)


# --- who holds a record that names nobody


def federation_of(path: Path, *rows: bytes, name: str = "t.csv") -> Any:
    (path / "schema.toml").write_text(COLUMNS)
    (path / name).write_bytes(b"\n".join([b"u,c,label,agent", *rows]) + b"\n")
    return load(str(path / name), schema=str(path / "schema.toml"))


ROWS = [f"{i},red,{'ab'[i % 2]},{i % 3 + 9}".encode() for i in range(30)]


@pytest.mark.parametrize("hostile", [b'"', b"\xff,red,a,9", b"1", b"1,2,3,4,5", b"1,red,a,"])
def test_a_record_whose_agent_cannot_be_read_is_nobodys_in_a_file_of_several_agents(
    tmp_path: Path, hostile: bytes
) -> None:
    whole = federation_of(tmp_path, *ROWS)
    rows = [*ROWS[:12], hostile, *ROWS[13:]]  # the fifth of agent 9
    with pytest.warns(OwnerWarning, match="1 of 30 records of .* name no agent: nobody holds them"):
        found = federation_of(tmp_path, *rows)
    assert found.agents == whole.agents == ("9", "10", "11")  # as numbers, though a record has no name of an agent
    for agent in (1, 2):
        assert np.array_equal(found.shards[agent].x, whole.shards[agent].x)
        assert np.array_equal(found.shards[agent].y, whole.shards[agent].y)
    assert found.n_records + len(found.test) == 29


@pytest.mark.parametrize("hostile", [b'"', b"\xff,red,a,9", b"1", b"1,2,3,4,5", b"1,red,?,"])
def test_in_the_own_file_of_an_agent_it_is_absent_in_its_place(tmp_path: Path, hostile: bytes) -> None:
    own = [row for row in ROWS if row.endswith(b",9")]
    absent = [*own[:4], b"0,red,nobody,9", *own[5:]]
    with pytest.warns(OwnerWarning, match="no declared class"):
        want = federation_of(tmp_path, *absent)
    with pytest.warns(OwnerWarning, match="no declared class"):
        found = federation_of(tmp_path, *own[:4], hostile, *own[5:])
    assert found.agents == ("9",)
    assert found.checksum == want.checksum
    assert found.n_records == want.n_records


@pytest.mark.parametrize("hostile", [b'"', b"\xff,red,a,9", b"1", b"1,2,3,4,5", b"1,red,?,"])
def test_records_that_are_cut_into_agents_stay_where_they_are(tmp_path: Path, hostile: bytes) -> None:
    (tmp_path / "schema.toml").write_text(COLUMNS.replace('"agent"', '"ignore"'))

    def cut(rows: list[bytes]) -> Any:
        (tmp_path / "t.csv").write_bytes(b"\n".join([b"u,c,label,agent", *rows]))
        return load(str(tmp_path / "t.csv"), schema=str(tmp_path / "schema.toml"), agents=3)

    with pytest.warns(OwnerWarning, match="no declared class"):
        want, found = (cut([*ROWS[:5], row, *ROWS[6:]]) for row in (b"1,red,nobody,9", hostile))
    assert found.checksum == want.checksum


def test_a_file_that_names_no_agent_at_all_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no record names an agent"):
        federation_of(tmp_path, b"1,red,a,", b"2,red,b,")


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ('separator = ";;"', "separator takes one ASCII sign"),
        ('separator = "a"', "separator takes one ASCII sign"),
        ('separator = "\\n"', "separator takes one ASCII sign"),
        ("separator = 1", "separator takes one ASCII sign"),
        ('separator = "\\""', "separator takes one ASCII sign"),
        ('quote = "x"', "quote takes one of"),
        ('decimal = ";"', "decimal takes one of"),
        ('newlines = "yes"', "newlines takes true or false"),
        ('newlines = true\nquote = ""', "newlines = true needs a quote"),
        ('seperator = ";"', "did you mean 'separator'"),
    ],
)
def test_a_bad_file_table_is_named(table: str, says: str) -> None:
    with pytest.raises(SpecError, match=says):
        parse(f"[file]\n{table}\n{COLUMNS}")
    with pytest.raises(SpecError, match="file is 3"):
        parse(f"file = 3\n{COLUMNS}")


@pytest.mark.skipif(len(READERS) < 2, reason="the compiled reader is not built")
def test_the_compiled_splitter_writes_inside_its_buffers_alone() -> None:
    kernels = chunk.compiled()
    assert kernels is not None
    spans, begins = np.zeros((3, 2, 2), np.uint32), np.zeros(3, np.uint32)
    numbers, bad = np.zeros(3, np.int32), np.zeros(3, np.uint8)

    def split(columns: int = 2, quote: bytes = b'"', **given: Any) -> Any:
        own = {"spans": spans, "numbers": numbers, "begins": begins, "bad": bad} | given
        return kernels.split_lines(b"1,2\n3\n" * 9, True, b"\n", b",", quote, False, columns, 9, 99, *own.values())

    assert split()[:3] == (3, 10, 3)  # the room is used up
    assert bad.tolist() == [0, 1, 0]
    small: list[dict[str, Any]] = [{"spans": spans[:2]}, {"begins": begins[:2]}, {"bad": bad[:2]}]
    for wrong in (*small, {"columns": 3}, {"columns": 0}, {"quote": b"''"}):
        with pytest.raises(ValueError, match="room for the records"):
            split(**wrong)
