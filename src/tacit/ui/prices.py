"""What releases cost, within bounds on the time to say so: a ledger that somebody forged must not stall the page.

`precise` is the price that `tacit ledger show` names, where composing the laws of the releases is quick; `quick` leaves
that bound out, and is a valid bound too, if not always the smallest.
"""

from __future__ import annotations

from functools import lru_cache

from tacit.agent.agreement import DELTA_FOR_THE_GRID
from tacit.privacy.budget import total
from tacit.privacy.history import History
from tacit.privacy.release import Events, GaussianRelease, Release
from tacit.run import deployment
from tacit.ui.place import Unreadable

KINDS = 64  # of releases in a ledger, each run counted: quick prices of all of them take seconds at most
LEAST_NOISE = 0.5  # multiplier of Gaussian noise: the law of less noise has too long a grid
MOST = 10**6  # releases whose laws are composed
SAMPLED = 2  # kinds of sampled releases whose laws are composed: each takes a fifth of a second
TOO_MANY = "too many kinds of releases to price here: tacit ledger show"


def check(history: History) -> None:
    """Refuse a history whose prices would take long."""
    kinds = {(answer.key.data_id, answer.key.run, answer.release) for answer in history.answers.values()}
    if max(len(kinds), len(history.places)) > KINDS:
        raise Unreadable(TOO_MANY)


def precise(events: Events, dp_delta: float) -> float:
    """Return the price that a ledger names, where that is quick, else a larger bound."""
    return _composed(_ordered(events), dp_delta, _is_quick(events))


def quick(events: Events, dp_delta: float) -> float:
    """Return a bound on the price."""
    return _composed(_ordered(events), dp_delta, False)


def _is_quick(events: Events) -> bool:
    noise = [one for one, _ in events if isinstance(one, GaussianRelease)]
    shared = sum(n / one.multiplier**2 for one, n in events if isinstance(one, GaussianRelease) and not one.sampled)
    others = len(noise) < len(events) or any(one.sampled for one in noise)
    return not others or (
        sum(n for _, n in events) <= MOST
        and sum(one.sampled for one in noise) <= SAMPLED
        and all(one.multiplier >= LEAST_NOISE for one in noise)
        and shared <= LEAST_NOISE**-2  # many Gaussian releases are one with less noise
    )


def _ordered(events: Events) -> tuple[tuple[Release, int], ...]:
    return tuple(sorted(events, key=repr))  # agents that released the same have spent the same


@lru_cache(maxsize=4096)
def _composed(events: tuple[tuple[Release, int], ...], dp_delta: float, laws: bool) -> float:
    if laws:
        return deployment.price(events, dp_delta)
    return total(events, dp_delta * (1 - DELTA_FOR_THE_GRID), pld=False).epsilon
