"""A first schema.toml for a file. It looks at the records, so whatever it writes is marked until it is replaced."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

import numpy as np

from tacit.data.cells import Cells, Coded
from tacit.data.classes import quantity
from tacit.data.column_kinds import as_numbers
from tacit.data.partition import distinct
from tacit.data.table import MARKS, RawTable, missing_column
from tacit.errors import DataError, SpecError

# a text column with more values than this is taken for a name or a number of the record
MOST_VALUES = 50

# the marks are written whatever the file holds, so that the list says nothing about the file
_HEAD = """\
# Drafted from {source} by: tacit data schema init
#
# READ FROM THE DATA: every number and list that is marked so. They are not private: the largest value of a column
# is somebody's, and a rare category may be one person. Replace each by what is known without these data (a code
# book, a form, what is physically possible), check the guessed kinds, and delete the lines read_from_data = true.
# Training refuses until they are gone.

missing_marks = {marks}  # count as missing, beside empty cells; not read from the data
"""

_FLAG = "read_from_data = true  # delete this line when the above is public knowledge"


def draft_schema(
    tables: Sequence[RawTable], source: str, label_column: str | None = None, agent_column: str | None = None
) -> tuple[str, list[str]]:
    """Return (the TOML text, the columns whose numbers or lists were read from the data).

    Without `label_column`, the label is the column that the format names, else "label". Without `agent_column`, a
    column called "agent" is taken for it if there is one.
    """
    first, *rest = tables
    if label_column is None:
        label_column = first.roles[0] if first.roles else "label"
    if label_column == agent_column:
        raise SpecError(f"the label and the agent column are both {label_column!r}: name two columns.")
    for name in (label_column, agent_column):
        if name is not None and name not in first.columns:
            raise missing_column(first.source, name, list(first.columns), "Say which column it is.")
    for other in rest:
        for odd in sorted(set(other.columns) ^ set(first.columns)):
            raise DataError(f"{odd!r} is a column of only one of {first.source} and {other.source}: make them alike.")
    drafts = {}
    for name in first.columns:
        cells = [table.columns[name] for table in tables]
        if name == label_column:
            drafts[name] = _label(source, name, cells)
        else:
            drafts[name] = ['kind = "agent"'] if name == (agent_column or "agent") else _feature(cells)
    head = _HEAD.format(source=_text(source), marks=_list(MARKS))
    sections = ["\n".join([f"\n[columns.{_key(name)}]", *lines]) for name, lines in drafts.items()]
    return head + "\n".join(sections) + "\n", [name for name, lines in drafts.items() if _FLAG in lines]


def _label(source: str, name: str, columns: list[Cells]) -> list[str]:
    """Draft the lines of the label column."""
    classes = _values(columns)
    if quantity(classes) and any(np.isfinite(as_numbers(column, MARKS)[0]).any() for column in columns):
        return _range("target", columns)
    if len(classes) < 2:
        raise DataError(f"{source}: {name!r} holds {len(classes)} classes and a classifier needs two: is it the label?")
    return _looked_up("label", ("classes", _list(classes), "the list of all classes there can be"))


def _feature(columns: list[Cells]) -> list[str]:
    """Draft the lines of another column: numeric where all cells are numbers, categorical where values are few."""
    parsed = [as_numbers(column, MARKS) for column in columns]
    found = any(np.isfinite(numbers).any() for numbers, _ in parsed)
    if found and not sum(unreadable for _, unreadable in parsed):
        return _range("numeric", columns)
    values = [value for value in _values(columns) if value not in MARKS]
    if 0 < len(values) <= MOST_VALUES:
        return _looked_up("categorical", ("values", _list(values), "the list of all values there can be"))
    return ['kind = "ignore"  # many different texts, or none: a name, a date, a remark? Declare it to use it']


def _range(kind: str, columns: list[Cells]) -> list[str]:
    """Draft the lines of a column of numbers, some of which are finite."""
    value = np.concatenate([as_numbers(column, MARKS)[0] for column in columns])
    finite = value[np.isfinite(value)]
    lo, hi = float(finite.min()), float(finite.max())
    note = " (all values are the same)" if lo == hi else ""
    hi = lo + max(1.0, abs(lo)) if lo == hi else hi
    ends = (("lo", lo, "smallest"), ("hi", hi, "largest"))
    return _looked_up(kind, *((key, _number(v), f"the {e} value there can be{note}") for key, v, e in ends))


def _looked_up(kind: str, *keys: tuple[str, str, str]) -> list[str]:
    """Draft the lines of a column whose keys (name, value, what should replace the value) were read from the data."""
    marked = [f"{key} = {value}  # READ FROM THE DATA: replace by {public}" for key, value, public in keys]
    return [f'kind = "{kind}"', *marked, _FLAG]


def _values(columns: list[Cells]) -> list[str]:
    """List the texts in a column, sorted."""
    return distinct({name for column in columns for name in Coded.of(column).names} - {""})


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)


def _list(values: Iterable[str]) -> str:
    return "[" + ", ".join(map(_text, values)) + "]"


def _text(value: str) -> str:
    # a TOML text is a JSON text, but for surrogate pairs and DEL
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
