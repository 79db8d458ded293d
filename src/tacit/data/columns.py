"""A `Table`: records as numbers, before they are dealt out to agents; `Cells`: records as a file has them.

Labels, agents and categories are text here: 3, 3.0 and "3" are one name, whatever the format.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tacit.errors import DataError
from tacit.types import Array

# an integer without leading zeros, perhaps written as a real number: 3, +3, 3.0
_WHOLE = re.compile(r"\+?(-?(?:0|[1-9][0-9]*))(?:\.0*)?")


NOT_NUMBERS = (
    "declare the columns in a schema (tacit data schema init), encode this one as numbers, or drop it; if it holds "
    "the labels or the agents, name it as the label or agent column."
)


@dataclass(frozen=True, eq=False)
class Table:
    """Records of one source: x (I, J) float32; labels (I,) and agents (I,) as text, or None where absent."""

    source: str
    features: tuple[str, ...]
    x: Array
    labels: Array | None = None
    agents: Array | None = None

    def __post_init__(self) -> None:
        with np.errstate(over="ignore"):  # beyond float32 becomes inf, refused below
            x = np.asarray(self.x).astype(np.float32, copy=False)
        if not x.size:
            what = "features" if len(x) else "records"
            raise DataError(f"{self.source} holds no {what}: check the file.")
        if not np.isfinite([x.min(), x.max()]).all():
            i, j = np.argwhere(~np.isfinite(x))[0]
            raise DataError(
                f"{self.source}: column {self.features[j]!r}, record {i + 1} is {x[i, j]} in float32: "
                "impute it or drop the record."
            )
        object.__setattr__(self, "x", x)

    def __len__(self) -> int:
        return len(self.x)


@dataclass(frozen=True, eq=False)
class Cells:
    """Columns of one source (I,) by name: numbers where the format has numbers, else text, "" where empty."""

    source: str
    columns: Mapping[str, Array]

    def __post_init__(self) -> None:
        if not len(self):
            raise DataError(f"{self.source} holds no records: check the file.")

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))


def align(table: Table, features: Sequence[str], reference: str) -> Table:
    """The table with its columns in the order of `features`; other columns than those are refused."""
    if tuple(features) == table.features:
        return table
    lacks = [name for name in features if name not in set(table.features)]
    adds = [name for name in table.features if name not in set(features)]
    if lacks or adds:
        found = "; ".join(f"{verb} {some(few)}" for verb, few in (("lacks", lacks), ("adds", adds)) if few)
        raise DataError(f"{table.source} {found}, unlike {reference}: give both the same feature columns.")
    position = {name: j for j, name in enumerate(table.features)}
    return replace(table, features=tuple(features), x=table.x[:, [position[name] for name in features]])


def stack(source: str, tables: Sequence[Table]) -> Table:
    """The records of all tables under one another; labels or agents only where every table has them."""
    first, *rest = tables
    aligned = [first, *(align(table, first.features, first.source) for table in rest)]
    labels = [table.labels for table in aligned if table.labels is not None]
    agents = [table.agents for table in aligned if table.agents is not None]
    return Table(
        source,
        first.features,
        np.concatenate([table.x for table in aligned]),
        np.concatenate(labels) if len(labels) == len(aligned) else None,
        np.concatenate(agents) if len(agents) == len(aligned) else None,
    )


def feature_names(source: str, columns: Sequence[str], roles: Sequence[str]) -> tuple[str, ...]:
    """The columns that hold neither labels nor agents, after a check that each has its own name."""
    if not columns:
        raise DataError(f"{source} is empty: the first row must name the columns.")
    for position, (name, times) in enumerate(Counter(columns).items(), start=1):
        if not name:
            raise DataError(f"{source}: column {position} has no name: name it or drop it.")
        if times > 1:
            raise DataError(f"{source}: {times} columns are named {name!r}: rename or drop all but one.")
        if name.startswith("__index_level_"):
            raise DataError(f"{source}: {name!r} is a pandas index, not a feature: write with index=False.")
    return tuple(name for name in columns if name not in roles)


def missing_column(source: str, column: str, columns: Sequence[str], what_to_do: str) -> DataError:
    """The error for a column that is not there, with the nearest that is."""
    near = {name.lower(): name for name in columns}
    match = difflib.get_close_matches(column.lower(), near, n=1)
    hint = f"did you mean {near[match[0]]!r}?" if match else f"it has {some(columns)}."
    return DataError(f"{source} has no column {column!r}: {hint} {what_to_do}")


def no_labels(source: str, label_column: str, columns: Sequence[str]) -> DataError:
    """The error for a table whose labels are needed and not there."""
    return missing_column(source, label_column, columns, "Name the label column; the first row is the header.")


def names(source: str, column: str, values: Iterable[object], blank: bool = False) -> Array:
    """Labels or agents as text, whole numbers without a decimal point; an empty one is refused unless `blank`."""
    found = []
    for i, value in enumerate(values, start=1):
        text = plain(value)
        if not text and not blank:
            raise DataError(f"{source}: {column!r} of record {i} is empty: fill it in or drop the record.")
        found.append(text)
    return np.array(found, dtype=str)


def plain(value: object) -> str:
    """A cell as text, whole numbers without a decimal point; "" for None, NaN and blanks."""
    text = value.decode(errors="replace") if isinstance(value, bytes) else "" if value is None else str(value).strip()
    if not text or _is_nan(value):
        return ""
    whole = _WHOLE.fullmatch(text)
    return whole[1] if whole else text


def _is_nan(value: object) -> bool:
    """Whether a value differs from itself, as NaN does; a value that cannot tell (the NA of pandas) is none either."""
    try:
        return bool(value != value)
    except TypeError:
        return True


def number(text: str) -> float:
    """The number a cell holds. ValueError where it holds none: 1_0 is ten to Python alone."""
    if "_" in text:
        raise ValueError(f"{text!r} is not a number")
    return float(text)


def some(columns: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    return ", ".join(map(repr, columns[:8])) + (f" and {len(columns) - 8} more" if len(columns) > 8 else "")
