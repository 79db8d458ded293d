"""How a file is written is told from the file, where that is safe, and a stray cell does not change what is told."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.data.file_layout import FileLayout
from tacit.data.formats import read_raw
from tacit.data.sniff import SEPARATORS, sniff
from tacit.errors import DataError

COMMA = FileLayout(",")


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        ("a,b\n1,2\n", COMMA),
        ("a\n1\n", COMMA),
        ("a;b;c\n1,5;2;x\n2,25;3;y\n", FileLayout(";", decimal=",")),
        ("a;b\n1.5;2\n", FileLayout(";")),
        ("a;b\n1.5;2\n1,5;3\n", FileLayout(";")),  # both: it cannot be told
        ("a;b\n1,234;2\n12,345;2\n", FileLayout(";")),  # thousands, perhaps
        ("a;b\n1,234;2\n12,34;2\n", FileLayout(";", decimal=",")),
        ("a;b\nx,y;2\nz;3\n", FileLayout(";")),  # commas of texts
        ("a\tb\n1\t2,3\n", FileLayout("\t", decimal=",")),
        ("a|b\n1|2;3,4\n", FileLayout("|")),
        ("a|b\n1|'x|y'\n", FileLayout("|", "'")),
        ("a,b\nit's,'tis\n", COMMA),
        ('a;b\n"x;y";"2"\n', FileLayout(";")),
        ('a,b\n"x\ny",3\n4,5\n', FileLayout(",", newlines=True)),
        ('"a\nb",c\n1,2\n', FileLayout(",", newlines=True)),
        ('a,b\n5" pipe,3\n"x,5\n', FileLayout(",", "")),
        ('"weight (kg; dry)","b"\n"1","2"\n', COMMA),
    ],
)
def test_separator_quote_decimal_and_newlines_are_told(tmp_path: Path, text: str, layout: FileLayout) -> None:
    path = tmp_path / "t.csv"
    for content in (text, text.replace("\n", "\r\n"), "\ufeff" + text):
        path.write_bytes(content.encode())
        found = sniff(path)
        assert found is not None
        assert found.layout == layout
        assert any("byte order mark" in note for note in found.notes) == content.startswith("\ufeff")


@pytest.mark.parametrize("stray", ['"', "1;2;3;4;5;6", "1,5;2", '"a"b;2;3', "x\udcffy;2;3", "1.5;2;3"])
def test_one_stray_line_changes_nothing(tmp_path: Path, stray: str) -> None:
    rows = ['1,5;"x";3\n'] * 50
    path = tmp_path / "t.csv"
    for at in (0, 25, 50):
        path.write_bytes("".join(["a;b;c\n", *rows[:at], stray + "\n", *rows[at:]]).encode(errors="surrogateescape"))
        found = sniff(path)
        assert found is not None
        assert found.layout == FileLayout(";", decimal="," if stray != "1.5;2;3" else found.layout.decimal)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(*[st.text(st.sampled_from("ab ,;\t|.1"), max_size=5)] * 3), min_size=3, max_size=8),
    separator=st.sampled_from(SEPARATORS),
)
def test_what_is_told_reads_back_what_was_written(
    rows: list[tuple[str, str, str]], separator: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=separator, quoting=csv.QUOTE_ALL).writerows([("u", "v", "w"), *rows])
    path = tmp_path_factory.mktemp("back") / "t.csv"
    path.write_text(text.getvalue(), newline="")
    found = sniff(path)
    assert found is not None
    (raw,) = read_raw(path, found.layout)
    assert list(zip(*(cells.tolist() for cells in raw.columns.values()), strict=True)) == rows


def test_bytes_of_another_encoding_are_noted(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    for encoding in ("utf-8", "cp1252"):
        path.write_bytes(("a;b\n" + "Müller;1\n" * 40_000).encode(encoding))  # longer than the sample
        found = sniff(path)
        assert found is not None
        assert found.layout == FileLayout(";")
        assert any("not UTF-8" in note for note in found.notes) == (encoding == "cp1252")


def test_the_first_text_file_of_a_directory_is_looked_at(tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text("a,b\n1,2\n")
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"a;b\n1;2\n"))
    found = sniff(tmp_path)
    assert found is not None
    assert found.layout == FileLayout(";")
    (tmp_path / "t.tsv").write_text("only\n1\n")
    found = sniff(tmp_path / "t.tsv")
    assert found is not None
    assert found.layout == FileLayout("\t")
    (tmp_path / "t.npz").write_bytes(b"")
    assert sniff(tmp_path / "t.npz") is None
    (tmp_path / "u.csv").write_bytes("a;b\n".encode("utf-16"))
    with pytest.raises(DataError, match="UTF-16"):
        sniff(tmp_path / "u.csv")
