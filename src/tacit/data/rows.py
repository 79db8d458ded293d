"""Which records of a source a process keeps: it reads the labels of all, and then the features of its own."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.types import Array


@dataclass(frozen=True, eq=False)
class Rows:
    """Of which records of a source the features are wanted; labels and agents are then not read.

    `kept` (I,) says so for each; None wants no features at all, but the labels and the agents of every record.
    """

    kept: Array | None = None
    lengths: tuple[int, ...] = ()  # of each file, as the labels were read: a file that is not wanted stays closed

    def of_file(self, i: int) -> Rows:
        """The rows of one file."""
        if self.kept is None:
            return self
        first = sum(self.lengths[:i])
        return Rows(self.kept[first : first + self.lengths[i]])

    def of_table(self, first: int, n: int) -> Array | None:
        """Which records of one raw table are wanted; None for no features."""
        return None if self.kept is None else self.kept[first : first + n]
