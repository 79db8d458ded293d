"""Who is linked to whom where there is no server, and how an agent averages what its neighbours have released.

    c = M z,    M = 1 - L / g,    (L z)_p = sum_{q linked to p} (z_p - z_q),    g = min(P, max_{links pq} (d_p + d_q))

d_p is the number of p's neighbours. No eigenvalue of the Laplacian L is larger than P, nor than d_p + d_q of some link
(Anderson & Morley 1985), so M is symmetric, positive semidefinite, and its rows sum to one: c_p is a weighted mean of
z_p and its neighbours, and the mean of all c_p is that of all z_p. Where all are linked to all, g = P and every c_p is
the mean of all z_p. The second largest eigenvalue of M says how fast agents agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tacit.errors import IncompatibleError, SpecError
from tacit.types import Array

MOST_LINKS = 2**20  # some hundred MB; a round adds up twice as many models


@dataclass(frozen=True)
class Network:
    """The links of agents 0 .. P - 1, each named once; whoever is not linked is reached through others."""

    n_agents: int
    links: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        once = {(min(link), max(link)) for link in self.links}
        if len(once) < len(self.links) or any(not 0 <= p < q < self.n_agents for p, q in once):
            raise SpecError(f"a link joins two of the agents 0 .. {self.n_agents - 1}, and is named once.")
        far = sorted(set(range(self.n_agents)) - self._reached())
        if far:
            raise SpecError(
                f"the network is not connected: {len(far)} of {self.n_agents} agents, as agent {far[0]}, are not "
                "reached from agent 0, and cannot agree with it on a model. Add links (method.degree = 2 makes a ring)."
            )

    @cached_property
    def neighbours(self) -> tuple[tuple[int, ...], ...]:
        """The neighbours of every agent."""
        found: list[list[int]] = [[] for _ in range(self.n_agents)]
        for p, q in self.links:
            found[p].append(q)
            found[q].append(p)
        return tuple(tuple(sorted(own)) for own in found)

    def _reached(self) -> set[int]:
        """All agents that a message of agent 0 gets to."""
        reached, last = {0}, [0]
        while last:
            last = sorted({q for p in last for q in self.neighbours[p]} - reached)
            reached.update(last)
        return reached

    @cached_property
    def bound(self) -> int:
        """g, which no eigenvalue of L exceeds."""
        return min(self.n_agents, max((self._degree(p) + self._degree(q) for p, q in self.links), default=1))

    @property
    def most(self) -> int:
        """The largest number of neighbours, or 1 where nobody has any."""
        return max(1, *map(len, self.neighbours))

    def means(self, z: Array, agents: Sequence[int], g: int) -> Array:
        """c_p of these agents, from the z of all: (P, J, K) -> (agents, J, K).

        c_p = ( (g - d_p) z_p + sum_{q linked to p} z_q ) / g, in the same order whichever agents are here: a product
        with rows of M would be rounded differently on each number of ranks.
        """
        found = np.empty((len(agents), *z.shape[1:]))
        for row, p in zip(found, agents, strict=True):
            row[...] = (g - self._degree(p)) * z[p]
            for q in self.neighbours[p]:
                row += z[q]
        found /= g
        return found

    def _degree(self, p: int) -> int:
        return len(self.neighbours[p])


def circulant(n_agents: int, degree: int) -> Network:
    """Every agent has `degree` neighbours: 2 is a ring, P - 1 or more links all to all.

    Agents stand in a circle and are linked over the same distances. These grow as P^(i / k), i = 0 .. k - 1, for
    degree = 2 k, so that a few of them reach everybody soon; an odd degree adds the agent across the circle.
    """
    degree = min(degree, n_agents - 1)
    if n_agents * degree > 2 * MOST_LINKS:
        raise IncompatibleError(
            f"a network of {n_agents} agents with {degree} neighbours each has more than {MOST_LINKS} links: set a "
            "smaller method.degree, or use a method with a server, as fedgd."
        )
    if degree * n_agents % 2:
        raise SpecError(
            f"{n_agents} agents cannot have {degree} neighbours each, because both numbers are odd: set method.degree "
            f"= {degree + 1}."
        )
    pairs, across, distances = degree // 2, (n_agents - 1) // 2, [0]
    for i in range(pairs):
        room = across - (pairs - 1 - i)  # for the distances that are still to come
        distances.append(min(room, max(distances[-1] + 1, round(n_agents ** (i / pairs)))))
    links = {tuple(sorted((p, (p + far) % n_agents))) for far in distances[1:] for p in range(n_agents)}
    if degree % 2:
        links |= {(p, p + n_agents // 2) for p in range(n_agents // 2)}
    return Network(n_agents, tuple(sorted((p, q) for p, q in links)))


def path(n_agents: int) -> Network:
    """Each agent is linked to the next."""
    return Network(n_agents, tuple((p, p + 1) for p in range(n_agents - 1)))


def star(n_agents: int) -> Network:
    """Agent 0 is linked to all others, which have no other link."""
    return Network(n_agents, tuple((0, p) for p in range(1, n_agents)))
