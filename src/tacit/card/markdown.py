"""A card as Markdown: every text is escaped, so that no name can become markup, a link or HTML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from tacit.card.blocks import Blank, Block, Bullets, Card, Code, Facts, Matrix, Pictures, Signatures, Table, Text

LINE = "_" * 40  # to write on
_SPECIAL = re.compile(r"([\\`*_\[\]|#~$!])")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u200b-\u200f\u202a-\u202e\u2066-\u2069]+")  # unseen
_BEGINS = re.compile(r"^(\d*)([-+=.)])(?=[-=\s]|$)")  # a list, a rule or a heading, at the begin of a line
_NO_CODE = re.compile(r"[^\n\t\x20-\x7e\xa0-\U0010ffff]")


def write(card: Card) -> str:
    """Return the card as text."""
    parts = [f"# {plain(card.title)}", f"**{plain(card.notice.text)}**", plain(card.about)]
    for section in card.sections:
        parts += [f"## {plain(section.title)}", *(_block(block) for block in section.blocks)]
    return "\n\n".join(part for part in parts if part) + "\n"


def plain(text: str) -> str:
    """Return text as Markdown that shows this text, in one line."""
    shown = _SPECIAL.sub(r"\\\1", escape(_CONTROL.sub(" ", text), quote=False))
    shown = shown.replace("://", "&#58;//").replace("www.", "www&#46;").replace("@", "&#64;")  # some readers link these
    return _BEGINS.sub(r"\1\\\2", shown.strip())


def _block(block: Block) -> str:
    match block:
        case Text(text, kind):
            return f"**{plain(text)}**" if kind in ("good", "bad", "lead") and text else plain(text)
        case Facts(pairs):
            return "\n".join(f"- **{plain(name)}**: {plain(value)}" for name, value in pairs)
        case Table():
            return _table(block)
        case Bullets(items):
            return "\n".join(f"- {plain(item)}" for item in items)
        case Blank(label, lines):
            return "\n\n".join([f"**{plain(label)}**:", *["\\_" * len(LINE)] * lines])
        case Signatures(roles):
            return _table(Table("", ["", "name", "date", "signature"], [[role, "", "", ""] for role in roles]))
        case Code(text):
            return _code(text)
        case Pictures(_, tables):
            return "\n\n".join(map(_table, tables))
        case Matrix(_, table):
            return _table(table)


def _table(table: Table) -> str:
    head = [_row(table.columns), _row(["---"] * len(table.columns), raw=True)]
    caption = [f"*{plain(table.caption)}*", ""] if table.caption else []
    return "\n".join([*caption, *head, *map(_row, table.rows)])


def _row(cells: Sequence[str], raw: bool = False) -> str:
    return f"| {' | '.join(cell if raw else plain(cell) for cell in cells)} |"


def _code(text: str) -> str:
    """Return a block of code whose fence no line of the text can end."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{_NO_CODE.sub(' ', text).rstrip()}\n{fence}"
