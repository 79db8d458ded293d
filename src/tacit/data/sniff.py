"""How a text file is written, as the file itself shows it: a guess for `tacit data schema init`, which writes it down.

Nothing else guesses: training, predicting and describing read by the [file] table of a schema alone.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tacit.data.file_layout import FileLayout
from tacit.data.formats import TEXT, lines_python, suffix_of, table_files
from tacit.data.formats.chunk import is_utf8
from tacit.data.formats.text_file import columns_of, first_line, opened, readable, separator_of
from tacit.data.table import MARKS
from tacit.errors import DataError

SAMPLE = 1 << 18  # bytes that are looked at, or so many lines as long as the header
SAMPLE_LINES = 40
SEPARATORS = (",", ";", "\t", "|")
DECIMAL_SHARE = 0.9  # of the cells of a column with decimal commas that are numbers, at least: the rest are remarks

_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+(?:[eE][+-]?[0-9]+)?")
_POINT = re.compile(r"[+-]?[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"[+-]?[0-9]+")
_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2}(?:,[0-9]{3})+")  # 1,234 may be a thousand or a little more than one


@dataclass(frozen=True)
class Sniffed:
    """A layout, and what is worth saying of the file beside it."""

    layout: FileLayout
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Guess:
    layout: FileLayout
    rows: list[list[str]]  # the records that are well-formed
    share: float  # of the lines that are
    width: int


def sniff(path: Path) -> Sniffed | None:
    """Return how the file, or the first text file of a directory, is written; None where there is no text file."""
    file = next((file for file in table_files(path) if suffix_of(file) in TEXT), None)
    if file is None:
        return None
    with readable(file):
        sample, whole = _sample(file)
    notes = ["it begins with a byte order mark, which is no part of the first name"] * (
        sample.startswith(codecs.BOM_UTF8)
    )
    sample = sample.removeprefix(codecs.BOM_UTF8)
    if sample.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DataError(f"{file} is UTF-16: save it as UTF-8 text.")
    if not is_utf8(sample[: sample.rfind(b"\n") + 1]):  # the last line may be cut in a letter
        notes.append(
            "it holds bytes that are not UTF-8 (Windows-1252?): save it as UTF-8, or their records are read as missing"
        )
    guesses = list(_guesses(sample, whole))
    if not guesses:  # one column, or no header that can be read: the reader tells
        return Sniffed(FileLayout(separator_of(file)), tuple(notes))
    best = max(guesses, key=lambda guess: (guess.share, guess.width))  # of equals the first
    best = _without_quotes(best, sample, whole)
    layout, doubt = _decimal(best)
    return Sniffed(layout, (*notes, *doubt))


def _sample(path: Path) -> tuple[bytes, bool]:
    """Return (the first bytes of a file, whether they are all)."""
    with opened(path) as file:
        text = file.read(SAMPLE)
        size = SAMPLE_LINES * max(text.find(b"\n"), text.find(b"\r"), 0)
        text += file.read(max(0, size - SAMPLE))
        return text, not file.read(1)


def _guesses(sample: bytes, whole: bool) -> Iterator[_Guess]:
    """Try every separator and quote, first those that are taken where several fit."""
    for newlines in (False, True):
        for quote in ('"', "'"):
            for separator in SEPARATORS:
                guess = _guess(sample, whole, FileLayout(separator, quote, newlines=newlines))
                if guess is not None and (quote == '"' or _has_quoted(guess, sample)):
                    yield guess


def _guess(sample: bytes, whole: bool, layout: FileLayout) -> _Guess | None:
    """Read the sample by a layout; None where that gives no header of two columns."""
    try:
        header, end, text = first_line(sample, layout)
        _, rules = columns_of(header, end, ",", layout)
    except (DataError, UnicodeDecodeError, csv.Error):
        return None
    if rules.width < 2:
        return None
    found = lines_python.split(text, 0, whole, rules, len(text))
    good = [row for row in found.rows if row is not None]
    n_lines = max(1, found.lines)
    return _Guess(layout, good, (n_lines - len(found.rows) + len(good)) / n_lines, rules.width)


def _has_quoted(guess: _Guess, sample: bytes) -> bool:
    """Tell whether a cell stands in quotes."""
    sign, between = re.escape(guess.layout.quote.encode()), re.escape((guess.layout.separator or ",").encode())
    quoted = rb"(?m)(?:^|%b)%b[^%b\r\n]*%b(?:%b|\r?$)" % (between, sign, sign, sign, between)
    return re.search(quoted, sample) is not None


def _without_quotes(best: _Guess, sample: bytes, whole: bool) -> _Guess:
    """Take quotes for signs like others where none stands around a cell, and more lines are well-formed so."""
    bare = _guess(sample, whole, replace(best.layout, quote="", newlines=False))
    return bare if bare and bare.share > best.share and not _has_quoted(best, sample) else best


def _decimal(guess: _Guess) -> tuple[FileLayout, list[str]]:
    """Return the layout with its decimal sign, and what is in doubt.

    A comma is the decimal sign where a column holds nothing but whole numbers and numbers with one comma, some of them
    not with three digits behind it, and no column holds numbers with a point.
    """
    sure = doubtful = False
    for column in zip(*guess.rows, strict=True):
        cells = [cell for cell in map(str.strip, column) if cell and cell not in MARKS]
        commas = [cell for cell in cells if _COMMA.fullmatch(cell)]
        points = sum(_POINT.fullmatch(cell) is not None for cell in cells)
        if points > len(cells) / 2:
            return guess.layout, []
        numbers = len(commas) + sum(_WHOLE.fullmatch(cell) is not None for cell in cells)
        if commas and not points and numbers >= DECIMAL_SHARE * len(cells):
            only_thousands = all(_THOUSANDS.fullmatch(cell) for cell in commas)
            sure, doubtful = sure or not only_thousands, doubtful or only_thousands
    if sure:
        return replace(guess.layout, decimal=","), []
    doubt = 'numbers such as 1,234 may have a decimal comma or none: say decimal = "," in [file] if they have one'
    return guess.layout, [doubt] * doubtful
