"""Check combinations of choices: refused ones, unstable ones, what a round of one releases, and its agreement."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from tacit.admm.agent import Agent, Variant
from tacit.admm.messages import Order
from tacit.admm.rule import Exact, Objective, Output, Point, Prox, Trust
from tacit.agent.agreement import Agreement, Noise, NoisyQuery
from tacit.errors import IncompatibleError, StabilityWarning, SummableRadiusWarning
from tacit.privacy.exact import Law
from tacit.privacy.mechanism import Gaussian, Laplace, Silence
from tacit.privacy.release import GaussianRelease, LaplaceRelease, Release
from tacit.privacy.summed import InSum
from tacit.problem.bounds import Bounds
from tacit.problem.domain import Box, Domain, Everywhere
from tacit.problem.sensitivity import Declared, Observed
from tacit.query.gradient import Gradient
from tacit.schedule import Schedule
from tacit.types import Norm


def check(variant: Variant, domain: Domain, momentum: float = 0.0) -> None:
    """Refuse a combination of choices that has no meaning or no valid noise, and say which."""
    rule, mechanism, output = variant.rule, variant.mechanism, isinstance(variant.perturbation, Output)
    private = not isinstance(mechanism, Silence)
    if momentum and (isinstance(rule, Exact) or rule.at is not Point.GLOBAL or variant.order is not Order.ZWD):
        raise IncompatibleError(
            "momentum repeats a step of gradient descent, which w takes where z moves first and f_p is linearised at "
            "w: set algorithm.order = zwd and algorithm.linearize_at = w, or algorithm.momentum = 0."
        )
    if private and variant.bound.norm is not mechanism.norm:
        raise IncompatibleError(
            f"{_name(mechanism)} noise needs a sensitivity in {mechanism.norm.value}, and the bound is in "
            f"{variant.bound.norm.value}: bound the records in {mechanism.norm.value}."
        )
    if private and isinstance(rule, Exact):
        raise IncompatibleError(
            "noise in an exact ADMM step needs the sensitivity of a minimiser, not of a gradient: "
            "use the prox or the trust rule, or the silence mechanism."
        )
    if output and isinstance(rule, Trust) and not isinstance(domain, Everywhere):
        raise IncompatibleError(
            f"output noise can leave the {_name(domain)}, and a trust region around a point outside W may "
            "miss W: use objective perturbation, the prox rule, or the domain everywhere."
        )
    boxes = isinstance(domain, Everywhere | Box | Bounds) and not (isinstance(rule, Trust) and rule.norm is Norm.L2)
    if output and isinstance(mechanism, Laplace) and not boxes:
        raise IncompatibleError(
            "projection onto a Euclidean ball, or onto any set but a box, can lengthen a step in l1, so Laplace output "
            "noise would be too small: use Gaussian noise, objective perturbation, or a box."
        )


def fades(variant: Variant) -> bool:
    """Tell whether the last noisy gradient of a missing agent can stand for a new one: both are at w."""
    rule = variant.rule
    return variant.order is Order.ZWD and not isinstance(rule, Exact) and rule.at is Point.GLOBAL


def warn(agents: Sequence[Agent], rho: Schedule, rounds: int) -> None:
    """Warn of trust radii with a small sum, and of a penalty that may let agents diverge."""
    rule = agents[0].variant.rule
    if isinstance(rule, Trust) and rule.radius.summable:
        travel = sum(rule.radius(t) for t in range(1, min(rounds, 10_000) + 1))
        warnings.warn(
            f"the trust radii are summable: no coordinate can move further than {travel:.3g} in the whole run, and "
            "training freezes. Use a constant radius (schedule.radius = 'constant').",
            SummableRadiusWarning,
            stacklevel=3,
        )
    silent = agents[0].variant.bound.public  # the curvature of private data is not ours to print beside a guarantee
    smooth = agents[0].problem.smooth  # with kinks there is no L_p to compare with
    if isinstance(rule, Trust) and rule.at is Point.LOCAL and len(agents) > 1 and smooth and not silent:
        need = 2 * _smoothness(agents, enough=rho(1) / 2)
        if rho(1) < need:
            warnings.warn(
                f"rho = {rho(1):.4g} is below 2 max_p L_p = {need:.4g}: where the trust region does not bind, agents "
                "with different data may diverge. Raise rho, or linearise at w.",
                StabilityWarning,
                stacklevel=3,
            )


def caveats(variant: Variant) -> list[str]:
    """Why the per-round epsilon of this variant is not a guarantee; empty when it is one."""
    if isinstance(variant.mechanism, Silence):
        return ["no noise is added."]
    reasons = []
    if isinstance(variant.bound, Observed):
        reasons.append("the noise scale is read from the private data (sensitivity 'observed').")
    elif not variant.bound.public:
        reasons.append("the number of records stands in for the bound of a gradient (sensitivity 'record_count').")
    if isinstance(variant.perturbation, Output) and variant.perturbation.squared:
        reasons.append("the Gaussian standard deviation is sigma^2 in place of sigma (privacy.squared_std).")
    return reasons


def release(variant: Variant) -> Release | None:
    """The noisy gradient of one round, as a release; None where it has no guarantee (`caveats` says why).

    Everything an agent sends is a public function of this gradient and of earlier releases, so W, the trust region,
    the penalty and the order of updates cost nothing.
    """
    squared = isinstance(variant.perturbation, Output) and variant.perturbation.squared
    if not variant.bound.public or squared or isinstance(variant.rule, Exact):
        return None
    mechanism, bound = variant.mechanism, variant.bound
    if isinstance(mechanism, Gaussian):
        return GaussianRelease(mechanism.multiplier)
    if not isinstance(mechanism, Laplace):
        return None
    if mechanism.norm is Norm.L2:
        return LaplaceRelease(float("inf"), 1 / mechanism.multiplier)
    ratio = bound.euclidean / bound.value if isinstance(bound, Declared) else 1.0
    return LaplaceRelease(1 / mechanism.multiplier, min(ratio, 1.0) / mechanism.multiplier)


def agreement_of(
    agent: Agent, shape: tuple[int, int], rounds: int, most_records: int, in_sum: InSum | None
) -> Agreement:
    """Return the agreement of a run: each round asks the agent for its gradient at z_p or at w, with noise.

    Refuse a variant whose noise is not on a gradient.
    """
    variant, problem = agent.variant, agent.problem
    if isinstance(variant.mechanism, Silence):
        raise IncompatibleError(
            "without noise there is nothing to deploy: give a finite epsilon, or use a method that adds noise."
        )
    if release(variant) is None:
        raise IncompatibleError(
            "exact noise needs a public bound and a linearised step: use the sound preset, or sensitivity clip."
        )
    on_step = isinstance(variant.perturbation, Output)
    if on_step and not (isinstance(variant.rule, Prox) and isinstance(problem.domain, Everywhere)):
        raise IncompatibleError(
            "exact noise is added to gradients. Noise on a step is that only for proximal steps that no set W stops: "
            "use perturbation = objective, or the prox rule with the domain everywhere."
        )
    assert on_step or isinstance(variant.perturbation, Objective)
    shared = isinstance(variant.rule, Prox | Trust) and variant.rule.at is Point.GLOBAL
    query = Gradient(shape, problem.loss, variant.bound, problem.weight, shared)
    law = Law.LAPLACE if isinstance(variant.mechanism, Laplace) else Law.GAUSSIAN
    noise = Noise(law, variant.mechanism.norm, variant.mechanism.multiplier)
    return Agreement((NoisyQuery(query, noise, rounds),), variant.adjacency, most_records, in_sum)


def _smoothness(agents: Sequence[Agent], enough: float) -> float:
    """max_p L_p; the cheap bound of an agent spares the exact one where it is below `enough`."""
    largest = 0.0
    for agent in agents:
        if agent.problem.smoothness_at_most(agent.shard) > max(enough, largest):
            largest = max(largest, agent.problem.smoothness(agent.shard))
    return largest


def _name(value: object) -> str:
    return type(value).__name__.lower()
