"""What a schema may declare a column to be.

    NumericColumn       a number between bounds: itself, its bins or its splines      columns/numeric.py
    CategoricalColumn   one of a list                                                 columns/categorical.py
    DateColumn          year, month, weekday and hour                                 columns/date.py
    TextColumn          words, hashed                                                 columns/text.py
    LabelColumn         the class of a record
    TargetColumn        the number that is to be predicted of a record
    AgentColumn         the agent that holds a record
    IgnoredColumn       left out

A new kind is one class and one line in KINDS. The fields of the class are the keys that the column takes.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np

from tacit.data.cells import Cells, Coded
from tacit.data.columns.categorical import CategoricalColumn
from tacit.data.columns.date import DateColumn
from tacit.data.columns.encoding import FeatureColumn, Tally, check_list
from tacit.data.columns.numeric import NumericColumn, as_numbers
from tacit.data.columns.text import TextColumn
from tacit.errors import SpecError
from tacit.types import Target

__all__ = [
    "KINDS", "AgentColumn", "CategoricalColumn", "Column", "DateColumn", "FeatureColumn", "IgnoredColumn",
    "LabelColumn", "NumericColumn", "Tally", "TextColumn", "as_numbers", "check_list",
]  # fmt: skip


@dataclass(frozen=True)
class LabelColumn:
    """One of `classes`, each written as it is called; or `groups`, (class, the labels that mean it).

    A record of another label counts as absent.
    """

    kind: ClassVar[str] = "label"
    classes: tuple[str, ...] = ()
    groups: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def __post_init__(self) -> None:
        if self.groups and self.classes:
            raise SpecError("groups name the classes: drop the list of classes.")
        if self.groups:
            object.__setattr__(self, "classes", tuple(name for name, _ in self.groups))
            for name, labels in self.groups:
                check_list(f"the group {name!r}", labels, least=1)
            check_list("groups", tuple(label for _, labels in self.groups for label in labels), least=2)
        check_list("classes", self.classes, least=2)

    @property
    def meaning(self) -> dict[str, str]:
        """The label -> its class."""
        named = self.groups or tuple((name, (name,)) for name in self.classes)
        return {label: name for name, labels in named for label in labels}

    def read(self, labels: Coded) -> Coded:
        """Return labels as the classes that they mean; in groups, one that means none is empty."""
        if not self.groups:
            return labels
        meaning, place = self.meaning, dict[str, int]()
        codes = [place.setdefault(meaning.get(name, ""), len(place)) for name in labels.names]
        return Coded(labels.each(codes).astype(labels.codes.dtype), tuple(place))

    def tally(self, cells: Cells, marks: Collection[str] = ()) -> Tally:  # noqa: ARG002
        """Count the cells that name no class."""
        text, meaning = Coded.of(cells), self.meaning
        missing = text.count([not name for name in text.names])
        return Tally(missing=missing, unknown=text.count([name not in meaning for name in text.names]) - missing)


@dataclass(frozen=True)
class TargetColumn:
    """A number to predict, in [lo, hi]: numbers outside are moved to the end, a record without one counts as absent."""

    kind: ClassVar[str] = "target"
    lo: float
    hi: float

    def __post_init__(self) -> None:
        _ = self.range  # refuses bounds that bound nothing

    @property
    def range(self) -> Target:
        """The public bounds."""
        return Target(self.lo, self.hi)

    def tally(self, cells: Cells, marks: Collection[str] = ()) -> Tally:
        """Count the cells that are moved to a bound, missing or no number."""
        value, unreadable = as_numbers(cells, marks)
        missing = int(np.isnan(value).sum()) - unreadable
        clipped = int(((value < self.lo) | (value > self.hi)).sum())
        return Tally(clipped=clipped, missing=missing, unreadable=unreadable)


@dataclass(frozen=True)
class AgentColumn:
    """The name of the agent that holds the record."""

    kind: ClassVar[str] = "agent"

    def tally(self, cells: Cells, marks: Collection[str] = ()) -> Tally:  # noqa: ARG002
        """Count the empty cells."""
        text = Coded.of(cells)
        return Tally(missing=text.count([not name for name in text.names]))


@dataclass(frozen=True)
class IgnoredColumn:
    """A column that is not used, and need not be there."""

    kind: ClassVar[str] = "ignore"


Column: TypeAlias = FeatureColumn | LabelColumn | TargetColumn | AgentColumn | IgnoredColumn

# what `kind` of a schema.toml says -> the class; the fields of the class are the keys that the column takes
KINDS: dict[str, type[Column]] = {
    column.kind: column
    for column in (
        NumericColumn, CategoricalColumn, DateColumn, TextColumn, LabelColumn, TargetColumn, AgentColumn, IgnoredColumn,
    )
}  # fmt: skip
