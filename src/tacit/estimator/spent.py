"""What a fit has cost, and the history of its rounds.

A fitted estimator is kept, pickled and sent to others. So where its noise is exact it holds nothing but what was
released and what is public: the measurements that a run takes of private records (its objective, the noise, times) are
left out. A simulation keeps them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tacit.privacy.budget import total, upward
from tacit.privacy.guarantee import stated_in
from tacit.privacy.release import events_of

RELEASED = ("t", "step", "rho")  # of a row: functions of releases and public numbers


@dataclass(frozen=True)
class PrivacySpent:
    """What a fit costs: (total, dp_delta) in all, for every record of every agent.

    per_round    epsilon of one round by itself; None where there is no guarantee. Rounds compose to less than their sum
    per_agent    epsilon of each agent. Agents do not add up, because a record lives at one of them
    lifetime     epsilon of each agent over all fits that its ledger knows; None without a ledger
    reason       why the total is infinite; empty where it is finite
    best_guess   largest probability with which a guess at even odds about one record is right; 1 without a guarantee
    """

    total: float
    dp_delta: float | None
    rounds: int
    per_round: float | None
    per_agent: Mapping[str, float]
    adjacency: str
    noise: str | None
    trust: str | None
    not_covered: tuple[str, ...]
    lifetime: Mapping[str, float] | None = None
    reason: str = ""
    releases: tuple[Mapping[str, Any], ...] = ()
    accounted_delta: float = 0.0
    best_guess: float = 1.0

    def after(self, rounds: int) -> float:
        """Return epsilon after so many rounds, infinite where there is no guarantee."""
        if not self.releases:
            return math.inf
        if rounds >= self.rounds:
            return self.total
        return total(events_of([dict(one) for one in self.releases], rounds), self.accounted_delta, pld=False).epsilon

    def __str__(self) -> str:
        if math.isinf(self.total):
            return f"no guarantee: {self.reason}"
        return f"({upward(self.total)}, {self.dp_delta:g}) in all, over {self.rounds} rounds and {self.adjacency}"


def spent_by(
    summary: Mapping[str, Any], agents: Sequence[str], lifetime: Mapping[str, float] | None = None
) -> PrivacySpent:
    """Return what the result of a run says about its cost."""
    stated = stated_in(summary)
    assert stated is not None, "a fit that has just ended states its guarantee"
    private, whole = stated.private, math.inf if stated.epsilon is None else stated.epsilon
    return PrivacySpent(
        whole, summary["dp_delta"], stated.rounds, summary["epsilon_per_round"] if private else None,
        dict.fromkeys(agents, whole), stated.unit.adjacency, summary["noise"], stated.trust if private else None,
        (*stated.exclusions,), lifetime, "" if private else stated.sentence, (*(summary["releases"] or ()),),
        summary["accounted_delta"] or 0.0, summary["best_guess"] or 1.0,
    )  # fmt: skip


def history(rounds: Sequence[Mapping[str, Any]], spent: PrivacySpent, simulated: bool) -> list[dict[str, Any]]:
    """Return the recorded rounds with the epsilon spent by then; what no guarantee covers only of a simulation."""
    return [
        {key: value for key, value in row.items() if simulated or key in RELEASED} | {"epsilon": spent.after(row["t"])}
        for row in rounds
    ]
