"""An honest-but-curious server that knows every record but one, and the label of that one, tries to see it.

In each round it inverts z_p to the noisy gradient and takes off the gradient of the records it knows. What is left is
x a^T + noise, x the unknown record and a = h - e_y. Summed over the rounds and taken along 1/K - e_y, the direction in
which a starts, this is a multiple of x without noise, whatever h did. With noise of a total mean mu (the mu of Gaussian
privacy) the cosine to x is at most about mu / sqrt(mu^2 + J): where membership is in doubt, no image shows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacit.admm.agent import Agent
from tacit.audit.observe import observe, thin
from tacit.run import build
from tacit.run.spec import Spec
from tacit.types import Array, Federation, Shard

EPSILONS = (math.inf, 1000.0, 8.0, 3.0, 1.0)  # 1000 shows that the attack works
TARGETS, RECORDS = 4, 1000


@dataclass(frozen=True, eq=False)
class Recovery:
    """The records of one agent and what the server made of them, (n, J) both, at an epsilon (inf: no noise)."""

    epsilon: float
    covers: str  # "run" or "round"
    originals: Array
    guesses: Array

    def __str__(self) -> str:
        each = " a round" if self.covers == "round" else ""
        return "no noise" if math.isinf(self.epsilon) else f"epsilon {self.epsilon:g}{each}"

    @property
    def cosines(self) -> Array:
        """<x, guess> of unit vectors, (n,): 1 is the record, 0 has nothing to do with it."""
        sizes = np.linalg.norm(self.originals, axis=1) * np.linalg.norm(self.guesses, axis=1)
        return np.asarray((self.originals * self.guesses).sum(axis=1) / np.maximum(sizes, 1e-300))

    @property
    def chance(self) -> float:
        """The mean size of the cosine of a direction drawn at random."""
        return math.sqrt(2 / (math.pi * self.originals.shape[1]))

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "epsilon": None if math.isinf(self.epsilon) else self.epsilon,
            "covers": self.covers,
            "cosines": self.cosines.tolist(),
            "mean_cosine": float(self.cosines.mean()),
            "chance": self.chance,
        }


def reconstruct(
    spec: Spec,
    over: Federation | None = None,
    epsilons: Sequence[float] = EPSILONS,
    targets: int = TARGETS,
    records: int = RECORDS,
) -> list[Recovery]:
    """The attack on records of the first agent, in a run of the spec at each epsilon."""
    base = thin(build.federation(spec.checked()) if over is None else over, records)
    return [_attack(spec.with_values({"privacy.epsilon": epsilon}).checked(), base, targets) for epsilon in epsilons]


def _attack(spec: Spec, over: Federation, targets: int) -> Recovery:
    setup = build.admm_setup(spec, over)
    victim = setup.agents[0]
    chosen = _different(victim.shard, targets)
    known = [_without(victim, i) for i in chosen]
    left = [np.zeros(setup.shape) for _ in chosen]
    for seen in observe(spec, setup, setup.agents):
        one = seen[0]
        for k, rest in enumerate(known):
            left[k] += one.gradient - rest.gradient(one.point, one.msg.w)[0]
    originals = victim.shard.x[chosen].astype(np.float64)
    along = 1 / over.n_classes - np.eye(over.n_classes)[victim.shard.y[chosen]]
    guesses = np.stack([rest @ a for rest, a in zip(left, along, strict=True)])
    return Recovery(spec.privacy.epsilon, spec.privacy.covers, originals, guesses)


def _different(shard: Shard, targets: int) -> Array:
    """The first records of different labels, then others."""
    _, first = np.unique(shard.y, return_index=True)
    others = np.setdiff1d(np.arange(len(shard)), first)
    return np.concatenate([np.sort(first), others])[:targets]


def _without(agent: Agent, i: int) -> Agent:
    return replace(agent, shard=Shard(np.delete(agent.shard.x, i, 0), np.delete(agent.shard.y, i)))

