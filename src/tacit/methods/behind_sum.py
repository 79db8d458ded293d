"""Values of agents -> shares -> their total: what a method puts into a secure sum, and what its server makes of it.

    word_p = round(value_p / g) + n_p  mod 2^k     at agent p, n_p from the stream of (seed, p, round)
    total  = g lift(sum_p word_p)                  at the server

These are the integers of tacit.privacy.summed, whose theorem is the promise: one Gaussian release an attempt to the
server together with any c agents. A simulation leaves out masks, which cancel. What a method has to show for it:

1. Given what the server saw before, value_p depends on the records of agent p alone: a gradient at the shared w, or
   moments. An agent keeps no state that hides a share of the noise (for the reason, see tacit.admm.local_models).
2. One record, present or absent in its place, moves value_p by at most `sensitivity` in L2, as computed.

From 2 follows the bound of an entry that sizes k. Without records value_p is zero; take the records of p one by one:

    |entry of value_p| <= |value_p|_2 <= I_p sensitivity <= max_p I_p sensitivity

and the numbers of records are public. What does not depend on records, such as the slope of the regulariser, the server
adds itself: it has no place in a sum that hides.

Without noise (epsilon = inf) there is no scale for a grid to follow, and nothing is promised: the total is then one of
floating-point numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.methods.promise import Promise
from tacit.methods.promise import behind_sum as promise_of
from tacit.methods.task import Facts, Task
from tacit.privacy.noise import stream
from tacit.privacy.summed import Attempt, InSum, Peers, Summed, attempt_of, gap, releases
from tacit.types import Array


@dataclass(frozen=True)
class BehindSum:
    """The public numbers of a run behind a secure sum, all of whose agents are there in every round."""

    summed: Summed
    peers: Peers

    @property
    def attempt(self) -> Attempt:
        """What the agents agree on."""
        return attempt_of(self.summed, self.peers)

    @property
    def std(self) -> float:
        """The std of the noise on the total, that of the colluding agents included."""
        return self.attempt.step * self.attempt.share_steps * math.sqrt(self.peers.present)

    def cost(self, epsilon: float) -> float:
        """The delta of a whole run for integers in place of continuous noise, by the theorem."""
        one = gap(self.attempt.share_steps, self.peers.honest, self.summed.dimension)
        return (1 + math.exp(min(epsilon, 700.0))) * self.summed.releases * one

    def words(self, agents: Task, values: Array, t: int) -> Array:
        """What the agents here put into the sum, a row each: uint64."""
        words = np.empty(values.shape, np.uint64)
        for row, value, p in zip(words, values, agents.index, strict=True):
            row[...] = self.attempt.share(value, stream((agents.seed, p), t, 0))
        return words

    def total(self, residues: Array) -> Array:
        """What the sum of all words stands for: float64."""
        return self.attempt.total(residues)


def behind(
    facts: Facts, agreed: InSum | None, multiplier: float, sensitivity: float, dimension: int, rounds: int
) -> BehindSum | None:
    """A sum of values that one record moves by `sensitivity`; None where nothing was agreed, or without noise.

    It refuses a sum that no word can hold, and a coalition of all agents.
    """
    if agreed is None or not multiplier:
        return None
    largest = max(facts.sizes) * sensitivity
    summed = Summed(multiplier, sensitivity, largest, dimension, counted(rounds, agreed))
    peers = Peers(facts.n_agents, agreed.colluding)
    attempt_of(summed, peers)
    return BehindSum(summed, peers)


def counted(rounds: int, agreed: InSum | None) -> int:
    """The releases that a run is calibrated for: rounds, and rounds that may be asked again in a sum."""
    return rounds if agreed is None else releases(rounds, agreed.repetitions)


def promised(facts: Facts, agreed: InSum | None, alone: Promise) -> Promise:
    """What a method promises that promises `alone` where each agent has the whole noise."""
    return alone if agreed is None else promise_of(alone, agreed, facts.n_agents)


def noises(facts: Facts, agreed: InSum | None) -> float:
    """How many times the noise of one release is in a total: once for each agent, or P / (P - c) times in a sum."""
    return facts.n_agents if agreed is None else agreed.whole_noises(facts.n_agents)
