"""Sums and means over agents that do not depend on which process holds which agent.

Agents stand in fixed blocks of neighbours. A sum goes over the agents of a block in their order, and then over the
blocks in theirs. A process that holds agents first .. stop - 1 forms the sum of each block as far as it holds it from
its beginning; the agents of a block that begins in another process are parts by themselves. `folded` adds the parts of
all processes, in the order of the agents, to the sum that one process would have formed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tacit.rounds import Trace
from tacit.types import Array

LEAST = 16  # agents of a block: few agents are one block, and their sum is agent after agent
UNEVEN = 0.04  # of a rank's records: so many more are worth whole blocks
MOST = 256  # blocks: what reaches the server does not grow with the number of agents


def block_size(n_agents: int) -> int:
    """The number of agents in a block."""
    return max(LEAST, -(-n_agents // MOST))


def parts(first: int, stop: int, block: int) -> list[range]:
    """The runs of agents whose sums a process with agents first .. stop - 1 forms."""
    begun = min(stop, -(-first // block) * block)
    alone = [range(p, p + 1) for p in range(first, begun)]
    return alone + [range(p, min(p + block, stop)) for p in range(begun, stop, block)]


def folded(sums: Iterable[tuple[range, Array]], block: int) -> Array:
    """The sum over all agents, from the parts of all processes in the order of the agents."""
    total, own = None, None
    for agents, part in sums:
        if agents.start % block:
            assert own is not None, "a block begins with its first agent"
            own = own + part
        else:
            total = own if total is None or own is None else total + own
            own = part
    assert own is not None, "somebody holds the first agent"
    return own if total is None else total + own


def shares(counts: Sequence[int], n_ranks: int) -> list[range]:
    """Contiguous runs of agents for the ranks, with about as many records each; the first holds one agent at least.

    Of a block that a process does not begin it sends one part an agent. So a cut is between two blocks where that is
    nearly as even, and where blocks are long.
    """
    block, before = block_size(len(counts)), np.concatenate([[0], np.cumsum(counts)])
    whole = np.unique([*range(0, len(counts), block), len(counts)])  # between blocks
    wanted = before[-1] * np.arange(1, n_ranks) / n_ranks
    near, anywhere = _nearest(before[whole], wanted), _nearest(before, wanted)
    uneven = np.abs(before[whole][near] - wanted) > UNEVEN * before[-1] / n_ranks
    cuts = np.where(uneven & (block == LEAST), anywhere, whole[near])
    return [range(a, b) for a, b in pairwise([0, *np.maximum.accumulate(np.maximum(cuts, 1)).tolist(), len(counts)])]


def _nearest(steps: Array, wanted: Array) -> Array:
    """Which of the steps, which rise, is nearest to each number."""
    after = np.searchsorted(steps, wanted)
    return np.asarray(after - (wanted - steps[np.maximum(after - 1, 0)] <= steps[after] - wanted))


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
