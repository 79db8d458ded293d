"""Who took part: for each agent, how often it was asked, answered, was late, missed a round or refused."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TypeVar

import numpy as np

from tacit.types import Array

C = TypeVar("C", bound="AgentCounts")


@dataclass(frozen=True, eq=False)
class AgentCounts:
    """Arrays of whole numbers, (P,) each."""

    @classmethod
    def zero(cls: type[C], n_agents: int) -> C:
        """Return the counts before the first round."""
        return cls(*(np.zeros(n_agents, np.int64) for _ in fields(cls)))

    def of(self, p: int) -> dict[str, int]:
        """Return the counts of one agent, by name."""
        return {name: int(array[p]) for name, array in self.save().items()}

    def save(self) -> dict[str, Array]:
        """Return the arrays, by name."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


@dataclass(frozen=True, eq=False)
class Attendance(AgentCounts):
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


@dataclass(frozen=True, eq=False)
class SumAttendance(AgentCounts):
    """Counts by agent, (P,) each, where a secure sum is trusted: attempts are asked, rounds answered or missed.

    `spoiled` counts answers to attempts that came to no sum, which are paid for like any other; `dropped` counts
    attempts that came to none because of this agent, the last of them in round `dropped_at`. `in_a_row` counts the
    rounds since the last sign of life: an agent that is alive and kept out is not away.
    """

    asked: Array
    answered: Array
    spoiled: Array
    missed: Array
    refused: Array
    in_a_row: Array
    dropped: Array
    dropped_at: Array

    def asking(self, peers: Array) -> SumAttendance:
        """Return the counts when an attempt begins."""
        return replace(self, asked=self.asked + peers)

    def failed(self, t: int, gave: Array, dropped: Array, refused: Array) -> SumAttendance:
        """Return the counts after an attempt at round t that came to no sum."""
        return replace(
            self, spoiled=self.spoiled + gave, dropped=self.dropped + dropped, refused=self.refused + refused,
            dropped_at=np.where(dropped, t, self.dropped_at),
        )  # fmt: skip

    def after(self, gave: Array, there: Array) -> SumAttendance:
        """Return the counts after a round whose sum is over those who gave; `there` are those that showed up."""
        return replace(
            self, answered=self.answered + gave, missed=self.missed + ~gave,
            in_a_row=np.where(gave | there, 0, self.in_a_row + 1),
        )  # fmt: skip

    def may_return(self, t: int) -> Array:
        """Whether each agent may be asked in round t: one that drops out again and again waits twice as long each time.

        So an agent that comes and goes costs the run repetitions as the logarithm of its rounds, and not all of them.
        """
        return np.asarray((self.dropped == 0) | (t - self.dropped_at >= 2.0 ** (self.dropped - 1)))

    @property
    def released(self) -> Array:
        """The releases that the server has of each agent."""
        return np.asarray(self.answered + self.spoiled)

    def of(self, p: int) -> dict[str, int]:
        """Return the counts of one agent, by name; a round is none."""
        return {name: n for name, n in super().of(p).items() if name != "dropped_at"}
