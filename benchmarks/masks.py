"""What masks of a secure sum cost one agent, by the number of agents.

    python -m benchmarks.masks                         a table: 10 to 1,000 agents, 7,840 numbers
    python -m benchmarks.masks --agents 100 --length 62

"keys" is done once a run and after a restart: the signatures of all statements and a secret with each peer. "masks" is
done once an attempt at a round. Times are the least of several turns, on one core. Where a graph takes the place of all
pairs, a share of the agents colludes, and a second line has the time of all pairs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest.mock import patch

import numpy as np

from tacit.agent.masks import graph
from tacit.agent.masks.keys import RunKey, SigningKey
from tacit.agent.masks.masker import Masker, Question, Terms

BITS = 64


def least(turns: int, play: Callable[[], Any]) -> float:
    """Return the seconds of the fastest turn."""
    times = []
    for _ in range(turns):
        start = time.perf_counter()
        play()
        times.append(time.perf_counter() - start)
    return min(times)


def rows(agents: int, length: int, share: float, turns: int) -> Iterator[tuple[int, int, int, float, float]]:
    """Yield (agents, colluding, neighbours, seconds for keys, seconds for masks), with the graph and with all pairs."""
    names = [f"agent-{i}" for i in range(agents)]
    signing, keys = {name: SigningKey.new() for name in names}, {name: RunKey.new() for name in names}
    pinned = {name: key.public for name, key in signing.items()}
    statements = [signing[name].state("run", name, keys[name].public) for name in names]
    colluding = min(int(share * agents), agents - 2)
    terms = Terms("run", BITS, colluding + 2, colluding)
    own, question, vector = names[0], Question(0, 0, tuple(names), "asked"), np.zeros(length, np.int64)

    def meet() -> Masker:
        return Masker.meet(terms, own, keys[own], pinned, statements)

    agreed, masker = least(min(turns, 3), meet), meet()
    for all_pairs in sorted({graph.ALL_PAIRS, max(graph.ALL_PAIRS, agents)}):
        with patch.object(graph, "ALL_PAIRS", all_pairs):
            graph.degree.cache_clear()
            near = graph.degree(agents, colluding)
            masked = least(turns, lambda: masker.mask(question, vector, dict[str, str]().setdefault))
        graph.degree.cache_clear()
        yield agents, colluding, near, agreed, masked


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--agents", nargs="+", type=int, default=[10, 30, 100, 300, 1000])
    parser.add_argument("--length", type=int, default=7840)
    parser.add_argument("--colluding", type=float, default=1 / 3, help="share of the agents")
    parser.add_argument("--turns", type=int, default=10)
    options = parser.parse_args(arguments)
    print("| agents | colluding | neighbours | keys, once (ms) | masks, a round (ms) |\n|---|---|---|---|---|")
    for agents in options.agents:
        for count, colluding, near, agreed, masked in rows(agents, options.length, options.colluding, options.turns):
            print(f"| {count} | {colluding} | {near} | {1e3 * agreed:.1f} | {1e3 * masked:.2f} |", flush=True)


if __name__ == "__main__":
    main()
