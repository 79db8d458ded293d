"""What a server and its colluding agents see of deployed agents that answer into a secure sum.

The coalition holds the masked words of all honest agents, and the secrets of the colluding agents. So it takes the
masks that it knows off the words of every honest agent: these are the strongest views of one agent, and they add up to
the sum of the honest shares, which is the only view that may tell anything.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from tacit.admm.agent import Agent
from tacit.audit.answering import Penalties
from tacit.audit.sum_faults import COLLUDING, HONEST, NAMES, Fault, Place
from tacit.guarded import mean
from tacit.guarded.gate import Question
from tacit.guarded.half import AdmmHalf
from tacit.guarded.masks import masker as masks
from tacit.guarded.summand import Summand
from tacit.privacy.summed import Attempt, Peers, Summed, attempt_of
from tacit.privacy.terms import Memory, Terms
from tacit.run import deploy
from tacit.run.meeting import summands
from tacit.run.spec import Spec
from tacit.types import Array


@dataclass(frozen=True, eq=False)
class FaultySummand(Summand):
    """A deployed agent whose shares are broken on purpose."""

    fault: Fault

    def _share(self, attempt: Attempt, to: masks.Question, value: Array) -> Array:
        return self.fault.share(attempt, value, Place(self.terms.run, self.name, to.round))


@dataclass(frozen=True)
class FaultyMasker(masks.Masker):
    """An agent's masks, broken on purpose."""

    fault: Fault

    def fill(self, peer: str, asked: str, zeros: Array, words: Array) -> None:
        super().fill(peer, "00" if self.fault.reused else asked, zeros, words)
        words[:] = self.fault.mask(words, {self.agent, peer})


@dataclass(frozen=True, eq=False)
class Asked:
    """A question of the server: the round, the attempt, the honest agents of the set, and the model."""

    t: int
    attempt: int
    honest: Sequence[str]
    w: Array

    @property
    def peers(self) -> tuple[str, ...]:
        return (*self.honest, *COLLUDING)


@dataclass(frozen=True, eq=False)
class Coalition:
    """A run of a secure sum: its honest agents, the masks that the coalition knows, and the public numbers."""

    honest: Mapping[str, Summand]
    known: Sequence[masks.Masker]
    summed: Summed

    def attempt(self, asked: Asked) -> Attempt:
        """What the agents of the set agree on."""
        return attempt_of(self.summed, Peers(len(asked.peers), len(COLLUDING)))

    def seen(self, asked: Asked) -> Array:
        """Return the words of each honest agent of the set without the masks that the coalition knows: (m, d)."""
        terms = next(iter(self.honest.values())).terms
        body = {"w": asked.w, "attempt": asked.attempt, "peers": asked.peers}
        question = Question(terms.run, terms.spec, asked.t, body)
        words = np.stack([self.honest[name].words(question) for name in asked.honest])
        width = self.attempt(asked).width
        to = masks.Question(asked.t, asked.attempt, asked.peers)
        zeros, mask = (np.zeros(words.shape[1], "<u8") for _ in range(2))
        for own in self.known:
            digest = replace(own, terms=replace(own.terms, bits=width)).asked(to, words.shape[1])
            for row, name in zip(words, asked.honest, strict=True):
                own.fill(name, digest, zeros, mask)
                (np.subtract if name < own.agent else np.add)(row, mask, out=row)
        return np.asarray(words & np.uint64((1 << width) - 1))

    def value(self, name: str, w: Array) -> Array:
        """Return what an agent adds at w, before noise: (d,)."""
        return mean.value_at(self.honest[name].half, 1, w).ravel()


def coalition(
    spec: Spec, sides: tuple[Agent, Agent], other: Agent, shape: tuple[int, int], releases: tuple[int, int],
    fault: Fault | None,
) -> tuple[Coalition, Coalition]:  # fmt: skip
    """Deploy the federation with the canary and without it, each as one run of `releases`: rounds and repetitions.

    The public numbers are those of the agents with the canary on both sides.
    """
    rounds, again = releases
    rho = Penalties({1: 1.0})
    made = [
        [AdmmHalf(agent, shape, rho, rounds, deploy.compiled_sums) for agent in (first, *(other for _ in NAMES[1:]))]
        for first in sides
    ]
    numbers = mean.public(made[0], rounds + again)

    def deployed(halves: Sequence[AdmmHalf]) -> Coalition:
        run = secrets.token_hex(8)
        rows = [(name, half, _terms(spec, half, numbers, run), "canaries", Memory())
                for name, half in zip(NAMES, halves, strict=True)]  # fmt: skip
        agents = summands(rows, numbers, len(COLLUDING), None)
        agents = agents if fault is None else [_broken(agent, fault) for agent in agents]
        by_name = {agent.name: agent for agent in agents}
        return Coalition(
            {name: by_name[name] for name in HONEST}, [by_name[name].masker for name in COLLUDING], numbers
        )

    present, absent = (deployed(halves) for halves in made)
    return present, absent


def _terms(spec: Spec, half: AdmmHalf, numbers: Summed, run: str) -> Terms:
    """Return the terms of an agent in the run of an attack, whose many releases are draws of one."""
    once = deploy.terms(spec, replace(half, rounds=1))
    again = numbers.releases - half.rounds
    return replace(once, run=run, rounds=half.rounds, scale=numbers.scale, repetitions=again)


def _broken(agent: Summand, fault: Fault) -> Summand:
    masker = FaultyMasker(**_parts(agent.masker), fault=fault)
    return FaultySummand(**(_parts(agent) | {"masker": masker}), fault=fault)


def _parts(one: Summand | masks.Masker) -> dict[str, Any]:
    return {part.name: getattr(one, part.name) for part in fields(one)}
