"""Who holds which records: lists of index arrays, one an agent; every record once, no agent empty.

    contiguous   equal blocks in file order, as in the paper
    shuffled     equal up to one record, at random
    dirichlet    label skew: each class is spread over the agents by Dirichlet(alpha, ..., alpha)
    unequal      sizes spread log-normally, records at random
    by_column    one agent for each distinct value

A new partition is one function, in a file of its own where it is long, and one line of `PARTITIONS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from tacit.data.cells import Coded
from tacit.errors import DataError, SpecError
from tacit.registry import Registry
from tacit.types import Array, Federation


def contiguous(y: Array, n_agents: int) -> list[Array]:
    """Equal blocks in the order of the records; P must divide I."""
    check_counts(len(y), n_agents)
    if len(y) % n_agents:
        below = next(d for d in range(n_agents, 0, -1) if len(y) % d == 0)
        above = next(d for d in range(n_agents, len(y) + 1) if len(y) % d == 0)
        todo = f"take {below} or {above} agents, or a partition that need not be equal ('shuffled', 'unequal')."
        raise DataError(f"{len(y)} records do not split into {n_agents} equal blocks: {todo}")
    return np.split(np.arange(len(y)), n_agents)


def shuffled(y: Array, n_agents: int, rng: np.random.Generator) -> list[Array]:
    """Records at random, sizes equal up to one."""
    check_counts(len(y), n_agents)
    return [np.sort(part) for part in np.array_split(rng.permutation(len(y)), n_agents)]


def dirichlet(y: Array, n_agents: int, rng: np.random.Generator, alpha: float) -> list[Array]:
    """Each class spread over the agents in shares ~ Dirichlet(alpha, ..., alpha); small alpha: skewed."""
    check_counts(len(y), n_agents)
    if not 0 < alpha < math.inf:
        raise SpecError(f"alpha must be positive and finite, got {alpha}: 0.1 skews strongly, 100 hardly.")
    owner = np.empty(len(y), dtype=np.int64)
    for label in np.unique(y):
        members = rng.permutation(np.flatnonzero(y == label))
        # cumulated shares cut the class into P runs; a share may be zero, its run is then empty
        cuts = np.cumsum(rng.dirichlet(np.full(n_agents, alpha)))[:-1] * len(members)
        for p, run in enumerate(np.split(members, np.minimum(np.round(cuts), len(members)).astype(int))):
            owner[run] = p
    sizes = np.bincount(owner, minlength=n_agents)
    for p in np.flatnonzero(sizes == 0).tolist():
        # an agent without records takes one from the agent that then has most; I >= P, so that one has two
        giver = int(sizes.argmax())
        owner[rng.choice(np.flatnonzero(owner == giver))] = p
        sizes[giver] -= 1
        sizes[p] = 1
    return _members(owner, n_agents)


def unequal(y: Array, n_agents: int, rng: np.random.Generator) -> list[Array]:
    """Records at random; sizes 1 + Multinomial(I - P, shares), shares ~ LogNormal(0, 1)."""
    check_counts(len(y), n_agents)
    shares = rng.lognormal(size=n_agents)
    sizes = 1 + rng.multinomial(len(y) - n_agents, shares / shares.sum())
    return [np.sort(part) for part in np.split(rng.permutation(len(y)), np.cumsum(sizes)[:-1])]


def by_column(values: Coded) -> list[Array]:
    """One agent for each distinct value, in the order of `distinct(values.names)`."""
    names = distinct(values.names)
    position = {name: p for p, name in enumerate(names)}
    return _members(values.each([position[name] for name in values.names]), len(names))


def distinct(values: Iterable[object]) -> list[str]:
    """List the distinct values as sorted text; by number where all are integers."""
    names = {str(value) for value in values}
    try:
        return sorted(names, key=lambda name: (int(name), name))
    except ValueError:
        return sorted(names)


def _members(owner: Array, n_agents: int) -> list[Array]:
    # stable: each agent keeps the order of the records; small numbers, which are sorted in two passes
    order = np.argsort(owner.astype(np.min_scalar_type(n_agents)), kind="stable")
    return np.split(order, np.cumsum(np.bincount(owner, minlength=n_agents))[:-1])


def check_counts(n_records: int, n_agents: int) -> None:
    """Refuse P < 1 and I < P."""
    if n_agents < 1:
        raise SpecError(f"the number of agents must be at least 1, got {n_agents}.")
    if n_records < n_agents:
        raise DataError(f"{n_records} records cannot give {n_agents} agents one each: take fewer agents.")


# (labels, number of agents, generator, alpha) -> the records of each agent
PARTITIONS: Registry[Callable[[Array, int, np.random.Generator, float], list[Array]]] = Registry("partition", {
    "contiguous": lambda y, n_agents, _rng, _alpha: contiguous(y, n_agents),
    "shuffled": lambda y, n_agents, rng, _alpha: shuffled(y, n_agents, rng),
    "dirichlet": dirichlet,
    "unequal": lambda y, n_agents, rng, _alpha: unequal(y, n_agents, rng),
})  # fmt: skip


def by_name(name: str, y: Array, n_agents: int, seed: int, alpha: float = 0.5) -> list[Array]:
    """Cut the records by the partition called `name`, drawn from `seed`."""
    return PARTITIONS[name](y, n_agents, np.random.default_rng(seed), alpha)


def deal(pooled: Federation, name: str, n_agents: int, seed: int, alpha: float) -> Federation:
    """Deal the records of a federation of one agent to `n_agents`, by the partition called `name`."""
    (everything,) = pooled.shards
    parts = by_name(name, everything.y, n_agents, seed, alpha)
    # parts are sorted: a run of neighbours can be a view, which spares a copy of all of MNIST
    rows = [slice(part[0], part[-1] + 1) if part[-1] - part[0] < len(part) else part for part in parts]
    test = replace(pooled.test, owners=None)  # those of the pool
    return replace(pooled, shards=tuple(map(everything.rows, rows)), test=test, agents=())
