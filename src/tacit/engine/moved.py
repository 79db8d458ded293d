"""What a round tells of agents beside their models: the numbers of a trace, agent by agent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.rounds import Trace
from tacit.types import Array


@dataclass(frozen=True, eq=False)
class Moved:
    """What a round tells of the agents here: the numbers of a Trace (5, P, R), and seconds over all agents."""

    columns: Array
    seconds: dict[str, float]
    fused: bool

    def traces(self) -> list[Trace]:
        """The mean agent of each run."""
        if self.fused:
            means = np.transpose([column.mean(0) for column in self.columns]).tolist()
        else:  # agent after agent, as the plain engine
            means = np.array([sum(own) for own in self.columns.transpose(0, 2, 1).reshape(-1, self.columns.shape[1])])
            means = (means.reshape(len(self.columns), -1) / self.columns.shape[1]).T.tolist()
        return [Trace.of(numbers, self.seconds) for numbers in means]
