"""Mechanisms and methods broken on purpose, as was published, shipped or nearly shipped. Attacks must catch all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tacit.admm.agent import Agent, Variant
from tacit.admm.messages import Broadcast
from tacit.admm.rule import Output
from tacit.admm.updates import ascent
from tacit.audit import mechanism, methods, sum_faults
from tacit.audit.answering import answer
from tacit.audit.finding import CONFIDENCE, Finding, Trials, claimed, weigh
from tacit.audit.mechanism import DRAWS, along
from tacit.audit.neighbours import Neighbours, neighbours
from tacit.audit.suite import standard
from tacit.audit.sum_faults import Fault
from tacit.errors import unknown
from tacit.methods.gradient_descent import FEDGD, FedGD, build_fedgd
from tacit.methods.method import Answers, Budget, Choice, Entry, Own
from tacit.methods.task import Facts, Task
from tacit.privacy.mechanism import Gaussian, Laplace, Mechanism, Silence
from tacit.problem.objective import Problem
from tacit.problem.sensitivity import Adjacency, Clipped, Observed, RecordBound
from tacit.run.spec import Spec
from tacit.types import Array, Norm, Shard


@dataclass(frozen=True)
class Disguised:
    """A mechanism with the norm and the multiplier of `inner`, whose noise `draw` changes."""

    inner: Mechanism
    draw: Callable[[Mechanism, tuple[int, int], int, int, tuple[int, ...]], Array]

    @property
    def norm(self) -> Norm:
        return self.inner.norm

    @property
    def multiplier(self) -> float:
        return self.inner.multiplier

    def sample(self, key: tuple[int, int], t: int, step: int, shape: tuple[int, ...]) -> Array:
        return np.asarray(self.draw(self.inner, key, t, step, shape))


def fainter(factor: float) -> Callable[[Variant], Variant]:
    """Return a fault that multiplies the noise by `factor`."""

    def faint(variant: Variant) -> Variant:
        own = variant.mechanism
        assert isinstance(own, Gaussian | Laplace)
        return replace(variant, mechanism=replace(own, multiplier=factor * own.multiplier))

    return faint


@dataclass(frozen=True)
class Unclipped(Clipped):
    """A bound that is taken for true, and changes no residual."""

    def shrink(self, residual: Array, x_norm: Array) -> Array:  # noqa: ARG002
        return residual


def unclipped(variant: Variant) -> Variant:
    """Declare the bound of a clipped gradient, but do not clip the gradient."""
    return replace(variant, bound=Unclipped(variant.bound.norm, variant.bound.bound(np.zeros((0, 1)), np.zeros(0))))


def stuck(variant: Variant) -> Variant:
    """Draw the same noise in every round."""
    return _disguised(lambda inner, key, _t, step, shape: inner.sample(key, 0, step, shape))(variant)


def shared(variant: Variant) -> Variant:
    """Draw the same noise at every agent."""
    return _disguised(lambda inner, key, t, step, shape: inner.sample((key[0], 0), t, step, shape))(variant)


def _disguised(
    draw: Callable[[Mechanism, tuple[int, int], int, int, tuple[int, ...]], Array],
) -> Callable[[Variant], Variant]:
    return lambda variant: replace(variant, mechanism=Disguised(variant.mechanism, draw))


def clean_dual(pair: Neighbours, draws: int) -> Trials:
    """Return trials in which the agent also sends the multiplier of z before the noise: lambda+ is the gradient."""
    question = pair.questions[0]
    centers = [answer(agent, question)[0] for agent in pair.sides]

    def dual(agent: Agent) -> Array:
        quiet = replace(agent, variant=replace(agent.variant, mechanism=Silence()))
        after, _, _ = quiet.respond(question.own, question.msg)
        return np.asarray(ascent(question.own.dual, question.msg.w, after.z, question.msg.rho))

    with_it, without = (np.repeat(along(dual(agent)[None], *centers), draws) for agent in pair.sides)
    return Trials(with_it, without, paired=True)


METHOD_BUDGET = Budget(3.0, 1e-5)


@dataclass(frozen=True)
class ReusedNoise(FedGD):
    """Draw the same noise in every round: the difference of two rounds has none."""

    def answer(self, agents: Task, own: Own, msg: Broadcast) -> tuple[Own, Answers]:
        def first(key: tuple[int, int], _t: int, step: int, shape: tuple[int, ...]) -> Array:
            return agents.normals(key, 1, step, shape)

        return FedGD.answer(self, replace(agents, normals=first), own, msg)


@dataclass(frozen=True)
class UnclippedMethod(FedGD):
    """Add the noise of clipped gradients to gradients that are not clipped."""

    def answer(self, agents: Task, own: Own, msg: Broadcast) -> tuple[Own, Answers]:
        def whole(shards: Sequence[Shard], problem: Problem, points: Array, bound: RecordBound) -> Array:
            return agents.sums(shards, problem, points, Observed(bound.norm))

        return FedGD.answer(self, replace(agents, sums=whole), own, msg)


def broken_method(name: str, about: str, kind: type[FedGD]) -> Entry:
    """Return the entry of a broken fedgd, as a registry would hold it: it promises what the correct one does."""

    def build(facts: Facts, budget: Budget, choice: Choice) -> FedGD:
        return kind(**vars(build_fedgd(facts, budget, choice)))

    return Entry(name, about, build, FEDGD.grid)


METHOD_FAULTS = (
    broken_method("method-reused-noise", "a method: the same noise in every round", ReusedNoise),
    broken_method("method-unclipped", "a method: noise for clipped gradients, which are not clipped", UnclippedMethod),
)


@dataclass(frozen=True)
class Control:
    """A fault in the mechanism of a spec (`break_`), in a secure sum or in a method, or a `leak` beside the release."""

    name: str
    about: str
    break_: Callable[[Variant], Variant] = field(default=lambda variant: variant)
    values: dict[str, Any] = field(default_factory=dict)
    leak: Callable[[Neighbours, int], Trials] | None = None
    draws: int | None = None  # set where the usual number of draws may miss the fault
    fault: Fault | None = None  # of a secure sum, which needs the extra `secure`
    method: Entry | None = None  # a broken method, which is audited as a registered one

    @property
    def spec(self) -> Spec:
        return standard().with_values(self.values)

    def audit(self, draws: int | None = None, seed: int = 0, confidence: float = CONFIDENCE) -> Finding:
        """Test what is broken against the claim of its correct form, by the attacks that every spec or method gets."""
        if self.method is not None:
            found = methods.audit(self.method, METHOD_BUDGET, draws or methods.DRAWS, seed, confidence)
            return replace(found, attack="control", name=self.name)
        if self.fault is not None:
            from tacit.audit import secure_sum

            found = secure_sum.audit(self.spec, draws or self.draws, confidence, self.fault)
            return replace(found, attack="control", name=self.name)
        if self.leak is None:
            found = mechanism.audit(self.spec, draws or self.draws, seed, confidence, self.break_)
            return replace(found, attack="control", name=self.name)
        spec = mechanism.few_rounds(self.spec.checked())
        pair = neighbours(spec)
        claim, let_out = claimed(spec, pair.present.variant, 1), self.leak(pair, draws or DRAWS)
        return weigh("control", self.name, claim, lambda _: let_out, confidence)


_STATIC = {"schedule.rho": "static", "schedule.rho_static": 1.0}  # z has units in which sigma < 1
_LAPLACE = {"privacy.mechanism": "laplace", "privacy.covers": "round"}
_EXACT = {"privacy.noise": "exact"}  # at the default epsilon only the test of the noise scale shows a faint defect
_DEPLOYED = _EXACT | {"privacy.epsilon": 8.0}  # at a larger epsilon an attack needs fewer draws
_SUM = _DEPLOYED | {"privacy.trust": "sum"}

CONTROLS = {
    control.name: control
    for control in (
        Control("halved-noise", "noise of half the calibrated scale", fainter(0.5)),
        Control("faint-noise", "noise of 0.8 of the calibrated scale", fainter(0.8)),
        Control("halved-laplace", "half the Laplace noise under a pure epsilon", fainter(0.5), _LAPLACE),
        Control(
            "halved-laplace-l2",
            "half the Laplace noise that is accounted in l2",
            fainter(0.5),
            {"privacy.mechanism": "laplace"},
        ),
        Control(
            "squared-sigma",
            "sigma^2 handed to a sampler that takes sigma, where sigma < 1",
            lambda variant: replace(variant, perturbation=Output(squared=True)),
            _STATIC,
        ),
        Control("clean-dual", "a noise-free multiplier sent beside the noisy z", leak=clean_dual),
        Control(
            "data-scale",
            "a noise scale read from the private data",
            values=_LAPLACE | {"privacy.sensitivity": "observed", "data.row_norm": "none"},
        ),
        Control("reused-noise", "the same noise in two rounds", stuck),
        Control("shared-stream", "the same noise at two agents", shared),
        Control("deployed-default", "a deployed agent at epsilon 1: noise of 0.8 of the scale", fainter(0.8), _EXACT),
        Control(
            "deployed-laplace",
            "a deployed agent at epsilon 1: half the Laplace noise under a pure epsilon",
            fainter(0.5),
            _EXACT | _LAPLACE,
        ),
        Control(
            "deployed-l2",
            "a deployed agent at epsilon 1: half the Laplace noise that is accounted in l2",
            fainter(0.5),
            _EXACT | {"privacy.mechanism": "laplace"},
        ),
        Control("deployed-faint", "a deployed agent: noise of 0.8 of the calibrated scale", fainter(0.8), _DEPLOYED),
        Control("deployed-silent", "a deployed agent: a thousandth of the noise", fainter(1e-3), _DEPLOYED),
        Control("deployed-unclipped", "a deployed agent: gradients that are not clipped", unclipped, _DEPLOYED),
        Control(
            "deployed-adjacency",
            "a deployed agent: noise for one record absent, where one is replaced",
            lambda variant: replace(variant, adjacency=Adjacency.ZERO_OUT),
            _DEPLOYED | {"privacy.adjacency": "replace_one"},
        ),
        Control(
            "deployed-law",
            "a deployed agent: Gaussian noise of the scale of Laplace noise, under a pure epsilon",
            lambda variant: replace(variant, mechanism=Gaussian(variant.mechanism.multiplier)),  # C bounds l1 and l2
            _DEPLOYED | _LAPLACE | {"privacy.epsilon": 3.0},  # the visible tails of the two laws differ most here
            draws=DRAWS,
        ),
        *(Control(one.name, one.about, method=one) for one in METHOD_FAULTS),
        *(
            Control(name, f"a secure sum: {about}", values=_SUM, fault=fault)
            for name, about, fault in (
                ("halved-shares", "half the noise in every share", Fault(sum_faults.halved)),
                ("missing-share", "an honest agent without noise", Fault(sum_faults.missing)),
                ("same-noise", "noise used again in the next attempt and in the next round", Fault(sum_faults.stale)),
                ("reused-mask", "the same masks in all rounds and attempts", Fault(reused=True)),
                ("wrong-modulus", "masks of 32 bits on shares of more", Fault(mask=sum_faults.narrow)),
                ("unmasked", "an agent that shares masks with colluding agents only", Fault(mask=sum_faults.alone)),
                ("cut-masks", "no masks between two groups of honest agents", Fault(mask=sum_faults.cut)),
            )
        ),
    )
}


def control(name: str) -> Control:
    """Return the control of this name; refuse an unknown name."""
    if name not in CONTROLS:
        raise unknown("control", name, CONTROLS)
    return CONTROLS[name]
