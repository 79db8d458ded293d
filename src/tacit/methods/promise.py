"""What a method declares about its privacy: who is protected, who is trusted, what is released.

A method never states an epsilon of its own: the accountant computes it from the releases.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tacit.privacy.budget import Total, total
from tacit.privacy.guarantee import Trusted, Unit
from tacit.privacy.release import Events, GaussianRelease
from tacit.privacy.summed import InSum

__all__ = ["Promise", "Trusted", "Unit", "behind_sum", "gaussian_releases", "no_privacy"]  # two of tacit.privacy


@dataclass(frozen=True)
class Promise:
    """The releases about one unit, at the agent that releases most; `caveats` say why they give no guarantee."""

    unit: Unit
    trusted: Trusted
    each_round: Events = ()
    once: Events = ()
    caveats: tuple[str, ...] = ()
    coalition: tuple[int, int] | None = None  # (c, P) of a secure sum: holds against the server with any c of P agents

    def total(self, rounds: int, dp_delta: float) -> Total | None:
        """The total of a run; None if there are caveats."""
        return None if self.caveats else total(self.events(rounds), dp_delta)

    def events(self, rounds: int) -> Events:
        """All that a run releases."""
        return [*self.once, *((release, rounds * n) for release, n in self.each_round)]


def no_privacy(trusted: Trusted = Trusted.SERVER) -> Promise:
    """The promise of a method that adds no noise: none."""
    return Promise(Unit.RECORD, trusted, caveats=("no noise is added.",))


def gaussian_releases(
    multiplier: float, unit: Unit = Unit.RECORD, trusted: Trusted = Trusted.NOBODY, count: int = 1, rate: float = 1.0
) -> Promise:
    """`count` Gaussian releases a round, each of a Poisson sample where rate < 1; without noise, nothing."""
    if not multiplier:
        return no_privacy(trusted)
    return Promise(unit, trusted, ((GaussianRelease(multiplier, rate), count),))


def behind_sum(promise: Promise, sum_: InSum, n_agents: int) -> Promise:
    """The promise with a secure sum: repetitions are releases too, and it holds against the server and c agents."""
    again = tuple((release, count * sum_.repetitions) for release, count in promise.each_round if sum_.repetitions)
    return replace(promise, trusted=Trusted.SUM, once=again, coalition=(sum_.colluding, n_agents))
