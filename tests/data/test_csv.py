"""The compiled and the Python reader of CSV files give the same tables and the same errors, to the last bit."""

from __future__ import annotations

import csv
import math
import os
import re
import struct
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tacit.data import feature_table, load
from tacit.data.cells import Coded, number
from tacit.data.encoded_table import read_encoded
from tacit.data.feature_table import read_numbers
from tacit.data.formats import chunk, read_raw
from tacit.data.schema import parse
from tacit.errors import DataError

KERNELS = chunk.compiled()
needs_kernels = pytest.mark.skipif(KERNELS is None, reason="the compiled reader is not built")

# a number in every dress, and what is none: exponents, many digits, denormals, hexadecimal, underscores, blanks, signs
NUMBER = st.one_of(
    st.floats(-1e30, 1e30).map(repr),
    st.floats(-(2.0**100), 2.0**100, width=32).map(lambda v: f"{v:.9g}"),
    st.integers(-(10**25), 10**25).map(str),
    st.from_regex(r"[ \t]{0,2}[+-]?[0-9]{0,24}\.?[0-9]{0,24}([eE][+-]?[0-9]{1,2})?[ \t]{0,2}", fullmatch=True).filter(
        lambda text: re.search("[0-9]", text.lower().partition("e")[0])
    ),
    st.sampled_from(["0", "-0.0", "1e-45", "5e-324", "1e-400", ".5", "5.", "00012", "1E+5", "٣", "\xa07"]),
    st.integers(0, 40).map(lambda n: "0" * n + "1"),
)
NO_NUMBER = st.one_of(
    st.sampled_from(["", " ", "\xa0", "red", "0x1A", "0b1", "1_0", "inf", "-nan", "1e400", "1e39"]),
    st.sampled_from([".", "+", "e5", "1e", "1e+", "--1", "1 2", "1.2.3", "1e5x"]),
)
TEXT = st.text(st.sampled_from('ab ,"\n\r\tü3.0+'), max_size=6)
NAME = (TEXT | st.sampled_from(["3", "3.0", "+3", "007", "-0.0", "ab", "x" * 40])).filter(str.strip)
END = st.sampled_from(["\n", "\r\n", "\r"])

SCHEMA = """
    missing_marks = ["red", "-9"]
    [columns.u]
    kind = "numeric"
    lo = -10
    hi = 10
    [columns.v]
    kind = "numeric"
    lo = 0
    hi = 1e30
    [columns.label]
    kind = "label"
    classes = ["3", "ab"]
    [columns.agent]
    kind = "categorical"
    values = ["3", "ab", "007"]
"""


def quoted(cell: str, always: bool) -> str:
    must = any(sign in cell for sign in ',"\n\r')
    return '"' + cell.replace('"', '""') + '"' if always or must else cell


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """A CSV file of columns u, v, label and agent with one fault at most, as any program might write it."""
    n = draw(st.integers(1, 6))
    finite = NUMBER.filter(lambda text: abs(float(text)) < 1e38)  # one that is not would be a second fault
    rows = [[draw(finite), draw(finite), draw(NAME), draw(NAME)] for _ in range(n)]
    fault = draw(st.sampled_from(["none", "none", "cell", "label", "short", "long", "behind", "open", "byte"]))
    at = draw(st.integers(0, n - 1))
    if fault == "cell":
        rows[at][draw(st.integers(0, 1))] = draw(NO_NUMBER)
    if fault == "label":
        rows[at][draw(st.integers(2, 3))] = draw(st.sampled_from(["", "  "]))
    if fault == "byte":
        rows[at][2] += "\udcff"  # the byte 255, which begins no letter
    if fault in ("short", "long"):
        rows[at] = rows[at][:3] if fault == "short" else [*rows[at], "1"]
    lines = [draw(st.sampled_from(["u,v,label,agent", '"u", v,"label" ,agent', 'u,"v",label,"agent"'])), *(
        ",".join(quoted(cell, draw(st.booleans())) for cell in row) for row in rows
    )]  # fmt: skip
    if fault == "behind":
        lines[1 + at] = '"1"2,' + lines[1 + at]
    if fault == "open":
        lines[1 + at] += '"' if lines[1 + at].endswith('"') else ',"'
    end = draw(END)
    text = end.join(line + draw(st.sampled_from(["", "", end])) for line in lines) + draw(st.sampled_from(["", end]))
    return draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + text.encode(errors="surrogateescape")


@contextmanager
def chunks_of(size: int) -> Iterator[None]:
    with mock.patch.object(chunk, "CHUNK", size), mock.patch.object(chunk, "CHUNK_ROWS", 0):
        yield


def outcome(path: Path, python: bool, schema: bool) -> Any:
    """The table, bit by bit, or the error, but for the place of a byte that is not UTF-8: it counts from the read."""
    with mock.patch.dict(os.environ, {"TACIT_NO_KERNELS": "1"} if python else {}):
        try:
            table = read_encoded(path, parse(SCHEMA)) if schema else read_numbers(path)
        except DataError as error:
            return re.sub(r"in position \d+(-\d+)?|unexpected end of data", "", str(error))
    columns = [column and column.tolist() for column in (table.labels, table.agents)]
    return table.features, table.x.dtype, table.x.view(np.uint32).tolist(), columns


