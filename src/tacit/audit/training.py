"""The training audit includes each canary of one whole run by a coin, and guesses the coins from the releases.

Every canary has a feature that no other record has. In a round its noisy gradient is a separate row, so one run is as
many independent trials as there are canaries; the log-likelihood ratios of the row of a canary add up over the rounds,
which tests the composition as well as the mechanism (Steinke, Nasr & Jagielski 2023, in the white box).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tacit.admm.agent import Agent, Variant
from tacit.audit.answering import Seen, observe, thin
from tacit.audit.finding import CONFIDENCE, FACTORS, Finding, Trials, claimed, weigh
from tacit.audit.mechanism import name_of
from tacit.audit.neighbours import score_of
from tacit.audit.noise import Noise
from tacit.errors import IncompatibleError
from tacit.run import build
from tacit.run.spec import Spec
from tacit.types import Array, Federation, Shard

CANARIES, RECORDS = 4000, 1000


@dataclass(frozen=True, eq=False)
class Canaries:
    """The canaries of one agent: canary i has the value `size` on feature `first + i`, and the label y_i.

    A coin includes canary i; else canary i is left out or, under replace-one, has the label `other_i`.
    """

    first: int
    size: float
    y: Array
    other: Array | None
    included: Array

    def rows(self, u: Array) -> Array:
        """Return the rows of a (J, K) array that belong to the canaries' features."""
        return u[self.first : self.first + len(self.y)]


def audit(
    spec: Spec,
    federation: Federation | None = None,
    canaries: int = CANARIES,
    records: int = RECORDS,
    seed: int = 0,
    confidence: float = CONFIDENCE,
    break_: Callable[[Variant], Variant] = lambda variant: variant,
) -> Finding:
    """Test a run of the spec, over its thinned data and canaries, against the claim for the whole run.

    The noise of a run is measured but not tested: W or a trust region may hide some of the noise.
    A control changes the variant by `break_`, not the claim.
    """
    if spec.privacy.trust == "sum":
        raise IncompatibleError("no agent of a secure sum shows a run of its own: attack one attempt, the mechanism.")
    spec = spec.checked()
    base = thin(build.federation(spec) if federation is None else federation, records)
    padded, planted = _plant(spec, base, canaries, np.random.default_rng(seed))
    setup = build.admm_setup(spec, padded)
    variant = setup.agents[0].variant
    claim = claimed(spec, variant, spec.run.rounds)
    agents = [_tossed(agent, own, break_) for agent, own in zip(setup.agents, planted, strict=True)]
    factors = (*FACTORS, 1.0)
    scores = [np.zeros((len(factors), len(own.y))) for own in planted]
    drawn = Noise.of(variant.mechanism, np.zeros(0), hidden=True)
    for seen in observe(spec, setup, agents):
        for p, (one, own) in enumerate(zip(seen, planted, strict=True)):
            evidence, noise = _evidence(one, own, variant, factors)
            scores[p] += evidence
            drawn += Noise.of(variant.mechanism, noise)
    by_factor = dict(zip(factors, np.concatenate(scores, axis=1), strict=True))
    included = np.concatenate([own.included for own in planted])
    name = f"{spec.run.rounds} rounds, {name_of(spec)}"

    def trials(factor: float) -> Trials:
        return Trials.of_one_run(by_factor[factor], included)

    return weigh("run", name, claim, trials, confidence, noise=drawn)


def _plant(
    spec: Spec, base: Federation, canaries: int, rng: np.random.Generator
) -> tuple[Federation, list[Canaries]]:
    """Add all canaries to the federation, after the records of each agent; the number of records is public."""
    each, old = -(-canaries // base.n_agents), base.n_features
    width, shards, planted = old + each * base.n_agents, [], []
    size = _longest(spec, base)
    for p, shard in enumerate(base.shards):
        y, changed = _labels(base, each, rng)
        other = changed if spec.privacy.adjacency == "replace_one" else None
        own = Canaries(old + each * p, size, y, other, rng.random(each) < 0.5)
        x = np.zeros((len(shard) + each, width), np.float32)
        x[: len(shard), :old] = shard.x
        x[np.arange(len(shard), len(x)), np.arange(own.first, own.first + each)] = size
        shards.append(Shard(x, np.concatenate([shard.y, own.y])))
        planted.append(own)
    empty = Shard(np.zeros((0, width)), np.zeros(0, dtype=np.int64))
    return replace(base, shards=tuple(shards), test=empty, features=()), planted


def _labels(base: Federation, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return labels of canaries, and others in their place: classes, or the two ends of a number's range."""
    if base.target is None:
        y = rng.integers(base.n_classes, size=n)
        return y, (y + 1) % base.n_classes
    end = rng.choice([-1.0, 1.0], size=n)
    return end, -end


def _longest(spec: Spec, base: Federation) -> float:
    """Return the largest value of a record with one feature that the spec allows."""
    if spec.data.row_norm != "none":
        return spec.data.row_bound * (1 - 1e-6)
    return max(map(abs, base.bounds)) if base.bounds else max(1.0, spec.privacy.clip or 1.0)


def _tossed(agent: Agent, own: Canaries, break_: Callable[[Variant], Variant]) -> Agent:
    """Return the agent with its canaries as the coins decided, and with the variant changed by `break_`."""
    x, y, n = agent.shard.x, agent.shard.y, len(agent.shard) - len(own.y)
    if own.other is None:
        there = np.concatenate([np.ones(n, bool), own.included])
        shard = Shard(x[there], y[there])
    else:
        shard = Shard(x, np.concatenate([y[:n], np.where(own.included, own.y, own.other)]))
    return replace(agent, shard=shard, variant=break_(agent.variant))


def _evidence(seen: Seen, own: Canaries, variant: Variant, factors: Sequence[float]) -> tuple[Array, Array]:
    """Return ln p(row | in) - ln p(row | out) of each canary in one round, with each factor of its noise, (factors, n).

    Return also the noise, (n, K), in units of the scale that the unbroken `variant` has.
    """
    agent, problem, bound = seen.agent, seen.agent.problem, variant.bound
    score, x_norm = own.size * own.rows(seen.point), np.full(len(own.y), own.size)

    def gradient(y: Array) -> Array:
        return problem.weight * own.size * bound.shrink(problem.loss.residual(score, y), x_norm)

    empty = own.rows(agent.regular_slope(seen.point, seen.msg.w))
    absent = empty if own.other is None else empty + gradient(own.other)
    present = empty + gradient(own.y)
    largest = bound.bound(problem.loss.residual(score, own.y), x_norm)
    stiffness = variant.rule.stiffness(seen.msg.rho, seen.msg.t)
    scale, promised = (
        variant.perturbation.scale(calibration * largest, stiffness)
        for calibration in (agent.calibration, replace(agent, variant=variant).calibration)
    )
    center = np.where(own.included[:, None], present, absent)
    noise, ratio = own.rows(seen.gradient) - center, score_of(variant)
    scores = [ratio(center + f * noise, (present, absent), (scale, scale)) for f in factors]
    return np.stack(scores), noise / promised
