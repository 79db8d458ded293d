"""Who took part: for each agent, how often it was asked, answered, was late, missed a round or refused."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from tacit.types import Array


@dataclass(frozen=True, eq=False)
class Attendance:
    """Counts by agent, (P,) each.

    Every round is answered or missed. A late answer is to an earlier question, and was taken. `in_a_row` counts the
    rounds since the agent was last heard of, and `asked` the questions: no agent has released more often than that.
    """

    asked: Array
    answered: Array
    late: Array
    missed: Array
    refused: Array
    in_a_row: Array

    @classmethod
    def zero(cls, n_agents: int) -> Attendance:
        """Return the counts before the first round."""
        return cls(*(np.zeros(n_agents, np.int64) for _ in fields(cls)))

    def after(self, asked: Array, fresh: Array, late: Array, refused: Array) -> Attendance:
        """Return the counts after a round; the arguments say of each agent whether it was so."""
        heard = fresh | late
        return Attendance(
            self.asked + asked, self.answered + fresh, self.late + late, self.missed + ~fresh, self.refused + refused,
            np.where(heard, 0, self.in_a_row + 1),
        )  # fmt: skip

    @property
    def released(self) -> Array:
        """The releases that the server has of each agent."""
        return np.asarray(self.answered + self.late)

    def of(self, p: int) -> dict[str, int]:
        """Return the counts of one agent, by name."""
        return {each.name: int(getattr(self, each.name)[p]) for each in fields(self)}

    def save(self) -> dict[str, Array]:
        """Return the arrays, by name."""
        return {each.name: getattr(self, each.name) for each in fields(self)}
