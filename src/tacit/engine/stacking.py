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
from tacit.engine import forms
from tacit.engine.gradients import RowNorms
from tacit.engine.registry import Agents
from tacit.errors import IncompatibleError
from tacit.types import Array, Norm

SLACK = 1.25  # padding makes an agent's records at most this much longer


def alike(runs: Sequence[Agents]) -> list[list[int]]:
    """The numbers of the runs, in groups that take the same branches."""
    groups: dict[object, list[int]] = {}
    for r, run in enumerate(runs):
        groups.setdefault(kind(run[0]), []).append(r)
    return list(groups.values())


def kind(agent: Agent) -> object:
    """What decides the branches of a run, whatever its numbers; an error for what has no stacked form."""
    m, problem = agent.variant, agent.problem
    for choice, known in (*forms.of_step(agent), *forms.of_gradient(agent)):
        if type(choice) not in known:
            names = ", ".join(each.__name__ for each in known)
            raise IncompatibleError(
                f"the torch engine knows {names} and not {type(choice).__name__}: use the fast or the plain engine."
            )
    rule: Any = m.rule
    types = map(type, (rule, m.mechanism, m.bound, problem.loss, problem.domain))
    trust_norm = rule.norm if isinstance(rule, Trust) else None
    return (*types, rule.at, trust_norm, m.perturbation, m.bound.norm, m.order, m.regularize_global)


@dataclass(frozen=True, eq=False)
class Block:
    """Records of agents, padded to one length: an empty record moves no gradient and no bound."""

    agents: Any  # (G,)
    x: Any  # (G, n, J)
    y: Any  # (G, n, 1, 1)
    x_norm: dict[Norm, Any]  # (G, n, 1, 1)

    def map(self, change: Callable[[Array], Any]) -> Block:
        """The block with every array passed through `change`: to a device, for one."""
        x_norm = {norm: change(size) for norm, size in self.x_norm.items()}
        return Block(change(self.agents), change(self.x), change(self.y), x_norm)


def blocks(agents: Agents, x_norm: Sequence[RowNorms], most: int) -> Iterator[Block]:
    """All records, at most `most` in a block, an agent with more is cut; x_norm is from gradients.row_norms."""
    pieces = [
        (p, slice(start, min(start + most, len(agent.shard))))
        for p, agent in enumerate(agents)
        for start in range(0, len(agent.shard), most)
    ]
    for group in _groups(sorted(pieces, key=lambda piece: -_length(piece)), most):
        yield Block(
            np.array([p for p, _ in group]),
            _padded([agents[p].shard.x[rows] for p, rows in group]),
            _padded([agents[p].shard.y[rows] for p, rows in group])[:, :, None, None],
            {
                norm: _padded([x_norm[p][norm][rows].astype(np.float32) for p, rows in group])[:, :, None, None]
                for norm in x_norm[0]
            },
        )


def _groups(pieces: Sequence[tuple[int, slice]], most: int) -> list[list[tuple[int, slice]]]:
    """Groups of neighbours in a list that goes from long to short."""
    groups: list[list[tuple[int, slice]]] = []
    for piece in pieces:
        longest = _length(groups[-1][0]) if groups else 0
        if groups and _length(piece) * SLACK >= longest and (len(groups[-1]) + 1) * longest <= most:
            groups[-1].append(piece)
        else:
            groups.append([piece])
    return groups


def _length(piece: tuple[int, slice]) -> int:
    return int(piece[1].stop - piece[1].start)


def _padded(parts: list[Array]) -> Array:
    """One array of parts from long to short, zeros behind the shorter ones."""
    full = np.zeros((len(parts), *parts[0].shape), parts[0].dtype)
    for row, part in zip(full, parts, strict=True):
        row[: len(part)] = part
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
