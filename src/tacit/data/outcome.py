"""What the label column holds, and how it becomes y: the class of a record, or a number within public bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.data.cells import Coded
from tacit.data.classes import class_numbers
from tacit.data.column_kinds import as_numbers
from tacit.types import Array, Target


@dataclass(frozen=True)
class LabelReader:
    """Classes by name, or a target; `declared` where that is public, and was not read from the labels."""

    classes: tuple[str, ...] = ()
    target: Target | None = None
    declared: bool = True
    marks: tuple[str, ...] = ()  # texts that count as missing

    @property
    def columns(self) -> int:
        """K: the columns of a model."""
        return len(self.classes) or 1

    @property
    def unknown(self) -> str:
        """What a label is that could not be read, for its owner."""
        return "labels that name no declared class" if self.target is None else "labels that hold no number"

    def read(self, labels: Coded) -> tuple[Array, Array]:
        """Return (y, whether each label could be read): numbers of classes, or numbers scaled to [-1, 1].

        Numbers outside the bounds are moved to their end. Where a label could not be read, y is zero.
        """
        if self.target is None:
            y = class_numbers(labels, self.classes)
            return y.clip(0), y >= 0
        values, _ = as_numbers(np.array(labels.names, dtype=object), self.marks)
        scaled = labels.each(self.target.scaled(values))
        known = ~np.isnan(scaled)
        return np.where(known, scaled, 0.0), known
