"""The engine of runs that trust a secure sum, in one process: agents add words, the server sees their total.

Deployed agents mask their words and keep ledgers (tacit.guarded.summand). Simulated ones add the same integers with
noise of a seed. Masks cancel in the total, so that the same noise gives the same model, here and in a federation.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from tacit.admm.messages import Broadcast, Local, Replies
from tacit.engine.side_by_side import THREADS, all_ended
from tacit.guarded.gate import Question
from tacit.guarded.mean import Adds, Mean
from tacit.machine import cores
from tacit.privacy.summed import Peers, attempt_of
from tacit.types import Array


@dataclass
class Lane:
    """One run: its name and the hash of what was agreed, its agents, and the means of all, which move."""

    run: str
    spec: str
    agents: Sequence[Adds]
    mean: Mean
    colluding: int

    @property
    def peers(self) -> tuple[str, ...]:
        """All agents, in the order that everybody has them in."""
        return tuple(sorted(agent.name for agent in self.agents))


class SummedEngine:
    """A round asks all agents side by side, and ends when each has answered or refused: no sum is over a part."""

    path = "secure sum, side by side"

    def __init__(self, lanes: Sequence[Lane]) -> None:
        self.lanes = lanes
        self.pool = ThreadPoolExecutor(THREADS * cores(), "agent")

    def exchange_all(self, msgs: Sequence[Broadcast]) -> list[Replies]:
        return [self._exchange(lane, msg) for lane, msg in zip(self.lanes, msgs, strict=True)]

    def _exchange(self, lane: Lane, msg: Broadcast) -> Replies:
        start, peers = perf_counter(), lane.peers
        question = Question(lane.run, lane.spec, msg.t, {"w": msg.w, "attempt": 0, "peers": peers})
        words = self._words(lane.agents, question)
        added = perf_counter()
        attempt = attempt_of(lane.mean.summed, Peers(len(peers), lane.colluding))
        total = attempt.total(np.add.reduce(words, dtype=np.uint64))
        lane.mean = lane.mean.after(msg, total, peers)
        seconds = {"answers": added - start, "update": perf_counter() - added}
        return lane.mean.replies(msg, len(peers), lane.colluding, seconds)

    def _words(self, agents: Sequence[Adds], question: Question) -> list[Array]:
        with all_ended() as answers:
            for agent in agents:
                answers.append(self.pool.submit(agent.words, question))
        return [answer.result() for answer in answers]

    def save(self, r: int) -> dict[str, Array]:
        own = self.lanes[r].mean.own
        return {name: np.asarray(getattr(own, name)) for name in ("z", "dual", "rho")}

    def load(self, r: int, saved: dict[str, Array]) -> None:
        lane = self.lanes[r]
        lane.mean = lane.mean.at(Local(saved["z"], saved["dual"], float(saved["rho"])))

    def close(self) -> None:
        """End the threads; what the agents write to is then free to be closed."""
        self.pool.shutdown(wait=True, cancel_futures=True)
