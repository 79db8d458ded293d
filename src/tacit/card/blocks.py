"""What a card is made of: sections of blocks, which Markdown and HTML write each in their own way.

A text in a block is plain text of anybody's making: whoever writes it out escapes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tacit.report.chart import Chart
from tacit.report.tested import Confusion


@dataclass(frozen=True)
class Text:
    """A paragraph; `kind` is empty, or how it is meant: lead, hint, good or bad."""

    text: str
    kind: str = ""


@dataclass(frozen=True)
class Facts:
    """Names and what is said of them."""

    pairs: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Table:
    """A table with a caption."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Bullets:
    """A list."""

    items: Sequence[str]


@dataclass(frozen=True)
class Blank:
    """What a person fills in: a label, and how many lines there are to write on."""

    label: str
    lines: int = 1


@dataclass(frozen=True)
class Signatures:
    """A line to sign for each role."""

    roles: Sequence[str]


@dataclass(frozen=True)
class Code:
    """Text to be copied as it is."""

    text: str


@dataclass(frozen=True)
class Pictures:
    """Charts; where there can be no pictures, tables stand for them."""

    charts: Sequence[Chart]
    tables: Sequence[Table]


@dataclass(frozen=True)
class Matrix:
    """A confusion matrix; where there can be no pictures, a table stands for it."""

    confusion: Confusion
    table: Table


Block: TypeAlias = Text | Facts | Table | Bullets | Blank | Signatures | Code | Pictures | Matrix


@dataclass(frozen=True)
class Section:
    """Blocks under a title."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Notice:
    """The line at the top of a card, which says who may read it: everybody if it is `public`."""

    text: str
    public: bool


@dataclass(frozen=True)
class Card:
    """A whole card."""

    title: str
    notice: Notice
    about: str
    sections: Sequence[Section]
