"""The agreement of an ADMM run: each round asks every agent for its gradient at z_p or at w, with noise."""

from __future__ import annotations

from tacit.admm.agent import Agent
from tacit.admm.compatible import release
from tacit.admm.rule import Objective, Output, Point, Prox, Trust
from tacit.agent.agreement import Agreement, Noise, NoisyQuery
from tacit.errors import IncompatibleError
from tacit.privacy.exact import Law
from tacit.privacy.mechanism import Laplace, Silence
from tacit.privacy.summed import InSum
from tacit.problem.domain import Everywhere
from tacit.query.gradient import Gradient


def agreement_of(
    agent: Agent, shape: tuple[int, int], rounds: int, most_records: int, in_sum: InSum | None
) -> Agreement:
    """Return what an agent of the ADMM family may be asked; refuse a variant whose noise is not on a gradient."""
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
