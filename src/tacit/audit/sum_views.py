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
from tacit.agent.agent import DeployedAgent
from tacit.agent.cover import Masked
from tacit.agent.gate import Checked, Question
from tacit.agent.masks import masker as masks
from tacit.agent.masks.masker import maskers
from tacit.audit.sum_faults import COLLUDING, HONEST, NAMES, Fault, Place
from tacit.privacy.summed import Attempt, InSum, Peers, Summed, attempt_of
from tacit.privacy.terms import Memory
from tacit.run import deploy
from tacit.run.compose import asked_of
from tacit.run.spec import Spec
from tacit.types import Array


@dataclass(frozen=True, eq=False)
class FaultyCover(Masked):
    """The cover of an agent whose shares are broken on purpose."""

    run: str
    name: str
    fault: Fault

    def share(self, attempt: Attempt, asked: Checked, value: Array) -> Array:
        return self.fault.share(attempt, value, Place(self.run, self.name, asked.t))


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

    honest: Mapping[str, DeployedAgent]
    known: Sequence[masks.Masker]
    summed: Summed

    def attempt(self, asked: Asked) -> Attempt:
        """What the agents of the set agree on."""
        return attempt_of(self.summed, Peers(len(asked.peers), len(COLLUDING)))

    def seen(self, asked: Asked) -> Array:
        """Return the words of each honest agent of the set without the masks that the coalition knows: (m, d)."""
        first = next(iter(self.honest.values()))
        question = Question(
            first.terms.run, first.terms.spec, asked.t, {"point": asked.w}, asked.attempt, tuple(sorted(asked.peers))
        )
        words = np.stack([self.honest[name].answer_or_refuse(question).value for name in asked.honest])
        width, to = self.attempt(asked).width, masks_asked(first, question)
        zeros, mask = (np.zeros(words.shape[1], "<u8") for _ in range(2))
        for own in self.known:
            digest = replace(own, terms=replace(own.terms, bits=width)).asked(to, words.shape[1])
            for row, name in zip(words, asked.honest, strict=True):
                own.fill(name, digest, zeros, mask)
                (np.subtract if name < own.agent else np.add)(row, mask, out=row)
        return np.asarray(words & np.uint64((1 << width) - 1))

    def value(self, name: str, w: Array) -> Array:
        """Return what an agent adds at w, before noise: (d,)."""
        return self.honest[name].queries[0].value({"point": w}).ravel()


def coalition(
    spec: Spec, sides: tuple[Agent, Agent], other: Agent, shape: tuple[int, int], releases: tuple[int, int],
    fault: Fault | None,
) -> tuple[Coalition, Coalition]:  # fmt: skip
    """Deploy the federation with the canary and without it, each as one run of `releases`: rounds and repetitions.

    The public numbers are those of the agents with the canary on both sides.
    """
    rounds, again = releases
    made = [
        asked_of([first, *(other for _ in NAMES[1:])], shape, rounds, InSum(len(COLLUDING), again)) for first in sides
    ]
    agreement = made[0].first_agreement

    def deployed(agents: Sequence[Agent]) -> Coalition:
        run = secrets.token_hex(8)
        met = maskers(run, dict.fromkeys(NAMES, ""), len(COLLUDING), None)
        if fault is not None:  # the coalition knows the masks that it shares, as they are
            met = {name: FaultyMasker(**_parts(one), fault=fault) for name, one in met.items()}
        found = {}
        for name, agent in zip(NAMES, agents, strict=True):
            terms = replace(made[0].terms(spec, 0, "an attack"), run=run)
            masked = Masked(agreement, met[name])
            if fault is not None:
                masked = FaultyCover(agreement, met[name], run, name, fault)
            queries = deploy.queries_of(agreement, agent.shard)
            found[name] = DeployedAgent(name, "canaries", queries, agreement, terms, masked, Memory())
        return Coalition(
            {name: found[name] for name in HONEST}, [met[name] for name in COLLUDING], agreement.summed(0)
        )

    present, absent = (deployed([first, *(other for _ in NAMES[1:])]) for first in sides)
    return present, absent


def masks_asked(agent: DeployedAgent, question: Question) -> masks.Question:
    """Return what the masks of a question are made for."""
    asked = agent.gate.checked(question)
    return masks.Question(asked.t, asked.attempt, asked.peers, asked.fingerprint)


def _parts(one: masks.Masker) -> dict[str, Any]:
    return {part.name: getattr(one, part.name) for part in fields(one)}
