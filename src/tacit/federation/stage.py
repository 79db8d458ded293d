"""Where a run behind a secure sum stands: the next attempt and its set, and what has become of those before."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tacit.admm.messages import Local
from tacit.federation.attendance import SumAttendance
from tacit.federation.messages import Shares
from tacit.federation.remote import HEAD
from tacit.guarded.mean import Mean
from tacit.privacy.summed import Attempt
from tacit.types import Array

_OF_MEAN = ("z", "dual", "rho")


@dataclass(frozen=True, eq=False)
class Stage:
    """What a checkpoint holds. Attempts count from 0 within a round."""

    attempt: int
    peers: tuple[str, ...]  # in sorted order
    repeated: int  # attempts so far beyond the first at a round
    attendance: SumAttendance
    mean: Mean
    heads: dict[str, str]

    @classmethod
    def first(cls, names: Sequence[str], mean: Mean) -> Stage:
        """Before the first round: everybody is asked."""
        return cls(0, tuple(sorted(names)), 0, SumAttendance.zero(len(names)), mean, dict.fromkeys(names, ""))

    def repeating(self, peers: tuple[str, ...], attendance: SumAttendance, heads: Mapping[str, str]) -> Stage:
        """After an attempt that came to no sum: the next is one of these peers."""
        return replace(
            self, attempt=self.attempt + 1, peers=peers, repeated=self.repeated + 1, attendance=attendance,
            heads=self.heads | dict(heads),
        )  # fmt: skip

    def ended(
        self, peers: Collection[str], attendance: SumAttendance, mean: Mean, heads: Mapping[str, str]
    ) -> Stage:  # fmt: skip
        """After a round: the next begins with these peers."""
        return Stage(0, tuple(sorted(peers)), self.repeated, attendance, mean, self.heads | dict(heads))

    @property
    def standing(self) -> dict[str, Any]:
        """What a status says."""
        return {"set": list(self.peers), "attempt": self.attempt, "repeated": self.repeated}

    def save(self, names: Sequence[str]) -> dict[str, Array]:
        """The arrays, by name."""
        return {
            **{name: np.asarray(getattr(self.mean.own, name)) for name in _OF_MEAN},
            **self.attendance.save(),
            "heads": np.array([self.heads[name] for name in names], dtype=f"U{HEAD}"),
            "attempt": np.array(self.attempt),
            "peers": mask_of(self.peers, names),
            "repeated": np.array(self.repeated),
        }

    def load(self, names: Sequence[str], saved: Mapping[str, Array]) -> Stage:
        """The stage that `save` gave, of the same run."""
        z, dual, rho = (saved[name] for name in _OF_MEAN)
        return Stage(
            int(saved["attempt"]),
            tuple(sorted(name for name, there in zip(names, saved["peers"], strict=True) if there)),
            int(saved["repeated"]),
            SumAttendance(**{name: saved[name] for name in self.attendance.save()}),
            self.mean.at(Local(z, dual, float(rho))),
            dict(zip(names, map(str, saved["heads"]), strict=True)),
        )


@dataclass
class Heard:
    """What came to one attempt: the words of each agent, and why an agent has none."""

    words: dict[str, Array] = field(default_factory=dict)
    heads: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)  # of agents that refused or whose words were refused

    def take(self, own: Collection[str], answer: Shares) -> None:
        """Take the words of a site, whose agents are `own`; what it sent before is forgiven."""
        self.reasons = {name: why for name, why in self.reasons.items() if name not in own}
        for row, one in zip(answer.words, answer.given, strict=True):
            self.words[one.agent], self.heads[one.agent] = row, one.head


def mask_of(some: Collection[str], names: Sequence[str]) -> Array:
    """Of each name, whether it is among some of them."""
    return np.array([name in some for name in names])


def unfit(own: Sequence[str], answer: Shares, numbers: Attempt, dimension: int) -> str | None:
    """Why the answer of a site, with these agents in the set, is none to its question; None where it is one."""
    gave = [one.agent for one in answer.given]
    if not {*gave, *answer.refused} <= set(own) or set(gave) & set(answer.refused):
        return "it answers for agents that are not its own, or twice for one"
    if answer.words.shape != (len(gave), dimension):
        return f"it sent an array of shape {answer.words.shape} in place of {(len(gave), dimension)}"
    if (answer.words > np.uint64((1 << numbers.width) - 1)).any():
        return f"it sent words of more than {numbers.width} bits"
    return None
