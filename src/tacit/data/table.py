"""Records as a file has them: columns by name, whose cells are numbers, text or None.

Labels, agents and categories are text: 3, 3.0 and "3" are one name, whatever the format.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tacit.errors import DataError
from tacit.types import Array

MARKS = ("?", "NA", "N/A", "null", "None")  # what people write where a value is missing

# an integer without leading zeros, perhaps written as a real number: 3, +3, 3.0
_WHOLE = re.compile(r"\+?(-?(?:0|[1-9][0-9]*))(?:\.0*)?")


@dataclass(frozen=True, eq=False)
class RawTable:
    """Records of one source as the file has them: columns (n,) by name, of numbers, text or None."""

    source: str
    columns: Mapping[str, Array]
    lines: Sequence[int] = ()  # the line of each record, where the format has lines
    roles: tuple[str, str] | None = None  # the columns of labels and of agents, where the format names them itself
    matrix: Array | None = None  # the features (n, J) in the order of the columns, where the format has them in one
    not_numbers: Mapping[str, str] = field(default_factory=dict)  # column -> type, where the format has other types

    def __post_init__(self) -> None:
        if not len(self):
            raise DataError(f"{self.source} holds no {'records' if self.columns else 'features'}: check the file.")

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def where(self, i: int, column: str) -> str:
        """Name a cell in an error: its source, line or record, and column."""
        place = f"line {self.lines[i]}" if self.lines else f"record {i + 1}"
        return f"{self.source}, {place}, column {column!r}"

    def texts(self, column: str | None, blank: bool = False) -> Array | None:
        """Return labels or agents as text, None without such a column; an empty cell is refused unless `blank`."""
        if column is None or column not in self.columns:
            return None
        found = list(map(plain, self.columns[column].tolist()))
        if "" in found and not blank:
            raise DataError(f"{self.where(found.index(''), column)} is empty: fill it in or drop the record.")
        return np.array(found, dtype=str)


def check_column_names(source: str, columns: Sequence[str]) -> None:
    """Refuse columns without a name of their own."""
    if not columns:
        raise DataError(f"{source} is empty: the first row must name the columns.")
    for position, (name, times) in enumerate(Counter(columns).items(), start=1):
        if not name:
            raise DataError(f"{source}: column {position} has no name: name it or drop it.")
        if times > 1:
            raise DataError(f"{source}: {times} columns are named {name!r}: rename or drop all but one.")
        if name.startswith("__index_level_"):
            raise DataError(f"{source}: {name!r} is a pandas index, not a feature: write with index=False.")


def missing_column(source: str, column: str, columns: Sequence[str], what_to_do: str) -> DataError:
    """Return the error for a column that is not there, with the nearest that is."""
    near = {name.lower(): name for name in columns}
    match = difflib.get_close_matches(column.lower(), near, n=1)
    hint = f"did you mean {near[match[0]]!r}?" if match else f"it has {some(columns)}."
    return DataError(f"{source} has no column {column!r}: {hint} {what_to_do}")


def plain(value: object) -> str:
    """Return a cell as text, whole numbers without a decimal point; "" for None, NaN and blanks."""
    try:
        if value is None or value != value:  # NaN differs from itself
            return ""
    except TypeError:  # the NA of pandas cannot tell whether it does
        return ""
    text = value.decode(errors="replace") if isinstance(value, bytes) else str(value).strip()
    whole = _WHOLE.fullmatch(text)
    return whole[1] if whole else text


def number(text: str) -> float:
    """Return the number that a cell holds. ValueError where it holds none: 1_0 is ten to Python alone."""
    if "_" in text:
        raise ValueError(f"{text!r} is not a number")
    return float(text)


def some(columns: Sequence[str]) -> str:
    """List the first few names, and say how many more there are."""
    return ", ".join(map(repr, columns[:8])) + (f" and {len(columns) - 8} more" if len(columns) > 8 else "")
