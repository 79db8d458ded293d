"""Records as a file has them: columns by name, whose cells are numbers, text or None."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tacit.data.cells import Cells, Coded, plain
from tacit.errors import DataError, printable
from tacit.types import Array

MARKS = ("?", "NA", "N/A", "null", "None")  # what people write where a value is missing


@dataclass(frozen=True, eq=False)
class RawTable:
    """Records of one source as the file has them: columns (n,) by name, of numbers, text or None."""

    source: str
    columns: Mapping[str, Cells]
    lines: Sequence[int] | Array = ()  # the line of each record, where the format has lines
    first: int = 0  # records of the source before these
    roles: tuple[str, str] | None = None  # the columns of labels and of agents, where the format names them itself
    # names of columns -> their numbers (n, J), if the format has these at hand; gives None if a cell holds no number
    matrix: Callable[[Sequence[str]], Array | None] | None = None
    unreadable: Sequence[int] | Array = ()  # the records that are not well-formed: all their cells are empty
    not_numbers: Mapping[str, str] = field(default_factory=dict)  # column -> type, where the format has other types

    def __post_init__(self) -> None:
        if not len(self):
            raise DataError(f"{self.source} holds no {'records' if self.columns else 'features'}: check the file.")

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def where(self, i: int, column: str) -> str:
        """Name a cell in an error: its source, line or record, and column."""
        return f"{self.source}, {self.place(i)}, column {column!r}"

    def place(self, i: int) -> str:
        """Name a record: its line where the format has lines."""
        return f"line {self.lines[i]}" if len(self.lines) else f"record {self.first + i + 1}"

    def texts(self, column: str | None, blank: bool = False) -> Coded | None:
        """Return labels or agents as text, None without such a column; an empty cell is refused unless `blank`."""
        if column is None or column not in self.columns:
            return None
        found = Coded.of(self.columns[column], lambda cell: plain(cell).rstrip("\0"))  # padding of fixed-width texts
        if "" in found.names and not blank:
            first = int(np.argmax(found.codes == found.names.index("")))
            raise DataError(f"{self.where(first, column)} is empty: fill it in or drop the record.")
        return found


def check_column_names(source: str, columns: Sequence[str]) -> None:
    """Refuse columns without a name of their own."""
    if not columns:
        raise DataError(f"{source} is empty: the first row must name the columns.")
    for position, (name, times) in enumerate(Counter(columns).items(), start=1):
        if not name:
            index = " (the index of pandas? write with index=False)" if position == 1 else ""
            raise DataError(f"{source}: column {position} has no name: name it or drop it{index}.")
        if times > 1:
            raise DataError(f"{source}: {times} columns are named {name!r}: rename or drop all but one.")
        if name.startswith("__index_level_"):
            raise DataError(f"{source}: {name!r} is a pandas index, not a feature: write with index=False.")


def missing_column(source: str, column: str, columns: Sequence[str], what_to_do: str) -> DataError:
    """Return the error for a column that is not there, with the nearest that is."""
    near = {name.lower(): name for name in columns}
    match = difflib.get_close_matches(column.lower(), near, n=1)
    hint = f"did you mean {near[match[0]]!r}?" if match else f"it has {some(columns)}."
    return DataError(f"{source} has no column {printable(column)}: {hint} {what_to_do}")


def some(columns: Sequence[str]) -> str:
    """List the first few names, and say how many more there are."""
    return ", ".join(map(repr, columns[:8])) + (f" and {len(columns) - 8} more" if len(columns) > 8 else "")


def counted(n: int, what: str = "record") -> str:
    """Write how many there are: 1 record, 2 records."""
    return f"{n} {what}{'' if n == 1 else 's'}"
