"""How the value of a key of a schema.toml is read, by the type that its class declares."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

from tacit.data.cells import plain
from tacit.data.columns.encoding import LEVEL
from tacit.errors import SpecError


def real(key: str, value: Any) -> float:
    """Read a number."""
    if type(value) not in (int, float):
        raise SpecError(f"{key} takes a number, got {value!r}.")
    try:
        return float(value)
    except OverflowError:
        raise SpecError(f"{key} is beyond the range of a float: choose a smaller number.") from None


def texts(key: str, values: Any) -> tuple[str, ...]:
    """Read a list of texts or numbers, as the texts that a file would hold."""
    if not isinstance(values, list):
        raise SpecError(f"{key} takes a list, got {values!r}.")
    for value in values:
        if type(value) not in (str, int, float):
            raise SpecError(f"{key} takes texts and numbers, got {value!r}: write it in quotes, as the file does.")
    return tuple(plain(value) for value in values)


def _text(key: str, value: Any) -> str:
    return texts(key, [value])[0]


def _whole(key: str, value: Any) -> int:
    if type(value) is not int:
        raise SpecError(f"{key} takes a whole number, got {value!r}.")
    return value


def _reals(key: str, values: Any) -> tuple[float, ...]:
    if not isinstance(values, list):
        raise SpecError(f"{key} takes a list of numbers, got {values!r}.")
    return tuple(real(key, value) for value in values)


def _real_or_level(key: str, value: Any) -> float | str:
    if isinstance(value, str) and value != LEVEL:
        raise SpecError(f'{key} takes a number or "{LEVEL}", got {value!r}.')
    return value if isinstance(value, str) else real(key, value)


def _moment(key: str, value: Any) -> str:
    """Read a date of TOML, or its text; a number is a year."""
    return value.isoformat() if isinstance(value, date) else _text(key, value)


def _groups(key: str, value: Any) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(value, dict):
        raise SpecError(f'{key} takes classes and their labels, such as {{ no = ["0"], yes = ["1", "2"] }}.')
    return tuple((plain(name), texts(f"{key}.{name}", labels)) for name, labels in value.items())


# the type of a column's key, as its class writes it -> how the key is read
READ: dict[str, Callable[[str, Any], Any]] = {
    "float": real,
    "float | None": real,
    "float | str | None": _real_or_level,
    "int": _whole,
    "int | None": _whole,
    "str": _moment,
    "str | None": _text,
    "tuple[float, ...]": _reals,
    "tuple[str, ...]": texts,
    "tuple[tuple[str, tuple[str, ...]], ...]": _groups,
}