@needs_kernels
@settings(max_examples=400)
@given(content=files(), size=st.sampled_from([1, 7, 64, 1 << 20]), schema=st.booleans())
@example(content=b'u,v,label,agent\r\n1,2,"a\r\nb",c\r\n', size=22, schema=False)
@example(content=b"u,v,label,agent\r1,2,a,b\r\r\n\n3,4,a,\r", size=16, schema=False)
def test_both_readers_agree_on_every_file(
    content: bytes, size: int, schema: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("both") / "t.csv"
    path.write_bytes(content)
    with chunks_of(size):
        assert outcome(path, False, schema) == outcome(path, True, schema)


def cells_of(texts: list[str]) -> Any:
    """The column of a chunk that holds these texts, which need no quotes."""
    assert KERNELS is not None
    ends = np.cumsum([len(text.encode()) for text in texts])
    spans = np.stack([np.r_[0, ends[:-1]], ends], axis=1).astype(np.uint32)[:, None]
    return chunk.Column(chunk.Chunk(KERNELS, "".join(texts).encode(), spans), 0)


def bits(value: float) -> bytes:
    return struct.pack("d", value)


def near_a_tie(mantissa: int, exponent: int, digits: int, off: int) -> str:
    """A decimal number next to the middle of two doubles: what is hardest to round."""
    middle = Fraction(2 * mantissa + 1) * Fraction(2) ** (exponent - 1)
    q = math.floor(math.log10(middle)) - digits + 1
    return f"{int(middle / Fraction(10) ** q) + off}e{q}"


HARD = st.builds(
    near_a_tie, st.integers(2**52, 2**53 - 1), st.integers(-160, 60), st.integers(15, 19), st.integers(-2, 2)
)


@needs_kernels
@settings(max_examples=500)
@given(st.lists(NUMBER | HARD | NO_NUMBER, min_size=1, max_size=20))
def test_a_compiled_number_is_that_of_python_or_left_to_python(texts: list[str]) -> None:
    for text, found in zip(texts, cells_of(texts).numbers().tolist(), strict=True):
        if not math.isnan(found):
            assert bits(found) == bits(number(text))


@needs_kernels
def test_plain_numbers_are_not_left_to_python() -> None:
    draws = np.random.default_rng(0).standard_normal(2000)
    texts = [
        "12",
        "-0",
        "+1.5E3",
        *map(repr, draws.tolist()),
        *(f"{v:.6f}" for v in draws),
        *(f"{v:.3e}" for v in draws),
    ]
    assert np.array_equal(cells_of(texts).numbers(), np.array(texts, dtype=object).astype(np.float64))
    hard = [near_a_tie(2**52 + 977 * i, -60, 19, 1) for i in range(500)]
    assert np.isnan(cells_of(hard).numbers()).mean() < 1  # 64 bits of a power tell most of these apart


@needs_kernels
@given(st.lists(TEXT.filter(lambda text: '"' not in text) | NUMBER, min_size=1, max_size=40))
def test_interned_texts_are_the_texts(texts: list[str]) -> None:
    codes, found = cells_of(texts).coded()
    assert [found[code] for code in codes] == cells_of(texts).tolist() == texts
    assert len(found) == len(set(texts))


@needs_kernels
def test_texts_that_were_made_to_share_a_slot_are_given_to_python() -> None:
    n, bits = 500, 10  # 2^10 slots are the first that have room twice
    texts = np.array([f"{i:07}" for i in range(2 * n << bits)], dtype="S8")
    slots = (texts.view(np.uint64) ^ np.uint64(7)) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(64 - bits)
    same = [text.decode() for text in texts[slots == 0][:n].tolist()]
    assert len(same) == n
    codes, found = cells_of(same).coded()
    assert (codes.tolist(), found) == (list(range(n)), same)
    codes, found = cells_of(same * 20).coded()  # given up half way, in a table of more slots
    assert [found[code] for code in codes] == same * 20
    assert len(cells_of([text.decode() for text in texts[:n].tolist()] * 3).coded()[1]) == n  # others are not given up


@needs_kernels
@pytest.mark.parametrize("content", ["u,label\n1,a\0b\n2,c\0\n", 'u,label\n1,"a\0"\n2,c\n'])
def test_a_nul_is_left_to_python(tmp_path: Path, content: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(content)
    assert outcome(path, False, False) == outcome(path, True, False)


@needs_kernels
def test_cells_beyond_the_limit_of_csv_are_refused_before_they_are_held(tmp_path: Path) -> None:
    long = csv.field_size_limit()
    for cell in ("a" * (long + 1), '"' + "a" * (long + 1) + '"', '"' + "a\n" * long):
        path = tmp_path / "t.csv"
        path.write_text(f"u,label\n1,b\n2,{cell}\n")
        assert outcome(path, False, False) == outcome(path, True, False)
        assert "field larger than field limit" in outcome(path, False, False)
    path.write_text(f"u,label\n1,b\n2,{'ü' * long}\n", encoding="utf-8")  # the limit counts letters, not bytes
    assert read_numbers(path).x.tolist() == [[1], [2]]


@needs_kernels
@pytest.mark.parametrize("row", [b"1,\xff\n", b"\xff,a\n", b'1,"\xff\n', b"1,a\xc3\n"])
def test_a_bad_byte_far_from_the_header_is_refused_as_one_near_it(tmp_path: Path, row: bytes) -> None:
    path = tmp_path / "t.csv"
    for n in (1, 20_000):
        path.write_bytes(b"u,label\n" + b"1,a\n" * n + row)
        assert "save it as UTF-8 text" in outcome(path, False, False)
        assert outcome(path, False, False) == outcome(path, True, False)


@needs_kernels
def test_the_first_of_two_faults_is_told_though_threads_run_ahead(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    rows = [f"{i},a\n" for i in range(30)]  # six chunks, which are all under way together
    rows[10] = "red,a\n"
    path.write_text("u,label\n" + "".join(rows) + "1,2,3\n")
    with chunks_of(64), pytest.raises(DataError, match="line 12, column 'u' is not a number"):
        read_numbers(path)
    rows[10] = "1,a\n"
    path.write_text("u,label\n" + "".join(rows) + "1,2,3\n")
    with chunks_of(64), pytest.raises(DataError, match="line 32: 3 cells under a header of 2"):
        read_numbers(path)


@needs_kernels
def test_the_compiled_loops_read_and_write_inside_their_buffers_alone() -> None:
    assert KERNELS is not None
    powers, out = chunk.powers(KERNELS.MOST), np.empty((1, 1))
    spans, text = np.array([[[0, 2]]], np.uint32), b"12"
    one = np.empty(1, np.int32)
    KERNELS.numbers(text, spans, 1, np.zeros(1, np.int32), b".", powers, out)
    assert out == 12
    for begin, end in ((0, 3), (2, 1), (0, 2**31 - 1), (2**32 - 1, 2**32 - 1)):
        outside = np.array([[[begin, end]]], np.uint32)
        with pytest.raises(ValueError, match="outside the text"):
            KERNELS.numbers(text, outside, 1, np.zeros(1, np.int32), b".", powers, out)
        with pytest.raises(ValueError, match="outside the text"):
            KERNELS.intern(text, outside, 1, 0, one, one.copy())
    for wanted in (-1, 1):
        with pytest.raises(ValueError, match="records x wanted"):
            KERNELS.numbers(text, spans, 1, np.full(1, wanted, np.int32), b".", powers, out)
    with pytest.raises(ValueError, match="records x wanted"):
        KERNELS.numbers(text, spans, 1, np.zeros(1, np.int32), b".", powers, np.empty((2, 1)))
    with pytest.raises(ValueError, match="records x wanted"):
        KERNELS.numbers(text, spans, 1, np.zeros(1, np.int32), b".", powers[1:], out)
    with pytest.raises(ValueError, match="one of each record"):
        KERNELS.intern(text, spans, 1, 0, one, np.empty(2, np.int32))
    with pytest.raises(ValueError, match="room for the records"):
        KERNELS.split(text, True, 2, 9, b",", spans, one)
    with pytest.raises(BufferError):
        KERNELS.numbers(text, spans, 1, np.zeros(1, np.int32), b".", powers, bytes(8))


def test_a_table_is_not_held_twice_while_it_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    n, width = 20_000, 60
    path, line = tmp_path / "t.csv", ",".join(["0.25"] * width)
    path.write_text(",".join(f"x{j}" for j in range(width)) + ",label,agent\n" + f"{line},a,s\n{line},b,t\n" * (n // 2))
    monkeypatch.setattr(feature_table, "RUN", 1 << 16)
    with chunks_of(1 << 16):
        load(str(path))  # imports
        tracemalloc.start()
        try:
            load(str(path))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 2.5 * (4 * n * width)  # tracemalloc counts the shards in full before a page of them is used


@pytest.mark.parametrize("python", [False, True])
def test_a_schema_can_be_drafted_and_counted_from_what_the_reader_gives(tmp_path: Path, python: bool) -> None:
    path = tmp_path / "t.csv"
    path.write_text('u,v,label,agent\n1,red,3.0,"a""b"\n2.50,1e3,ab,3\n')
    with mock.patch.dict(os.environ, {"TACIT_NO_KERNELS": "1"} if python else {}):
        (raw,) = read_raw(path)
    assert len(raw) == 2
    assert {name: cells.tolist() for name, cells in raw.columns.items()} == {
        "u": ["1", "2.50"], "v": ["red", "1e3"], "label": ["3.0", "ab"], "agent": ['a"b', "3"],
    }  # fmt: skip
    assert Coded.of(raw.columns["label"]).names == ("3", "ab")
    assert raw.where(1, "v") == f"{path}, line 3, column 'v'"
