"""What files say, taken with care: nothing in a file decides how long, how deep or of what kind an answer is."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from tacit import toml
from tacit.errors import TacitError
from tacit.ui.place import Unreadable

LONGEST = 1 << 16  # bytes of a line
LETTERS = 300  # of a text, at most
SENTENCES = 4000  # letters of a text that may be long
_HEAD, _ENTRY = re.compile(r"\[[a-z_]+\]"), re.compile(r"([a-z0-9_]+) = (.+)")


def finite(value: object) -> float | None:
    """Return a number that can be drawn, else None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def whole(value: object) -> int | None:
    """Return a count, else None."""
    return value if type(value) is int and 0 <= value < 2**53 else None


def text(value: object) -> str:
    """Return what a file says as a text of bounded length; nested values say nothing."""
    if value is None or isinstance(value, (dict, list)):
        return ""
    try:
        said = str(value)
    except ValueError:  # a whole number with more digits than Python spells
        return ""
    return said if len(said) <= LETTERS else said[: LETTERS - 1] + "…"


def text_long(value: object) -> str:
    """Return a sentence of a result."""
    return value[:SENTENCES] if isinstance(value, str) else ""


def parsed(line: bytes) -> dict[str, object]:
    """Return the object that a line of JSON is; empty where it is none."""
    if not line or len(line) > LONGEST:
        return {}
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return row if isinstance(row, dict) else {}


def last_row(content: bytes) -> Mapping[str, Any]:
    """Return the last whole line that is the record of a round."""
    for line in reversed(content[: content.rfind(b"\n") + 1].split(b"\n")):
        row = parsed(line)
        if "t" in row:
            return row
    return {}


def last_record(content: bytes) -> Mapping[str, Any]:
    """Return the last whole line of a file of records, if it is not too long to be one of a comparison."""
    *_, line, _ = (b"", *content.split(b"\n"))
    return parsed(line)


def document(content: bytes) -> Mapping[str, Any]:
    """Return the JSON object that a file is."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        raise Unreadable("a file is no JSON that can be shown") from None
    if not isinstance(found, dict):
        raise Unreadable("a file is no JSON object")
    return found


def spec(content: bytes) -> Mapping[str, Any]:
    """Return the dotted keys that a file of a spec is."""
    try:
        said = content.decode("utf-8")
        return quick_spec(said) or toml.parsed(said, "spec.toml")
    except (TacitError, UnicodeDecodeError) as error:
        raise Unreadable(text(error)) from None


def quick_spec(written: str) -> Mapping[str, Any] | None:
    """Return the dotted keys of a spec as tacit writes it, whose values are JSON too; None for any other TOML.

    A thousand specs are read six times as fast as by the parser of TOML, for which a first visitor would wait.
    """
    values: dict[str, Any] = {}
    head = ""
    try:
        for line in written.split("\n"):
            if _HEAD.fullmatch(line):
                head = line[1:-1]
            elif line:
                key, value = _ENTRY.fullmatch(line).groups()  # type: ignore[union-attr]
                values[f"{head}.{key}"] = json.loads(value)
    except (AttributeError, ValueError, RecursionError):
        return None
    return values if head else None
