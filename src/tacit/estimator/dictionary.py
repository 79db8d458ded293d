"""Read a schema that is a Python dictionary: one entry per column, written short or as a table of keys.

    (lo, hi)             a number between bounds, or a date: two dates, Timestamps or ISO 8601 texts
    [value, ...]         categories; a range, a set or a CategoricalDtype lists them too
    {"kind": ..., ...}   the keys of a schema.toml

An array, Series or Index is refused wherever it stands: its values were computed, most likely from records, and a
schema holds only what is public.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from typing import Any, Protocol, runtime_checkable

import numpy as np

from tacit.data.columns import moments
from tacit.data.schema import MOST_FEATURES
from tacit.errors import SpecError, printable
from tacit.types import is_unicode

NOT_PUBLIC = (
    "categories and bounds that were read from records are not public. Write the values that you know without these "
    "records as a list, such as ['never', 'former', 'current']"
)
SHORT = "(lo, hi) for a number or a date, [value, ...] for categories, or a dictionary with the key 'kind'"
LISTS = ("values", "classes")  # keys whose value may be a range, a set or a dtype
DTYPES = {("pandas", "CategoricalDtype"), ("polars", "Enum")}  # they declare categories; neither library is imported


@runtime_checkable
class Computed(Protocol):
    """An array, or what pandas and polars make of one: a Series, an Index, a frame."""

    def __array__(self, *args: Any, **kwargs: Any) -> Any: ...


def tables_of(given: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the tables of a schema.toml that a dictionary of tables, or of columns only, stands for."""
    whole = isinstance(given.get("columns"), Mapping)
    columns = {str(name): _column(str(name), value) for name, value in (given["columns"] if whole else given).items()}
    others = {key: one for key, one in given.items() if key != "columns"} if whole else {}
    return _plain("schema", others) | {"columns": columns}  # type: ignore[no-any-return]


def _column(name: str, value: Any) -> dict[str, Any]:
    """Return the table of one column."""
    where = f"schema[{name!r}]"
    if isinstance(value, Mapping):
        table = {key: _values(where, one) if key in LISTS else one for key, one in value.items()}
        found: dict[str, Any] = _plain(where, table)
        return found
    if isinstance(value, tuple):
        return _range(where, value)
    if isinstance(value, list):
        _refuse_two_ends(name, value)
    return {"kind": "categorical", "values": _values(where, value)}


def _range(where: str, value: Sequence[Any]) -> dict[str, Any]:
    """Return the column of numbers or dates that (lo, hi) declares."""
    ends = [_plain(where, one) for one in value]
    if len(ends) == 2 and all(map(_is_number, ends)):
        return {"kind": "numeric", "lo": ends[0], "hi": ends[1]}
    if len(ends) == 2 and all(map(_is_date, ends)):
        return {"kind": "date", "lo": ends[0], "hi": ends[1]}
    found = ", ".join(type(one).__name__ for one in value[:3]) + (", ..." if len(value) > 3 else "")
    raise SpecError(
        f"{where}: a tuple is a range (lo, hi) of two numbers or two dates, got ({found}): write categories as a list."
    )


def _refuse_two_ends(name: str, value: list[Any]) -> None:
    """Refuse a list of two numbers, or of two dates: it may be a range or two categories."""
    ends = [_plain(f"schema[{name!r}]", one) for one in value]
    number = all(map(_is_number, ends))
    if len(ends) != 2 or not (number or all(_is_date(one) and "-" in one for one in ends)):  # a bare year may be a name
        return
    low, high = sorted(ends)
    if low == high or (number and not math.isfinite(high - low)):  # refused as the list that it is
        return
    listed = {"kind": "categorical", "values": ends}
    raise SpecError(
        f"schema[{name!r}] is a list of two {'numbers' if number else 'dates'}, which may be a range or two "
        f"categories. For the range write {{{name!r}: ({low!r}, {high!r})}}. For the two categories write "
        f"{{{name!r}: {listed!r}}}."
    )


def _values(where: str, value: Any) -> list[Any]:
    """Return the categories that a list, a range, a set or a dtype declares; those of a set sorted."""
    if (type(value).__module__.partition(".")[0], type(value).__name__) in DTYPES:
        if value.categories is None:
            raise SpecError(f"{where}: this CategoricalDtype declares no categories: give CategoricalDtype([...]).")
        value = list(value.categories)
    if isinstance(value, Computed):
        raise SpecError(f"{where} is {printable(value)}: {NOT_PUBLIC}.")
    if not isinstance(value, list | tuple | range | set | frozenset):
        raise SpecError(f"{where} takes {SHORT}, got {printable(value)}.")
    if len(value) > MOST_FEATURES:
        raise SpecError(f"{where} lists {len(value)} values, more than {MOST_FEATURES}: declare fewer.")
    found = [str(one) if isinstance(one, bool | np.bool_) else _plain(where, one) for one in value]
    return sorted(found, key=lambda one: (isinstance(one, str), one)) if isinstance(value, set | frozenset) else found


def _plain(where: str, value: Any) -> Any:
    """Return a value as a schema.toml has it: lists, numbers, texts and truth values; no key that is None."""
    if isinstance(value, Mapping):
        return {str(key): _plain(f"{where}[{str(key)!r}]", one) for key, one in value.items() if one is not None}
    if isinstance(value, list | tuple):
        return [_plain(where, one) for one in value]
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    elif isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, datetime) and value == value:  # else the NaT of pandas, which is none
        midnight = (value.hour, value.minute, value.second) == (0, 0, 0)
        return value.date().isoformat() if midnight else value.isoformat(timespec="minutes")
    if isinstance(value, date) and value == value:
        return value.isoformat()
    if isinstance(value, Computed):
        raise SpecError(f"{where} is or holds {printable(value)}: {NOT_PUBLIC}.")
    if isinstance(value, str) and not is_unicode(value):
        raise SpecError(f"{where} holds a text that is not Unicode: rename it.")
    if not isinstance(value, str | bool | int | float | time):
        raise SpecError(f"{where} takes {SHORT}, got {printable(value)}.")
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_date(value: Any) -> bool:
    return isinstance(value, str) and bool(moments.read([value]).known[0])
