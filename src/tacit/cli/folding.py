"""Fold printed lines at the width of the terminal: at spaces only, under a hanging indent."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import textwrap
from typing import TextIO

UNFOLDED = 10_000  # columns: wider than any line
STEP = 4  # columns by which a line is continued below its start
_COLUMNS = re.compile(r"(?P<head>\s*\S.*\s{2,})(?P<tail>\S.*)")  # the last column is parted by two spaces at least
_COMMAND = re.compile(r"\s*(tacit|ssh) ")


def width(file: TextIO | None = None) -> int:
    """Return the columns of a terminal; a line in a pipe is not folded, but for one of stdout if COLUMNS is set.

    What goes to stderr may be a log, in which a message is one line.
    """
    file = sys.stdout if file is None else file
    asked = file is sys.stdout and os.environ.get("COLUMNS", "").isdecimal()
    return shutil.get_terminal_size().columns if asked or file.isatty() else UNFOLDED


def say(text: str, hang: int | None = None, file: TextIO | None = None) -> None:
    """Print lines, folded to the terminal."""
    file = sys.stdout if file is None else file
    print(fold(text, width(file), hang), file=file, flush=True)


def fold(text: str, columns: int, hang: int | None = None) -> str:
    """Fold each line that is longer than so many columns; no word is broken, however long.

    A line is continued under its last column, or `hang` letters from the left. If that leaves less than half of the
    columns, the last column begins on a line of its own.
    """
    return "\n".join(one for line in text.split("\n") for one in _folded(line, columns, hang))


def _folded(line: str, columns: int, hang: int | None) -> list[str]:
    if len(line) <= columns:
        return [line]
    found = _COLUMNS.fullmatch(line)
    if hang is None and found is None:
        return _wrapped(line, columns, _indent(line) + STEP)
    at = len(found["head"]) if hang is None and found else hang or 0
    if 2 * at <= columns:
        return _wrapped(line, columns, at)
    below = _indent(line) + STEP
    return [*_wrapped(line[:at], columns, below), *_wrapped(" " * below + line[at:].strip(), columns, below)]


def _wrapped(line: str, columns: int, hang: int) -> list[str]:
    """Break one line at spaces. A command is continued by a backslash, as a shell does."""
    start = re.match(r"\s*(?:\S+\s{2,})*", line)  # spaces between columns are kept
    assert start is not None, "the pattern matches any text"
    mark = " \\" if _COMMAND.match(line) else ""
    lead = start[0] if len(start[0]) <= columns // 2 else " " * _indent(line)
    parts = textwrap.wrap(
        line[len(lead) :].strip(), columns - len(mark), initial_indent=lead, subsequent_indent=" " * hang,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    return [part + mark for part in parts[:-1]] + parts[-1:] or [line]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


class HelpFormatter(argparse.HelpFormatter):
    """The help of a command: paragraphs are filled, and lines that are indented stay lines."""

    def _fill_text(self, text: str, columns: int, indent: str) -> str:
        lines = _unfolded(text)
        return "\n".join(fold(indent + line, columns, None if line.startswith(" ") else 0) for line in lines)

    def _split_lines(self, text: str, columns: int) -> list[str]:
        return fold(" ".join(text.split()), columns, hang=0).split("\n")


def _unfolded(text: str) -> list[str]:
    """Join lines that belong together: a paragraph, and an indented line with those that continue its last column."""
    lines: list[str] = []
    column = -1  # where a line that continues the last one begins; -1 if none does
    for line in text.split("\n"):
        if line and _indent(line) == column:
            lines[-1] += " " + line.strip()
            continue
        lines.append(line.rstrip())
        found = _COLUMNS.fullmatch(line)
        is_text = bool(line) and not line.startswith(" ") and not line.endswith(":")
        column = 0 if is_text else len(found["head"]) if found else -1
    return lines
