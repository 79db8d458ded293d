"""What a run may ask of an agent: a list of queries with their noise, settled before the first answer.

Both sides derive the list from the spec of the run and from public facts, and compare its hash. The questions of a run
are numbered from 1 to T. The list is in order: its first query has the first numbers, as many as it may be asked.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tacit.agent.masks.graph import ALL_PAIRS, FAILURE
from tacit.errors import IncompatibleError, SpecError
from tacit.privacy import lattice
from tacit.privacy.exact import Law
from tacit.privacy.mechanism import check_multiplier
from tacit.privacy.release import Events, GaussianRelease, LaplaceRelease, Release
from tacit.privacy.summed import InSum, Summed, releases
from tacit.problem.sensitivity import Adjacency
from tacit.query.query import Query, described
from tacit.query.registry import name_of
from tacit.types import Norm

DELTA_FOR_THE_GRID = 1e-4  # share of dp_delta kept back for discrete noise instead of continuous


@dataclass(frozen=True)
class Noise:
    """A noise law, the norm in which it covers the sensitivity, and its scale in sensitivities."""

    law: Law
    norm: Norm
    multiplier: float

    def __post_init__(self) -> None:
        check_multiplier(self.multiplier)
        if self.norm is Norm.INF or (self.law is Law.GAUSSIAN and self.norm is not Norm.L2):
            raise SpecError("Gaussian noise covers a sensitivity in l2, Laplace noise one in l1 or in l2.")


@dataclass(frozen=True)
class NoisyQuery:
    """A query, its noise, and the most answers to it in a run."""

    query: Query
    noise: Noise
    answers: int

    def __post_init__(self) -> None:
        if self.answers < 1:
            raise SpecError(f"a query of an agreement is answered once or more, got {self.answers}.")

    def sensitivity(self, adjacency: Adjacency, records: int) -> float:
        """Return how far one of so many records moves a value, as it is computed."""
        query = self.query
        return query.bound(self.noise.norm, adjacency) * query.evaluator.allowance(query, records)

    def scale(self, adjacency: Adjacency, records: int) -> float:
        """Return the noise scale that an agent with so many records needs, if its answer leaves alone."""
        noise = self.noise
        return lattice.calibrate(noise.norm, noise.multiplier, self.sensitivity(adjacency, records), self.query.size)

    def release(self, adjacency: Adjacency) -> Release:
        """Return what one answer costs."""
        noise = self.noise
        if noise.law is Law.GAUSSIAN:
            return GaussianRelease(noise.multiplier)
        if noise.norm is Norm.L2:
            return LaplaceRelease(math.inf, 1 / noise.multiplier)
        ratio = self.query.bound(Norm.L2, adjacency) / self.query.bound(Norm.L1, adjacency)
        return LaplaceRelease(1 / noise.multiplier, min(ratio, 1.0) / noise.multiplier)


@dataclass(frozen=True)
class Agreement:
    """The queries of a run, in order, for one adjacency; `in_sum` if its answers leave in secure sums only.

    `most_records` is the largest number of records of any agent, which is public.
    """

    queries: tuple[NoisyQuery, ...]
    adjacency: Adjacency
    most_records: int
    in_sum: InSum | None = None

    def __post_init__(self) -> None:
        if not self.queries:
            raise SpecError("an agreement lists a query: there is nothing to ask.")
        for one in self.queries if self.in_sum is not None else ():
            if one.noise.law is not Law.GAUSSIAN or not one.query.additive:
                raise IncompatibleError(
                    "a secure sum takes Gaussian noise, and a query that every agent is asked alike: use the sound "
                    "preset, whose gradients are at w, or drop --trust sum."
                )

    @cached_property
    def _ends(self) -> tuple[int, ...]:
        return tuple(itertools.accumulate(one.answers for one in self.queries))

    @property
    def rounds(self) -> int:
        """T, the number of questions."""
        return self._ends[-1]

    @property
    def releases(self) -> int:
        """The most answers of a run: attempts of a secure sum that are repeated are releases too."""
        return self.rounds if self.in_sum is None else releases(self.rounds, self.in_sum.repetitions)

    def place(self, t: int) -> int:
        """Return which query of the list question t asks."""
        return next(k for k, end in enumerate(self._ends) if t <= end)

    def at(self, t: int) -> NoisyQuery:
        """Return the query of question t."""
        return self.queries[self.place(t)]

    @property
    def answers(self) -> dict[str, int]:
        """How many questions the list has of each kind of query."""
        found: dict[str, int] = {}
        for one in self.queries:
            found[name_of(one.query)] = found.get(name_of(one.query), 0) + one.answers
        return found

    @property
    def events(self) -> Events:
        """All that an agent may release: repeated attempts count as the most expensive query of the list."""
        own = [(one.release(self.adjacency), one.answers) for one in self.queries]
        if self.in_sum is not None and self.in_sum.repetitions:
            dearest = min(self.queries, key=lambda one: one.noise.multiplier)
            own.append((dearest.release(self.adjacency), self.in_sum.repetitions))
        return own

    def first(self, releases: int) -> Events:
        """Return the events of the first `releases` answers of a run: at most all of `events`, in their order."""
        found, left = [], releases
        for release, count in self.events:
            found.append((release, min(count, left)))
            left -= min(count, left)
        return tuple((release, count) for release, count in found if count)

    def summed(self, place: int) -> Summed:
        """Return the public numbers of secure sums of one query of the list."""
        one = self.queries[place]
        moved = one.sensitivity(self.adjacency, self.most_records)
        return Summed(one.noise.multiplier, moved, self.most_records * moved, one.query.size, self.releases)

    def scale(self, place: int, records: int) -> float:
        """Return the noise scale of an agent's answer, or of the sum that it goes into."""
        if records > self.most_records:
            raise IncompatibleError(
                f"the agreement is for up to {self.most_records} records, and an agent has {records}: make it anew."
            )
        if self.in_sum is not None:
            return self.summed(place).scale
        return self.queries[place].scale(self.adjacency, records)

    def cost_of_integers(self, records: int, n_agents: int, epsilon: float, answers: int) -> float:
        """Return the delta that whole-number noise and masks by a graph cost in so many answers of one agent.

        Laplace noise has the larger gap of both laws, and larger than that of a sum of shares (tacit.privacy.summed). A
        sum over many agents has masks by a graph, which fail with a probability that is counted too.
        """
        gap = max(
            lattice.gap(Law.LAPLACE, self.scale(k, records), one.query.size) for k, one in enumerate(self.queries)
        )
        cost = (1 + math.exp(min(epsilon, 700))) * answers * gap
        return cost + (2.0**-FAILURE if self.in_sum is not None and n_agents > ALL_PAIRS else 0.0)

    def described(self) -> Any:
        """Return the agreement as plain values, the same on two sides that agree."""
        return described(self)

    @cached_property
    def digest(self) -> str:
        """The hash of the agreement: any other query, noise, count or cover has another one."""
        return hashlib.sha256(json.dumps(self.described(), sort_keys=True).encode()).hexdigest()
