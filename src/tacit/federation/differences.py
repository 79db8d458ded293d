"""What differs between the public facts of two parties, in words: columns, classes and bounds, by name.

Either text may come from another institution. It is read as JSON: a TOML parser takes seconds for a few thousand
characters of nested keys. What is quoted of it is short, and can be printed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from tacit.federation.wire import Malformed, parsed
from tacit.jsontext import Values

MOST = 3  # differences that are told
LONGEST = 60  # characters of what is quoted
# of what tacit.toml writes: a text, the mark between key and value, a word (number, date, true), the end of a line
_TOKEN = re.compile(r'("(?:[^"\\]|\\.)*(?:"|\\?\Z))|( = )|([^\s"=,{}\[\]]+)|(\n)', re.DOTALL)
_JSON_WORD = re.compile(r"true|false|-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")
_BOUNDS = ("lo", "hi")


class Difference(NamedTuple):
    """A subject with its verb, and what each of the two says of it."""

    subject: str
    mine: str
    theirs: str


def in_words(mine: str, theirs: str, who: str, others: str) -> str:
    """Return how two texts of `facts.public` differ, as a sentence without its end; `who` declares `mine`."""
    found = list(_differences(mine, theirs))
    told = [f"{one.subject} {one.mine} at {who} and {one.theirs} at {others}" for one in found[:MOST]]
    told += [f"{len(found) - MOST} more"] if len(found) > MOST else []
    return "; ".join(told) or f"what {who} declares is not what {others} declare"


def quoted(value: Any) -> str:
    """Return a value as JSON, cut where it is long, with nothing that moves a cursor."""
    text = json.dumps(value, ensure_ascii=False)
    cut = f"{text[:LONGEST]}..." if len(text) > LONGEST else text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)


def schema_of(public: str) -> Values:
    """Return the tables of the schema in some public facts, {} if they have none that `tacit.toml.plain` wrote."""
    try:
        text = parsed(public).get("schema")
        return parsed("{" + _TOKEN.sub(_as_json, text.strip("\n")) + "}") if isinstance(text, str) else {}
    except Malformed:
        return {}


def _differences(mine: str, theirs: str) -> Iterator[Difference]:
    try:
        a, b = parsed(mine), parsed(theirs)
    except Malformed:
        return
    schemas = schema_of(mine), schema_of(theirs)
    if all(schemas) and schemas[0] != schemas[1]:
        yield from _of_schemas(*schemas)
        return
    yield from _of_names(_texts(a.get("features")), _texts(b.get("features")))
    for key, subject in _FACTS.items():
        if a.get(key) != b.get(key):
            yield Difference(subject, quoted(a.get(key)), quoted(b.get(key)))


_FACTS = {
    "classes": "the classes are", "n_classes": "the number of classes is", "target": "the label's range is",
    "bounds": "the bounds of all features are", "longest": "the longest record is", "image": "the image is",
    "n_features": "the number of features is", "schema": "the schema is", "columns": "the encoding is",
}  # fmt: skip


def _of_schemas(a: Values, b: Values) -> Iterator[Difference]:
    """What differs between two schemas, column by column and then in their other tables."""
    columns = [found if isinstance(found, dict) else {} for found in (a.get("columns"), b.get("columns"))]
    yield from _of_names(*columns)
    for name in columns[0]:
        if name in columns[1] and columns[0][name] != columns[1][name]:
            yield from _of_columns(f"column {quoted(name)}", columns[0][name], columns[1][name])
    for table in {**a, **b}:
        if table != "columns" and a.get(table) != b.get(table):
            yield Difference(f"{quoted(table)} is", quoted(a.get(table)), quoted(b.get(table)))


def _of_columns(who: str, a: Any, b: Any) -> Iterator[Difference]:
    if not isinstance(a, dict) or not isinstance(b, dict):
        yield Difference(f"{who} is", quoted(a), quoted(b))
        return
    keys = [key for key in {**a, **b} if a.get(key) != b.get(key)]
    if set(_BOUNDS) & set(keys):
        bounds = [" to ".join(quoted(one.get(key)) for key in _BOUNDS) for one in (a, b)]
        yield Difference(f"{who} has the bounds", *bounds)
    for key in keys:
        if key not in _BOUNDS:
            yield Difference(f"{who} has {quoted(key)}", quoted(a.get(key)), quoted(b.get(key)))


def _of_names(a: Iterable[str], b: Iterable[str]) -> Iterator[Difference]:
    """Columns that one of two parties declares, or else their order if it differs."""
    mine, theirs = list(a), list(b)
    ours, yours = set(mine), set(theirs)
    for name in mine:
        if name not in yours:
            yield Difference(f"column {quoted(name)} is", "declared", "missing")
    for name in theirs:
        if name not in ours:
            yield Difference(f"column {quoted(name)} is", "missing", "declared")
    if ours == yours and mine != theirs:
        at = next((n for n, pair in enumerate(zip(mine, theirs, strict=False)) if pair[0] != pair[1]), 0)
        yield Difference(f"in the order of columns, number {at + 1} is", quoted(mine[at]), quoted(theirs[at]))


def _texts(value: Any) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _as_json(token: re.Match[str]) -> str:
    text, mark, word, end = token.groups()
    if text is not None or (word is not None and _JSON_WORD.fullmatch(word)):
        return token[0]
    return ": " if mark else ", " if end else json.dumps(word)  # a date is a text
