"""How the cells of a text file are written: the [file] table of a schema.

    [file]
    separator = ";"      between cells; default: a tab in .tsv files, else a comma
    quote = "'"          around cells that hold a separator, written twice inside; "" for none; default: \"
    decimal = ","        the decimal sign of numbers; default: a point
    newlines = true      a quoted cell may hold line ends; default: false, a line is a record

The table is public, and it alone decides how a file is read (`formats.csv`). Files that are no text have no layout.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from tacit.errors import SpecError, unknown

QUOTES = ('"', "'", "")
DECIMALS = (".", ",")


@dataclass(frozen=True)
class FileLayout:
    """What separates cells, quotes them, and is the decimal sign; and whether a record may span lines.

    `newlines` is for files whose writer writes every quote of a quoted cell twice. In a file of another writer, one
    stray quote could make a record of several lines: without `newlines` no line can change how another is read.
    """

    separator: str | None = None  # None: by the name of the file
    quote: str = '"'
    decimal: str = "."
    newlines: bool = False

    def __post_init__(self) -> None:
        if self.separator is not None and not _may_separate(self.separator):
            takes = "one ASCII sign that is no letter, digit, quote, point, + or -"
            raise SpecError(f'separator takes {takes}, such as ";" or "\\t"; got {self.separator!r}.')
        for key, choices in (("quote", QUOTES), ("decimal", DECIMALS)):
            if getattr(self, key) not in choices:
                raise SpecError(f"{key} takes one of {', '.join(map(repr, choices))}; got {getattr(self, key)!r}.")
        if type(self.newlines) is not bool:
            raise SpecError(f"newlines takes true or false, got {self.newlines!r}.")
        if self.newlines and not self.quote:
            raise SpecError('newlines = true needs a quote, which tells where a record ends: drop quote = "".')

    @classmethod
    def of(cls, table: Any) -> FileLayout:
        """Read the [file] table of a schema."""
        if not isinstance(table, dict):
            raise SpecError(f"file is {table!r}: write [file] and its keys under it.")
        known = tuple(field.name for field in fields(cls))
        for key in table:
            if key not in known:
                raise unknown("key of [file]", key, known)
        try:
            return cls(**table)
        except SpecError as error:
            raise SpecError(f"[file]: {error}") from None


def _may_separate(sign: object) -> bool:
    if not isinstance(sign, str) or len(sign) != 1:
        return False
    return sign == "\t" or (" " <= sign <= "~" and not sign.isalnum() and sign not in "\"'.+-")
