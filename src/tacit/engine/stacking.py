"""What the torch engine can stack, in NumPy: runs that take the same branches, and agents with about as many records.

The torch engine asks once for `alike` and for `blocks`; `project_each` takes the projections that have no stacked form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.admm.agent import Agent
from tacit.admm.project import TrustRegion, project
from tacit.admm.rule import Trust
from tacit.engine.kernels import gradient_choices, step_choices
from tacit.engine.passes import RowNorms
from tacit.engine.registry import Agents
from tacit.errors import IncompatibleError
from tacit.types import Array, Norm

SLACK = 1.25  # padding makes an agent's records at most this much longer

Piece = tuple[int, int, int]  # so many records, of agent p, from this one on


def alike(runs: Sequence[Agents]) -> list[list[int]]:
    """The indices of the runs, in groups of runs that take the same branches."""
    groups: dict[object, list[int]] = {}
    for r, run in enumerate(runs):
        groups.setdefault(kind(run[0]), []).append(r)
    return list(groups.values())


def kind(agent: Agent) -> object:
    """The choices that decide which branches a run takes; a choice that has no stacked form is refused."""
    m, problem = agent.variant, agent.problem
    for choice, known in (*step_choices(agent), *gradient_choices(agent)):
        if type(choice) not in known:
            names = ", ".join(each.__name__ for each in known)
            raise IncompatibleError(
                f"the torch engine knows {names} and not {type(choice).__name__}: use the fast or the plain engine."
            )
    types = map(type, (m.rule, m.mechanism, m.bound, problem.loss, problem.domain))
    trust_norm = m.rule.norm if isinstance(m.rule, Trust) else None
    return (*types, m.rule.at, trust_norm, m.perturbation, m.bound.norm, m.order, m.regularize_global)


@dataclass(frozen=True, eq=False)
class Block:
    """Records of agents, padded to one length: an empty record moves no gradient and no bound."""

    agents: Any  # (G,)
    x: Any  # (G, n, J)
    y: Any  # (G, n, 1, 1)
    x_norm: dict[Norm, Any]  # (G, n, 1, 1)


def blocks(
    agents: Agents, x_norm: Sequence[RowNorms], most: int, place: Callable[[Array], Any] = np.asarray
) -> Iterator[Block]:
    """All records, at most `most` in a block; an agent with more is cut. `place` brings an array to a device."""
    shards = [agent.shard for agent in agents]
    starts = [(p, start) for p, shard in enumerate(shards) for start in range(0, len(shard), most)]
    pieces = [(min(most, len(shards[p]) - start), p, start) for p, start in starts]
    for group in _groups(sorted(pieces, key=lambda piece: -piece[0]), most):
        sizes = {norm: _padded([own[norm].astype(np.float32) for own in x_norm], group) for norm in x_norm[0]}
        yield Block(
            place(np.array([p for _, p, _ in group])),
            place(_padded([shard.x for shard in shards], group)),
            place(_padded([_in_single(shard.y) for shard in shards], group)[:, :, None, None]),
            {norm: place(size[:, :, None, None]) for norm, size in sizes.items()},
        )


def _in_single(y: Array) -> Array:
    """Labels as they are; numbers to predict in the precision of the scores."""
    return y.astype(np.float32) if y.dtype.kind == "f" else y


def _groups(pieces: Sequence[Piece], most: int) -> list[list[Piece]]:
    """Groups of neighbours in a list that goes from long to short."""
    groups: list[list[Piece]] = []
    for piece in pieces:
        longest = groups[-1][0][0] if groups else 0
        if groups and piece[0] * SLACK >= longest and (len(groups[-1]) + 1) * longest <= most:
            groups[-1].append(piece)
        else:
            groups.append([piece])
    return groups


def _padded(arrays: Sequence[Array], group: Sequence[Piece]) -> Array:
    """The pieces of the agents' arrays in one array, zeros behind the shorter ones."""
    full = np.zeros((len(group), group[0][0], *arrays[0].shape[1:]), arrays[0].dtype)
    for row, (n, p, start) in zip(full, group, strict=True):
        row[:n] = arrays[p][start : start + n]
    return full


def project_each(runs: Sequence[Agents], c: Array, z: Array, t: int) -> Array:
    """Agent after agent, argmin |u - c_p| over W and the trust region around z_p; c and z (P, J, R, K)."""
    nearest = np.empty_like(c)
    for r, run in enumerate(runs):
        for p, agent in enumerate(run):
            at, rule = (p, slice(None), r), agent.variant.rule
            region = TrustRegion(z[at], rule.radius(t), rule.norm) if isinstance(rule, Trust) else None
            nearest[at] = project(c[at], agent.problem.domain, region)
    return nearest
