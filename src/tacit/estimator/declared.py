"""What is public of the records an estimator is given, and the records as numbers by these facts.

    schema            kinds and ranges of columns: a path, the text of a schema.toml, or a dictionary
    feature_bounds    (lo, hi), each one number for all features or one for each; or {name: (lo, hi)}
    neither           nothing is known

Where bounds are declared, every cell has an encoding that depends on it alone: no record can end a fit, a number
outside is moved to the end of its range, and a missing one is read as its middle.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from tacit import toml
from tacit.data.column_kinds import NumericColumn
from tacit.data.columns.encoding import Counts
from tacit.data.encoded_table import encode_columns
from tacit.data.schema import OUTCOMES, Schema, parse
from tacit.data.table import some
from tacit.errors import DataError, IncompatibleError, SpecError, nearest, printable, unknown
from tacit.estimator.dictionary import tables_of
from tacit.types import Array

Outcome = dict[str, Any]  # the column that is to be predicted, as a schema declares it

COMPLEX = "Complex data not supported: give real numbers."


@runtime_checkable
class Frame(Protocol):
    """A table with named columns, such as a DataFrame of pandas or of polars."""

    @property
    def columns(self) -> Any: ...

    def __getitem__(self, name: Any, /) -> Any: ...


@dataclass(frozen=True, eq=False)
class Declared:
    """What is public of the features: a schema, which bounds make too, or nothing.

    `says` is true where the user's schema says what is to be predicted: then classes or the target are from there.
    """

    schema: Schema | None = None
    says: bool = False

    @property
    def anything(self) -> bool:
        return self.schema is not None

    @property
    def units(self) -> tuple[Any, Any] | None:
        """(lo, hi - lo) by which each number x becomes (x - lo) / (hi - lo); None where a column becomes else."""
        if self.schema is None:
            return 0.0, 1.0
        columns = [one for one in self.schema.encoded.values() if isinstance(one, NumericColumn) and one.straight]
        if self.schema.crosses or len(columns) < len(self.schema.encoded):
            return None
        low, high = (np.array([getattr(one, end) for one in columns], np.float64) for end in ("lo", "hi"))
        return low, high - low

    def encoded(self, columns: Mapping[str, Array]) -> tuple[Array, Counts]:
        """Return the features of columns by name, encoded by the schema, and how many cells it changed."""
        assert self.schema is not None, "columns are encoded by a schema"
        found = encode_columns("X", columns, self.schema)
        return found.x, found.counts

    def numbers(self, x: Array) -> tuple[Array, Counts]:
        """Return the same of an array whose columns are named by position."""
        if self.schema is not None:
            return self.encoded(dict(zip(self.schema.encoded, x.T, strict=True)))
        largest = float(np.finfo(np.float32).max)  # a number beyond float32 is moved to its end, and ends no fit
        return np.asarray(x.clip(-largest, largest), np.float32), Counts(len(x), {})


def columns_of(frame: Frame, schema: Schema) -> dict[str, Array]:
    """Return the columns of a frame that the features are made of; other columns are not looked at."""
    found = [str(name) for name in frame.columns]
    lacks = [name for name in schema.encoded if name not in found]
    if lacks:
        near = nearest(lacks[0], found)
        hint = f" (did you mean {near!r} by {lacks[0]!r}?)" if near else ""
        raise DataError(f"X lacks {some(lacks)} of {schema.source}{hint}: add them, or drop them from the schema.")
    return {name: np.asarray(frame[name]) for name in schema.encoded}


def no_numbers(given: Any, arrays: bool) -> DataError | None:
    """Return why records are no table of numbers, without a cell of theirs; None where it is for another reason.

    The errors of scikit-learn and of NumPy print the cell, or all cells. `arrays` looks at dense arrays and lists too.
    """
    if isinstance(given, Frame):
        texts = _texts({str(name): np.asarray(given[name]) for name in given.columns})
        if texts:
            todo = f"declare the columns (schema={{{texts[0]!r}: [...], ...}}), or drop these"
            return DataError(f"X holds columns that are no numbers, {some(texts)}: {todo}.")
    if getattr(getattr(given, "dtype", None), "kind", "") == "c":  # sparse ones too
        return DataError(COMPLEX)
    if not arrays:
        return None
    try:
        found = np.asarray(given)
    except ValueError:  # rows of several lengths
        return DataError("X has rows of different lengths: give each record as many numbers.")
    if found.ndim != 2:
        return DataError(f"Expected 2D array, got {found.ndim}D array instead. Reshape your data: a row is a record.")
    if found.dtype.kind == "c":
        return DataError(COMPLEX)
    texts = _texts({f"x{j}": column for j, column in enumerate(found.T)})
    if texts:
        todo = "declare all columns by a schema, or drop these"
        return DataError(f"X holds columns that are no numbers, {some(texts)}: {todo}.")
    return None


def _texts(columns: Mapping[str, Array]) -> list[str]:
    """Name the columns that hold something else than numbers."""
    found = []
    for name, column in columns.items():
        try:
            if column.dtype.kind in "mM":  # NumPy would count days or nanoseconds
                raise TypeError
            column.astype(np.float64)
        except (ValueError, TypeError):
            found.append(name)
    return found


def by_bounds(given: Any, names: Sequence[str | int], outcome: Outcome) -> Declared:
    """Return what `feature_bounds` declares of features with these names, or positions if they have no names."""
    low, high = _ends_by_name(given, names) if isinstance(given, Mapping) else _ends(given, names)
    wrong = np.flatnonzero(~((low < high) & np.isfinite(low) & np.isfinite(high)))
    if len(wrong):
        found = f"{low[wrong[0]]:g} and {high[wrong[0]]:g}"
        raise SpecError(f"feature_bounds takes finite numbers, the lower bound first: got {found}.")
    ends = zip(low.tolist(), high.tolist(), strict=True)
    called = [name if isinstance(name, str) else f"x{name}" for name in names]
    columns = {name: {"kind": "numeric", "lo": a, "hi": b} for name, (a, b) in zip(called, ends, strict=True)}
    return Declared(parse(toml.document_of(_with({"columns": columns}, outcome)), "feature_bounds"))


def _ends(given: Any, names: Sequence[str | int]) -> tuple[Array, Array]:
    """Return the bounds (J,) and (J,) that (lo, hi) declares, each a number or one per feature."""
    by_name = f"{{{names[0]!r}: (lo, hi), ...}}"
    try:
        low, high = (np.asarray(end, np.float64) for end in given)
    except (TypeError, ValueError):
        raise SpecError(
            "feature_bounds takes (lo, hi), each a number or one for every feature, or a dictionary "
            f"{by_name}: got {printable(given)}."
        ) from None
    shape = (len(names),)
    if low.shape == high.shape == shape == (2,):
        raise _ambiguous(np.stack([low, high]), names)
    if any(end.ndim > 1 or end.shape not in ((), shape) for end in (low, high)):
        raise SpecError(
            f"feature_bounds has shapes {low.shape} and {high.shape} for {len(names)} features: give {by_name}."
        )
    return np.broadcast_to(low, shape), np.broadcast_to(high, shape)


def _ambiguous(pairs: Array, names: Sequence[str | int]) -> SpecError:
    """Return the error for two pairs of two features, with each way to read them as a dictionary."""
    ways = {"a pair per feature": pairs, "all lower bounds and then all upper bounds": pairs.T}
    spelled = {way: dict(zip(names, map(tuple, ends.tolist()), strict=True)) for way, ends in ways.items()}
    told = " or ".join(
        f"feature_bounds={spelled[way]!r} ({way})" for way, ends in ways.items() if (ends[:, 0] < ends[:, 1]).all()
    )
    return SpecError(
        "feature_bounds of two features as two pairs can be read in two ways: name the features"
        f"{f', as in {told}' if told else ''}."
    )


def _ends_by_name(given: Mapping[Any, Any], names: Sequence[str | int]) -> tuple[Array, Array]:
    """Return the bounds (J,) and (J,) that {name: (lo, hi)} declares."""
    ends = {}
    for name, pair in given.items():
        if name not in names:
            raise unknown("feature of feature_bounds", str(name), map(str, names))
        try:
            low, high = pair
            ends[name] = float(low), float(high)
        except (TypeError, ValueError):
            raise SpecError(f"feature_bounds[{name!r}] takes (lo, hi), two numbers, got {printable(pair)}.") from None
    lacks = [str(name) for name in names if name not in ends]
    if lacks:
        raise SpecError(f"feature_bounds lacks {some(lacks)}: give (lo, hi) of every feature, or use a schema.")
    low, high = np.array([ends[name] for name in names], np.float64).T
    return low, high


def by_schema(given: Any, outcome: Outcome | None, read: Callable[[], Outcome]) -> Declared:
    """Return what a schema declares: a path, the text of a schema.toml, or a dictionary of its tables or columns.

    If the schema does not declare the outcome, `outcome` does. Without either, it is `read` from the labels.
    """
    tables, source, text = _tables(given)
    columns = tables.get("columns")
    if not isinstance(columns, dict):
        raise SpecError(f"{source}: no columns: declare each column, with its kind.")
    says = any(isinstance(one, dict) and one.get("kind") in OUTCOMES for one in columns.values())
    if says and outcome is not None:
        raise IncompatibleError(f"{source} declares what is to be predicted: drop classes and target_bounds.")
    if not says:
        text = toml.document_of(_with(tables, outcome or read()))
    found = parse(text, source)
    found.check_public()
    return Declared(found, says=says)


def _tables(given: Any) -> tuple[dict[str, Any], str, str]:
    """Return (the tables of a schema, what errors call it, its text)."""
    if isinstance(given, Mapping):
        tables = tables_of(given)
        return tables, "schema", toml.document_of(tables)
    if not isinstance(given, str | Path):
        raise SpecError(f"schema takes a path, a text or a dictionary, got {printable(given)}.")
    is_text = isinstance(given, str) and "\n" in given
    text, source = (str(given), "schema") if is_text else (toml.text_of(given), str(given))
    return toml.loads(text, source), source, text


def _with(tables: dict[str, Any], outcome: Outcome) -> dict[str, Any]:
    """Return the tables with one more column, which is to be predicted, under a name that is free."""
    name = str(outcome["kind"])
    while name in tables["columns"]:
        name += "_"
    return tables | {"columns": tables["columns"] | {name: outcome}}
