"""Mechanisms broken on purpose, each in a way that has been published, shipped or nearly so. All must be caught."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tacit.admm.agent import Agent, Method
from tacit.admm.messages import Broadcast
from tacit.admm.perturbation import Output
from tacit.admm.updates import ascent
from tacit.errors import unknown
from tacit.experiments.audit.finding import Finding, claimed, weigh
from tacit.experiments.audit.mechanism import DRAWS, answer, likelihood_attack, views
from tacit.experiments.audit.neighbours import Neighbours, neighbours
from tacit.experiments.presets import preset
from tacit.privacy.mechanism import Mechanism, Silence
from tacit.types import Array, Norm

Attack = Callable[[Neighbours, int, int], tuple[Array, Array]]


@dataclass(frozen=True)
class Fainter:
    """Noise of another mechanism, too small by `factor`, under the same name and price."""

    inner: Mechanism
    factor: float = 0.5

    @property
    def norm(self) -> Norm:
        return self.inner.norm

    @property
    def multiplier(self) -> float:
        return self.inner.multiplier

    def sample(self, key: tuple[int, int], t: int, step: int, shape: tuple[int, ...]) -> Array:
        return np.asarray(self.factor * self.inner.sample(key, t, step, shape))


@dataclass(frozen=True)
class Stuck:
    """Noise of another mechanism that does not change from round to round."""

    inner: Mechanism

    @property
    def norm(self) -> Norm:
        return self.inner.norm

    @property
    def multiplier(self) -> float:
        return self.inner.multiplier

    def sample(self, key: tuple[int, int], t: int, step: int, shape: tuple[int, ...]) -> Array:  # noqa: ARG002
        return self.inner.sample(key, 0, step, shape)


def difference_attack(pair: Neighbours, draws: int, seed: int) -> tuple[Array, Array]:
    """Two rounds, the second at the zero model: what they share cancels in the difference."""
    second = Broadcast(pair.msg.t + 1, np.zeros_like(pair.msg.w), pair.msg.rho)
    asked = [(agent, [agent.gradient(msg.w, msg.w)[0] for msg in (pair.msg, second)]) for agent in _sides(pair)]
    with_it, without = (first - then for _, (first, then) in asked)
    seen = (
        views(agent, pair.own, [pair.msg, second], draws, (seed, side))
        for side, agent in enumerate(_sides(pair))
    )
    scores_in, scores_out = (_along(view[:, 0] - view[:, 1], with_it, without) for view in seen)
    return scores_in, scores_out


def dual_attack(pair: Neighbours, draws: int, seed: int) -> tuple[Array, Array]:
    """The agent sends its multiplier as well, made from the z it had before the noise: lambda+ is the gradient."""
    with_it, without = (answer(agent, pair)[0] for agent in _sides(pair))

    def dual(agent: Agent, n: int, side: int) -> Array:
        quiet = replace(agent, method=replace(agent.method, mechanism=Silence()), key=((seed << 32) + n, side))
        after, _, _ = quiet.respond(pair.own, pair.msg)
        return np.asarray(ascent(pair.own.dual, pair.msg.w, after.z, pair.msg.rho))

    scores_in, scores_out = (
        _along(np.stack([dual(agent, n, side) for n in range(draws)]), with_it, without)
        for side, agent in enumerate(_sides(pair))
    )
    return scores_in, scores_out


@dataclass(frozen=True)
class Control:
    """A fault: what it is, the spec it is put into, how, and the attack that shows it."""

    name: str
    about: str
    break_: Callable[[Method], Method] = field(default=lambda method: method)
    values: dict[str, Any] = field(default_factory=dict)
    attack: Attack = likelihood_attack
    rounds: int = 1

    def audit(self, draws: int = DRAWS, seed: int = 0, confidence: float = 0.95) -> Finding:
        """The broken mechanism against the claim of the whole one."""
        spec = preset("sound", "objt").with_values({"run.rounds": self.rounds, **self.values}).checked()
        pair = neighbours(spec)
        claim = claimed(spec, pair.present.method, self.rounds)
        present, absent = (replace(agent, method=self.break_(agent.method)) for agent in _sides(pair))
        scores = self.attack(replace(pair, present=present, absent=absent), draws, seed)
        return weigh("control", self.name, claim, scores, confidence)


_STATIC = {"schedule.rho": "static", "schedule.rho_static": 1.0}  # z in units in which sigma < 1
_LAPLACE = {"privacy.mechanism": "laplace", "privacy.covers": "round"}

CONTROLS = {
    control.name: control
    for control in (
        Control(
            "halved-noise",
            "noise of half the calibrated scale",
            lambda method: replace(method, mechanism=Fainter(method.mechanism)),
        ),
        Control(
            "halved-laplace",
            "the same for Laplace noise under a pure epsilon",
            lambda method: replace(method, mechanism=Fainter(method.mechanism)),
            _LAPLACE,
        ),
        Control(
            "squared-sigma",
            "sigma^2 handed to a sampler that takes sigma, where sigma < 1",
            lambda method: replace(method, perturbation=Output(squared=True)),
            _STATIC,
        ),
        Control("clean-dual", "a noise-free multiplier sent beside the noisy z", attack=dual_attack),
        Control(
            "data-scale",
            "a noise scale read from the private data",
            values=_LAPLACE | {"privacy.sensitivity": "observed", "data.row_norm": "none"},
        ),
        Control(
            "reused-noise",
            "the same noise in two rounds",
            lambda method: replace(method, mechanism=Stuck(method.mechanism)),
            attack=difference_attack,
            rounds=2,
        ),
    )
}


def control(name: str) -> Control:
    """The control of that name."""
    if name not in CONTROLS:
        raise unknown("control", name, CONTROLS)
    return CONTROLS[name]


def _sides(pair: Neighbours) -> tuple[Agent, Agent]:
    return pair.present, pair.absent


def _along(seen: Array, with_it: Array, without: Array) -> Array:
    """How far each view lies from `without` (-1) to `with_it` (1)."""
    way = with_it - without
    return np.asarray(((2 * seen - with_it - without) * way).sum(axis=(1, 2)) / np.square(way).sum())
