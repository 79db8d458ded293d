"""An honest-but-curious server knows all records but one, and the label of that record, and tries to see the record.

In each round the server inverts z_p to the noisy gradient and subtracts the gradient of the records it knows. The rest
is x a^T + noise, x the unknown record and a = h - e_y. Summed over the rounds and taken along 1/K - e_y, the direction
in which a starts, the rest is a multiple of x without noise, whatever h did. With noise of a total mean mu (the mu of
Gaussian privacy) the cosine to x is at most about mu / sqrt(mu^2 + J): where membership is in doubt, no image shows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacit.admm.agent import Agent
from tacit.audit.answering import observe, thin
from tacit.errors import IncompatibleError
from tacit.run import build
from tacit.run.spec import Spec
from tacit.types import Array, Federation, Shard

EPSILONS = (math.inf, 1000.0, 8.0, 3.0, 1.0)  # 1000 shows that the attack works
TARGETS, RECORDS = 4, 1000


@dataclass(frozen=True, eq=False)
class Recovery:
    """Records of one agent, and the server's guesses of these records, both (n, J), at an epsilon (inf: no noise)."""

    epsilon: float
    covers: str  # "run" or "round"
    originals: Array
    guesses: Array

    def __str__(self) -> str:
        each = " a round" if self.covers == "round" else ""
        return "no noise" if math.isinf(self.epsilon) else f"epsilon {self.epsilon:g}{each}"

    @property
    def cosines(self) -> Array:
        """Return <x, guess> of unit vectors, (n,): 1 is the record itself, 0 has nothing to do with the record."""
        sizes = np.linalg.norm(self.originals, axis=1) * np.linalg.norm(self.guesses, axis=1)
        return np.asarray((self.originals * self.guesses).sum(axis=1) / np.maximum(sizes, 1e-300))

    @property
    def chance(self) -> float:
        """Return the mean absolute cosine between a record and a random direction."""
        return math.sqrt(2 / (math.pi * self.originals.shape[1]))

    def as_dict(self) -> dict[str, Any]:
        """Return the recovery as values for JSON."""
        return {
            "epsilon": None if math.isinf(self.epsilon) else self.epsilon,
            "covers": self.covers,
            "cosines": self.cosines.tolist(),
            "mean_cosine": float(self.cosines.mean()),
            "chance": self.chance,
        }


def reconstruct(
    spec: Spec,
    federation: Federation | None = None,
    epsilons: Sequence[float] = EPSILONS,
    targets: int = TARGETS,
    records: int = RECORDS,
) -> list[Recovery]:
    """Attack `targets` records of the first agent, in one run of the spec at each epsilon."""
    base = _of_classes(thin(build.federation(spec.checked()) if federation is None else federation, records))
    return [_attack(spec.with_values({"privacy.epsilon": epsilon}).checked(), base, targets) for epsilon in epsilons]


def _of_classes(federation: Federation) -> Federation:
    """Return the federation; refuse one whose label is a number, because the guess is made from the classes."""
    if federation.target is not None:
        raise IncompatibleError(
            "the reconstruction knows the direction of a gradient by its class, and the label of "
            f"{federation.name} is a number: attack a run over classes."
        )
    return federation


def _attack(spec: Spec, federation: Federation, targets: int) -> Recovery:
    setup = build.admm_setup(spec, federation)
    victim = setup.agents[0]
    chosen = _different(victim.shard, targets)
    known = [_without(victim, i) for i in chosen]
    left = [np.zeros(setup.shape) for _ in chosen]
    for seen in observe(spec, setup, setup.agents):
        one = seen[0]
        for k, rest in enumerate(known):
            left[k] += one.gradient - rest.gradient(one.point, one.msg.w)[0]
    originals = victim.shard.x[chosen].astype(np.float64)
    along = 1 / federation.n_classes - np.eye(federation.n_classes)[victim.shard.y[chosen]]
    guesses = np.stack([rest @ a for rest, a in zip(left, along, strict=True)])
    return Recovery(spec.privacy.epsilon, spec.privacy.covers, originals, guesses)


def _different(shard: Shard, targets: int) -> Array:
    """Return the indices of the first record of each label, then of other records."""
    _, first = np.unique(shard.y, return_index=True)
    others = np.setdiff1d(np.arange(len(shard)), first)
    return np.concatenate([np.sort(first), others])[:targets]


def _without(agent: Agent, i: int) -> Agent:
    return replace(agent, shard=Shard(np.delete(agent.shard.x, i, 0), np.delete(agent.shard.y, i)))

