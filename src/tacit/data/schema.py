"""schema.toml: what is publicly known of each column, so that nothing need be read from private data.

    missing_marks = ["?", "NA"]          texts that count as missing, beside empty cells

    [columns.age]
    kind = "numeric"
    lo = 0
    hi = 120
    missing = 40                         missing cells are read as this; default: the middle

    [columns.smoker]
    kind = "categorical"
    values = ["never", "former", "current"]
    drop = "never"                       optional: the value without a feature of its own
    other = "former"                     optional: unknown values are read as this; default: all zeros
    missing = "never"                    optional: missing cells are read as this; default: all zeros

    [columns.outcome]
    kind = "label"
    classes = ["ill", "well"]

    [columns.hospital]
    kind = "agent"

In place of the label, a number may be predicted, with public bounds:

    [columns.days]
    kind = "target"
    lo = 0
    hi = 60

    [columns.name]
    kind = "ignore"

A column with `read_from_data = true` holds numbers or lists that `tacit data schema init` took from the data;
it can be looked at and not trained on. Features come in the order of the schema, whatever that of the file.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

from tacit import toml
from tacit.data.cells import plain
from tacit.data.column_kinds import (
    KINDS,
    CategoricalColumn,
    Column,
    FeatureColumn,
    LabelColumn,
    NumericColumn,
    TargetColumn,
)
from tacit.data.table import some
from tacit.errors import DataError, SpecError, unknown
from tacit.types import Norm, Target

OUTCOMES = ("label", "target")  # kinds of the one column that is to be predicted


@dataclass(frozen=True, eq=False)
class Schema:
    """The columns of a table by name; every number here is public."""

    columns: Mapping[str, Column]
    marks: tuple[str, ...] = ()
    drafted: tuple[str, ...] = ()  # columns whose numbers or lists still come from the data
    text: str = ""  # the TOML it was read from
    source: str = "schema"

    def __post_init__(self) -> None:
        for kinds, least in ((OUTCOMES, 1), (("agent",), 0)):
            found = len(self._of_kind(*kinds))
            if not least <= found <= 1:
                named = " or ".join(f'"{kind}"' for kind in kinds)
                raise SpecError(f"{found or 'no'} columns have kind = {named}: give it to one.")
        if not self.encoded:
            raise SpecError("no column is numeric or categorical: a model needs at least one.")
        for column, feature in self.encoded.items():
            both = sorted(set(feature.values) & set(self.marks)) if isinstance(feature, CategoricalColumn) else []
            if both:
                raise SpecError(f"{both[0]!r} is a value of {column!r} and a missing mark: it cannot be both.")
        name, times = Counter(self.features).most_common(1)[0]
        if times > 1:
            raise SpecError(f"{times} features would be called {name!r}: rename a column.")

    def _of_kind(self, *kinds: str) -> list[str]:
        """List the columns of these kinds."""
        return [name for name, column in self.columns.items() if column.kind in kinds]

    @property
    def label(self) -> str:
        """The column that holds the label, a class or a number."""
        return self._of_kind(*OUTCOMES)[0]

    @property
    def agent(self) -> str | None:
        """The column that names the agent, if there is one."""
        return next(iter(self._of_kind("agent")), None)

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes that the label column declares; none where it is a number."""
        outcome = self.columns[self.label]
        return outcome.classes if isinstance(outcome, LabelColumn) else ()

    @property
    def target(self) -> Target | None:
        """The range that the label column declares where it is a number."""
        outcome = self.columns[self.label]
        return outcome.range if isinstance(outcome, TargetColumn) else None

    @property
    def encoded(self) -> dict[str, FeatureColumn]:
        """The columns that become features."""
        return {name: c for name, c in self.columns.items() if isinstance(c, NumericColumn | CategoricalColumn)}

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features: age, smoker=former, ..."""
        return tuple(feature for name, kind in self.encoded.items() for feature in kind.features(name))

    @property
    def active(self) -> int:
        """At most this many features of a record are not zero: one a column, however many values it has."""
        return len(self.encoded)

    def row_bound(self, norm: Norm) -> float:
        """sup |x|: n in l1 and sqrt(n) in l2 for n columns, against J and sqrt(J) for a box of J features."""
        return {Norm.L1: float(self.active), Norm.L2: math.sqrt(self.active), Norm.INF: 1.0}[norm]

    def check_columns(self, source: str, found: Collection[str], training: bool) -> None:
        """Refuse a file whose columns are not these.

        Training needs all but the ignored, and no others. Otherwise the label and the agent may be absent, and
        other columns are not looked at.
        """
        needed = [name for name, c in self.columns.items() if c.kind != "ignore"] if training else self.encoded
        lacks = [name for name in needed if name not in found]
        if lacks:
            raise DataError(f"{source} lacks {some(lacks)} of {self.source}: add, or take out of the schema.")
        adds = [name for name in found if name not in self.columns]
        if training and adds:
            raise DataError(f'{source} has {some(adds)}, not in {self.source}: declare, if unused as kind = "ignore".')

    def check_public(self) -> None:
        """Refuse numbers and lists that were read from the data."""
        if self.drafted:
            raise SpecError(
                f"{self.source}: {some(self.drafted)} still hold numbers or lists read from the data, which are not "
                "private: put public knowledge in their place and delete their lines read_from_data = true."
            )


def read(path: str | Path) -> Schema:
    """Read the schema in a TOML file."""
    return parse(toml.text_of(path), str(path))


def parse(text: str, source: str = "schema") -> Schema:
    """Read the schema in a TOML text; `source` names it in errors."""
    document = toml.loads(text, source)
    try:
        for key in document:
            if key not in ("columns", "missing_marks"):
                raise unknown("key", key, ("columns", "missing_marks"))
        columns = document.get("columns")
        if not isinstance(columns, dict) or not columns:
            raise SpecError('no columns: write [columns.NAME] and kind = "..." for each.')
        return Schema(
            {name: _column(name, keys) for name, keys in columns.items()},
            _texts("missing_marks", document.get("missing_marks", [])),
            tuple(name for name, keys in columns.items() if keys.get("read_from_data")),
            text,
            source,
        )
    except SpecError as error:
        raise SpecError(f"{source}: {error}") from None


def _column(name: str, keys: Any) -> Column:
    """Read the declaration of one column."""
    where = f"columns.{name}"
    if not isinstance(keys, dict):
        raise SpecError(f"{where} is {keys!r}: write [{where}] and its keys under it.")
    kind = keys.get("kind")
    if not isinstance(kind, str):
        raise SpecError(f"{where} needs a kind: one of {', '.join(KINDS)}.")
    if kind not in KINDS:
        raise unknown(f"kind of column {name!r}", kind, KINDS)
    known = {field.name: field for field in fields(KINDS[kind])}
    for key in keys:
        if key not in (valid := (*known, "kind", "read_from_data")):
            raise unknown(f"key of {kind} column {name!r}", key, valid)
    for key, field in known.items():
        if field.default is MISSING and key not in keys:
            raise SpecError(f"{where} has no {key}: a {kind} column needs it.")
    if not isinstance(keys.get("read_from_data", False), bool):
        raise SpecError(f"{where}.read_from_data takes true or false, got {keys['read_from_data']!r}.")
    try:
        return KINDS[kind](**{key: _READ[str(known[key].type)](key, keys[key]) for key in known if key in keys})
    except SpecError as error:
        raise SpecError(f"{where}: {error}") from None


def _real(key: str, value: Any) -> float:
    if type(value) not in (int, float):
        raise SpecError(f"{key} takes a number, got {value!r}.")
    try:
        return float(value)
    except OverflowError:
        raise SpecError(f"{key} is beyond the range of a float: choose a smaller number.") from None


def _texts(key: str, values: Any) -> tuple[str, ...]:
    """Read a list of texts or numbers, as the texts that a file would hold."""
    if not isinstance(values, list):
        raise SpecError(f"{key} takes a list, got {values!r}.")
    for value in values:
        if type(value) not in (str, int, float):
            raise SpecError(f"{key} takes texts and numbers, got {value!r}: write it in quotes, as the file does.")
    return tuple(plain(value) for value in values)


# the type of a column's key, as its class writes it -> how the key is read
_READ: dict[str, Callable[[str, Any], Any]] = {
    "float": _real,
    "float | None": _real,
    "tuple[str, ...]": _texts,
    "str | None": lambda key, value: _texts(key, [value])[0],
}
