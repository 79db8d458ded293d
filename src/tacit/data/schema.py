"""schema.toml: what is publicly known of each column, so that nothing need be read from private data.

    missing_marks = ["?", "NA"]          texts that count as missing, beside empty cells

    [file]                               how text files are written (`file_layout`); optional
    separator = ";"

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

    [columns.admitted]
    kind = "date"
    lo = 2015-01-01
    hi = 2025-01-01

    [columns.remark]
    kind = "text"

    [columns.outcome]
    kind = "label"
    classes = ["ill", "well"]            or groups = { ill = [1, 2, 3], well = [0] }

    [columns.hospital]
    kind = "agent"

In place of the label, a number may be predicted, with public bounds:

    [columns.days]
    kind = "target"
    lo = 0
    hi = 60

    [columns.name]
    kind = "ignore"

    [crosses]
    age_smoker = ["age", "smoker"]       a feature for each pair of their levels

docs/schema.md lists every kind and key.

A column with `read_from_data = true` holds numbers or lists that `tacit data schema init` took from the data;
it can be looked at and not trained on. Features come in the order of the schema, whatever that of the file; those of
crosses come last.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from tacit import toml
from tacit.data.column_kinds import KINDS, CategoricalColumn, Column, FeatureColumn, LabelColumn, TargetColumn
from tacit.data.columns.cross import Cross
from tacit.data.columns.encoding import FeatureBlock
from tacit.data.file_layout import FileLayout
from tacit.data.schema_keys import READ, texts
from tacit.data.table import some
from tacit.errors import DataError, SpecError, unknown
from tacit.types import ColumnFeatures, Target

MOST_FEATURES = 1 << 20  # of all columns: a schema may come from anywhere, with a model too
OUTCOMES = ("label", "target")  # kinds of the one column that is to be predicted


@dataclass(frozen=True, eq=False)
class Schema:
    """The columns of a table by name; every number here is public."""

    columns: Mapping[str, Column]
    marks: tuple[str, ...] = ()
    drafted: tuple[str, ...] = ()  # columns whose numbers or lists still come from the data
    text: str = ""  # the TOML it was read from
    source: str = "schema"
    file: FileLayout = FileLayout()
    crosses: Mapping[str, Cross] = field(default_factory=dict)

    def __post_init__(self) -> None:
        total = sum(column.width() for column in self.encoded.values())  # before any of them is named
        if total > MOST_FEATURES:
            raise SpecError(f"the columns become {total} features, more than {MOST_FEATURES}: declare fewer.")
        for kinds, least in ((OUTCOMES, 1), (("agent",), 0)):
            found = len(self._of_kind(*kinds))
            if not least <= found <= 1:
                named = " or ".join(f'"{kind}"' for kind in kinds)
                raise SpecError(f"{found or 'no'} columns have kind = {named}: give it to one.")
        if not self.encoded:
            raise SpecError("no column is numeric, categorical, a date or text: a model needs at least one.")
        for name in self.crosses:
            if name in self.columns:
                raise SpecError(f"crosses.{name} has the name of a column: give it another.")
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
        return self.outcome.classes if isinstance(self.outcome, LabelColumn) else ()

    @property
    def outcome(self) -> LabelColumn | TargetColumn:
        """What the column that is to be predicted declares."""
        return next(column for column in self.columns.values() if isinstance(column, LabelColumn | TargetColumn))

    @property
    def target(self) -> Target | None:
        """The range that the label column declares where it is a number."""
        return self.outcome.range if isinstance(self.outcome, TargetColumn) else None

    @property
    def encoded(self) -> dict[str, FeatureColumn]:
        """The columns that become features."""
        return {name: c for name, c in self.columns.items() if isinstance(c, FeatureColumn)}

    @cached_property
    def blocks(self) -> tuple[FeatureBlock, ...]:
        """The features, those of a column or of a cross together."""
        found = [block for name, column in self.encoded.items() for block in column.blocks(name)]
        for name, cross in self.crosses.items():
            try:
                found.append(cross.block(name, self.encoded))
            except SpecError as error:
                raise SpecError(f"crosses.{name}: {error}") from None
        return tuple(found)

    @cached_property
    def features(self) -> tuple[str, ...]:
        """The names of the features: age, smoker=former, ..."""
        return tuple(feature for block in self.blocks for feature in block.features)

    @property
    def bounds(self) -> tuple[float, float]:
        """The range of every feature: [0, 1], and [-1, 1] where text is hashed."""
        return (-1.0 if any(block.signed for block in self.blocks) else 0.0), 1.0

    @property
    def longest(self) -> tuple[float, float]:
        """sup |x|_1 and sup |x|_2: n and sqrt(n) for n one-hot columns, against J and sqrt(J) for J features."""
        return sum(block.l1 for block in self.blocks), math.sqrt(sum(block.l2**2 for block in self.blocks))

    @property
    def made(self) -> tuple[ColumnFeatures, ...]:
        """Which features each column becomes: one of these a part for a date."""
        found, at = [], 0
        for block in self.blocks:
            size = len(block.features)
            shares = not (block.number or block.signed)
            found.append(ColumnFeatures(block.column, at, at + size, block.l2, block.number, shares))
            at += size
        return tuple(found)

    def check_columns(self, source: str, found: Collection[str], training: bool) -> None:
        """Refuse a file whose columns are not these.

        Training needs all but the ignored, and no others. Otherwise the label and the agent may be absent, and
        other columns are not looked at.
        """
        needed = [name for name, c in self.columns.items() if c.kind != "ignore"] if training else self.encoded
        lacks = [name for name in needed if name not in found]
        if lacks:
            between = f" (cells are read between {self.file.separator!r}: [file])" if self.file.separator else ""
            raise DataError(f"{source} lacks {some(lacks)} of {self.source}{between}: add, or take out of the schema.")
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
            if key not in (known := ("columns", "missing_marks", "file", "crosses")):
                raise unknown("key", key, known)
        columns = document.get("columns")
        if not isinstance(columns, dict) or not columns:
            raise SpecError('no columns: write [columns.NAME] and kind = "..." for each.')
        return Schema(
            {name: _column(name, keys) for name, keys in columns.items()},
            texts("missing_marks", document.get("missing_marks", [])),
            tuple(name for name, keys in columns.items() if keys.get("read_from_data")),
            text,
            source,
            FileLayout.of(document.get("file", {})),
            _crosses(document.get("crosses", {})),
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
    known = {key.name: key for key in fields(KINDS[kind])}
    for key in keys:
        if key not in (valid := (*known, "kind", "read_from_data")):
            raise unknown(f"key of {kind} column {name!r}", key, valid)
    for key, declared in known.items():
        if declared.default is MISSING and key not in keys:
            raise SpecError(f"{where} has no {key}: a {kind} column needs it.")
    if not isinstance(keys.get("read_from_data", False), bool):
        raise SpecError(f"{where}.read_from_data takes true or false, got {keys['read_from_data']!r}.")
    try:
        return KINDS[kind](**{key: READ[str(known[key].type)](key, keys[key]) for key in known if key in keys})
    except SpecError as error:
        raise SpecError(f"{where}: {error}") from None


def _crosses(found: Any) -> dict[str, Cross]:
    """Read the section [crosses]."""
    if not isinstance(found, dict):
        raise SpecError(f'crosses is {found!r}: write [crosses] and NAME = ["COLUMN", "COLUMN"] under it.')
    crosses = {}
    for name, columns in found.items():
        try:
            crosses[name] = Cross(texts("the list of columns", columns))
        except SpecError as error:
            raise SpecError(f"crosses.{name}: {error}") from None
    return crosses
