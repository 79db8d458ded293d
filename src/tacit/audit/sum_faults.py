"""Faults of a secure sum, for the controls of the audit: in the shares of noise, or in the masks.

The federation under attack is small: HONEST agents, the first of which has the canary, and COLLUDING ones, which tell
the server all they know. No fault needs cryptography, so that the names of the controls can be listed without it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tacit.privacy.noise import stream
from tacit.privacy.summed import Attempt
from tacit.types import Array

HONEST, COLLUDING = ("0", "1", "2"), ("3",)
NAMES = (*HONEST, *COLLUDING)
CANARY, PART = HONEST[0], HONEST[:2]  # whose record is attacked, and some of the honest agents
_NARROW = np.uint64((1 << 32) - 1)  # a noise share has more bits than a C int


@dataclass(frozen=True)
class Place:
    """Where noise is drawn: the run (64 bits in hex), the agent and the round, whatever the attempt is."""

    run: str
    agent: str
    round: int


@dataclass(frozen=True)
class Fault:
    """What goes wrong: `share` makes an agent's share of a value, `mask` changes the mask of a pair of agents.

    `reused`: the masks of a pair are the same in all rounds and attempts.
    """

    share: Callable[[Attempt, Array, Place], Array] = lambda attempt, value, _: attempt.share(value)
    mask: Callable[[Array, set[str]], Array] = lambda words, _: words
    reused: bool = False


def halved(attempt: Attempt, value: Array, _: Place) -> Array:
    """Add half the noise of every share."""
    return replace(attempt, share_steps=attempt.share_steps // 2).share(value)


def missing(attempt: Attempt, value: Array, at: Place) -> Array:
    """Leave out the noise of an agent: one step of a grid of 2^36 steps is none."""
    return (replace(attempt, share_steps=1) if at.agent == HONEST[-1] else attempt).share(value)


def stale(attempt: Attempt, value: Array, at: Place) -> Array:
    """Draw the same noise in every attempt at a round, and in every second round the noise of the round before."""
    return attempt.share(value, stream((int(at.run, 16), int(at.agent)), (at.round + 1) // 2, 0))


def narrow(words: Array, _: set[str]) -> Array:
    """Mask modulo 2^32 what is added up modulo a larger number: the high bits of a share leave as they are."""
    return words & _NARROW


def alone(words: Array, pair: set[str]) -> Array:
    """Let the agent of the canary share masks with colluding agents only."""
    return np.zeros_like(words) if CANARY in pair and pair <= set(HONEST) else words


def cut(words: Array, pair: set[str]) -> Array:
    """Let some honest agents share no mask with the other honest agents."""
    return np.zeros_like(words) if pair <= set(HONEST) and len(pair & set(PART)) == 1 else words
