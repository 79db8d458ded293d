"""Text files of records: opened (and unpacked if the name ends in .gz), their headers, and the errors of reading."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from tacit.data.file_layout import FileLayout
from tacit.data.formats import lines_python
from tacit.data.formats.lines_python import LARGEST, Rules
from tacit.errors import DataError


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Raise a DataError if the file cannot be read, whatever the reason."""
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:  # OSError: also what is called .gz and is not
        raise DataError(f"{path} is not a readable CSV file ({error}): check or write it again.") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} is not a readable CSV file ({error}): save it as UTF-8 text.") from error


def opened(path: Path) -> BinaryIO:
    """Open a file for its bytes, unpacked if its name ends in .gz."""
    if path.suffix.lower() == ".gz":
        return cast(BinaryIO, gzip.open(path, "rb"))  # it reads and seeks as any file
    return path.open("rb")


def separator_of(path: Path) -> str:
    """Return the separator that the name of a file promises."""
    return "\t" if ".tsv" in (suffix.lower() for suffix in path.suffixes[-2:]) else ","


def layout_header(path: Path, file: BinaryIO, layout: FileLayout) -> tuple[bytes, bytes, bytes]:
    """Read until the header is there, and return what `first_line` returns."""
    text = file.read(len(codecs.BOM_UTF8)).removeprefix(codecs.BOM_UTF8)
    if text.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DataError(f"{path} is UTF-16: save it as UTF-8 text.")
    while more := file.read(max(1 << 16, len(text))):
        text += more
        header, end, rest = first_line(text, layout)
        if rest:  # else a line feed may follow, or the header go on
            return header, end, rest
    return first_line(text, layout)


def first_line(text: bytes, layout: FileLayout) -> tuple[bytes, bytes, bytes]:
    """Return (the first line without its end, how lines end, what follows it)."""
    quote, quotes, at = layout.quote.encode(), 0, 0
    for found in re.finditer(b"\r\n|\n|\r", text):
        quotes, at = quotes + (text.count(quote, at, found.start()) if layout.newlines else 0), found.start()
        if quotes % 2 == 0:
            return text[: found.start()], found[0][-1:], text[found.end() :]
    return text, b"\n", b""


def columns_of(header: bytes, end: bytes, separator: str, layout: FileLayout) -> tuple[list[str], Rules]:
    """Return (the names of the columns, stripped; how lines become records); `separator` if the layout names none."""
    separator, text = layout.separator or separator, io.StringIO(header.decode(), newline="")
    rows = csv.reader(
        text, strict=True, delimiter=separator, quotechar=layout.quote or None,
        quoting=csv.QUOTE_MINIMAL if layout.quote else csv.QUOTE_NONE,
    )  # fmt: skip
    names = [name.strip() for name in next(rows, [])]
    if next(rows, None) is not None:
        raise csv.Error("the names of the columns hold a stray quote or line end")
    most = min(len(names) * (lines_python.LIMIT + 3), LARGEST)
    return names, Rules(end, separator.encode(), layout.quote.encode(), layout.newlines, len(names), most)


def strict_header(path: Path) -> tuple[list[str], int, int]:
    """Return (the names in the first row, stripped; its bytes; its lines)."""
    with opened(path) as file:
        size = len(codecs.BOM_UTF8) if file.read(len(codecs.BOM_UTF8)) == codecs.BOM_UTF8 else 0
        file.seek(0)
        text = io.TextIOWrapper(file, newline="", encoding="utf-8-sig")
        lines: list[str] = []

        def noted() -> Iterator[str]:
            for line in text:
                lines.append(line)
                yield line

        rows = csv.reader(noted(), strict=True, delimiter=separator_of(path))
        names = [name.strip() for name in next(rows, [])]
        return names, size + len("".join(lines).encode()), rows.line_num
