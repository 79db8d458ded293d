"""Compose the ADMM family from a spec: only here names of rules, noise, bounds and schedules become values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from tacit.admm import compatible
from tacit.admm.agent import Agent, Variant
from tacit.admm.algorithm import Consensus
from tacit.admm.compatible import agreement_of, release
from tacit.admm.local_models import LocalModels
from tacit.admm.messages import Order
from tacit.admm.rule import Exact, Objective, Output, Perturbation, Point, Prox, Rule, Trust
from tacit.agent.agreement import DELTA_FOR_THE_GRID, Agreement
from tacit.engine.registry import require
from tacit.errors import IncompatibleError
from tacit.methods.promise import Promise, Trusted, Unit, behind_sum
from tacit.methods.registry import METHODS
from tacit.privacy.budget import calibrate
from tacit.privacy.mechanism import Gaussian, Laplace, Mechanism, Silence
from tacit.privacy.release import GaussianRelease, LaplaceRelease, Release
from tacit.privacy.summed import InSum, releases
from tacit.problem.loss import Loss
from tacit.problem.objective import Problem
from tacit.problem.sensitivity import (
    Adjacency,
    Clipped,
    Declared,
    Observed,
    RecordBound,
    from_feature_bounds,
    from_row_norm,
    from_row_norms,
)
from tacit.run import rules
from tacit.run.deployment import Deployment
from tacit.run.in_sum import check as check_sum
from tacit.run.sections import ScheduleSpec
from tacit.run.setup import Setup
from tacit.run.spec import Spec
from tacit.schedule import (
    LARGEST_STEP,
    RADII,
    Constant,
    Cooling,
    HuangStep,
    Power,
    Scaled,
    Schedule,
    Staircase,
    cooled_step,
)
from tacit.types import Federation, Norm, Shard


def asked_of(
    agents: Sequence[Agent], shape: tuple[int, int], rounds: int, in_sum: InSum | None = None
) -> Deployment:
    """Return what agents of the ADMM family are asked if they are deployed; refuse variants without such a query."""
    records = tuple(len(agent.shard) for agent in agents)
    agreements: list[Agreement] = []
    for agent in agents:
        own = agreement_of(agent, shape, rounds, max(records), in_sum)
        agreements.append(agreements[-1] if agreements and own == agreements[-1] else own)  # most agents share one
    rows, n_agents = agents if in_sum is None else agents[:1], len(agents)

    def program(fades: bool) -> LocalModels:
        return LocalModels(rows, shape, n_agents, fades)

    return Deployment(tuple(agreements), records, shape, program, compatible.fades(rows[0].variant))


def composed(spec: Spec, federation: Federation, problem: Problem) -> Setup:
    """Return the setup of a run of the ADMM family; refuse choices that cannot go together, or not on this machine."""
    if spec.in_sum is not None:
        check_sum(spec, federation)
    require(spec.run.engine, spec.run.device)
    spec = _settled(spec, federation)
    agents = tuple(_agent(spec, federation, problem, shard, p) for p, shard in enumerate(federation.shards))
    momentum = spec.algorithm.momentum or 0.0
    compatible.check(agents[0].variant, problem.domain, momentum)
    shape = (federation.n_features, federation.n_classes)
    rho = _rho(spec, federation, agents)
    server = Consensus(spec.run.rounds, shape, rho, Order(spec.algorithm.order), momentum, problem.domain)

    def asked() -> Deployment:
        return asked_of(agents, shape, spec.run.rounds, spec.in_sum)

    return Setup(
        server, _promise(agents, spec.in_sum), problem, shape, federation.public_classes, asked, spec.in_sum, agents
    )


def _promise(agents: Sequence[Agent], in_sum: InSum | None) -> Promise:
    """Return what a round of the agent with the least noise promises."""
    own = min((agent.variant for agent in agents), key=lambda variant: variant.mechanism.multiplier)
    one = release(own)
    unit = Unit.RECORD if own.adjacency is Adjacency.ZERO_OUT else Unit.REPLACED
    events = () if one is None else ((one, 1),)
    promise = Promise(unit, Trusted.NOBODY, events, caveats=tuple(compatible.caveats(own)))
    return promise if in_sum is None else behind_sum(promise, in_sum, len(agents))


def _agent(spec: Spec, federation: Federation, problem: Problem, shard: Shard, p: int) -> Agent:
    a = spec.algorithm
    if a.gradient_weight == "local":
        problem = problem.locally_weighted(shard)
    mechanism = _mechanism(spec)
    norm = Norm.L2 if spec.privacy.mechanism == "gaussian" or spec.privacy.covers == "run" else Norm.L1
    bound = _bound(spec, federation, problem.loss, norm, shard)
    adjacency = Adjacency[spec.privacy.adjacency.upper()]
    calibration = mechanism.multiplier * problem.weight * adjacency.value
    variant = Variant(
        rule=_rule(spec, problem, shard, bound, calibration, federation.n_features * federation.n_classes),
        perturbation=_perturbation(spec),
        mechanism=mechanism,
        bound=bound,
        adjacency=adjacency,
        order=Order(a.order),
        regularize_global=a.regularize_at == "w",
    )
    return Agent(shard, problem, variant, key=None if spec.run.seed is None else (spec.run.seed, p))


def _mechanism(spec: Spec) -> Mechanism:
    p, perturbation = spec.privacy, spec.algorithm.perturbation
    if perturbation == "none" and not math.isinf(p.epsilon):
        raise IncompatibleError(
            f"{spec.algorithm.name} adds no noise, so epsilon = {p.epsilon:g} cannot hold: "
            "drop epsilon, or choose objp, objt or outp."
        )
    if p.mechanism == "silence" and not math.isinf(p.epsilon):
        raise IncompatibleError(f"the silence mechanism gives no epsilon, and epsilon = {p.epsilon:g} was asked for.")
    if math.isinf(p.epsilon):
        return Silence()
    if p.covers == "run":
        return _calibrated(spec)
    return Laplace.pure(p.epsilon) if p.mechanism == "laplace" else Gaussian.classic(p.epsilon, p.dp_delta)


@lru_cache(maxsize=256)
def _calibrate(release: Release, epsilon: float, dp_delta: float, rounds: int) -> Release:
    return calibrate(release, epsilon, dp_delta, rounds)


def accounted_delta(spec: Spec) -> float:
    """Return dp_delta less the share that discrete noise may add to the delta of continuous noise."""
    discrete = spec.privacy.noise == "exact" or spec.in_sum is not None  # a sum is of integers, simulated or not
    return kept_delta(spec.privacy.dp_delta, discrete)


def kept_delta(dp_delta: float, discrete: bool) -> float:
    """Return what is left of a delta for continuous noise."""
    return dp_delta * (1 - DELTA_FOR_THE_GRID) if discrete else dp_delta


def _calibrated(spec: Spec) -> Mechanism:
    """Return the least noise with which all rounds together meet epsilon; Laplace noise is accounted in l2."""
    p, behind = spec.privacy, spec.in_sum
    if p.mechanism == "gaussian":
        count = releases(spec.run.rounds, behind.repetitions) if behind else spec.run.rounds
        found = _calibrate(GaussianRelease(1.0), p.epsilon, accounted_delta(spec), count)
        assert isinstance(found, GaussianRelease)
        return Gaussian(found.multiplier)
    found = _calibrate(LaplaceRelease(math.inf, 1.0), p.epsilon, accounted_delta(spec), spec.run.rounds)
    assert isinstance(found, LaplaceRelease)
    assert found.l2 is not None
    return Laplace(1 / found.l2, Norm.L2)


def _bound(spec: Spec, federation: Federation, loss: Loss, norm: Norm, shard: Shard) -> RecordBound:
    d, p = spec.data, spec.privacy
    if p.sensitivity == "observed":
        return Observed(norm)
    if p.sensitivity == "clip":
        assert p.clip is not None, "a settled spec has a clip"
        return Clipped(norm, p.clip)
    if p.sensitivity == "record_count":  # released OutP: c1 is the number of records
        return Declared(norm, float(len(shard)), public=False)
    if p.sensitivity == "row_norm":
        if d.row_norm != norm.value:
            raise IncompatibleError(
                f"{p.mechanism} noise needs rows bounded in {norm.value}: set data.row_norm = {norm.value} "
                "and data.row_bound."
            )
        return from_row_norm(norm, d.row_bound, loss)
    if federation.bounds is None:
        raise IncompatibleError(
            f"{federation.name} declares no feature bounds: use privacy.sensitivity = clip, or row_norm with "
            "data.row_norm."
        )
    if federation.longest is not None:
        return from_row_norms(norm, *federation.longest, loss)
    return from_feature_bounds(norm, federation.bounds, federation.n_features, loss)


def _settled(spec: Spec, federation: Federation) -> Spec:
    """Return the spec with what it leaves open taken from public numbers, once for all agents."""
    a, open_keys = spec.algorithm, {}
    if a.momentum is None:
        descends = (a.order, a.linearize_at) == ("zwd", "w") and a.rule != "exact"
        open_keys["algorithm.momentum"] = rules.momentum(federation, spec.run.rounds) if descends else 0.0
    if spec.schedule.score_noise is None:
        open_keys["schedule.score_noise"] = rules.score_noise(federation)
    if spec.privacy.clip is None:
        open_keys["privacy.clip"] = _clip(spec, federation)
    return spec.with_values(open_keys)


def _clip(spec: Spec, federation: Federation) -> float:
    """Return the clipping norm that public numbers give."""
    return rules.clip(_noise(spec, federation), federation)


def federated_rounds(spec: Spec, federation: Federation) -> int:
    """Return the rounds that public numbers give to a run whose rounds take seconds, before its first round.

    A method whose choices name no rounds has those of its preset.
    """
    if "rounds" not in METHODS[spec.algorithm.name].grid[0]:
        return spec.run.rounds
    return rules.federated_rounds(_noise(spec, federation), federation)


def _noise(spec: Spec, federation: Federation) -> float:
    """Return the std of noise in a mean gradient, for a clip of one and all the budget in one release."""
    if math.isinf(spec.privacy.epsilon):
        return 0.0
    whole = _calibrate(GaussianRelease(1.0), spec.privacy.epsilon, accounted_delta(spec), 1)
    assert isinstance(whole, GaussianRelease)
    noises = spec.in_sum.whole_noises(federation.n_agents) if spec.in_sum else federation.n_agents
    return whole.multiplier * math.sqrt(noises) / federation.n_records


def _rule(
    spec: Spec, problem: Problem, shard: Shard, bound: RecordBound, calibration: float, dimension: int
) -> Rule:
    a, s = spec.algorithm, spec.schedule
    if a.rule == "exact":
        if a.linearize_at == "w":
            raise IncompatibleError("an exact step does not linearise: drop algorithm.linearize_at = w.")
        if not problem.smooth:
            raise IncompatibleError(
                "an exact step is solved by gradients that change at a bounded rate, and this loss or regulariser has "
                "kinks: use algorithm.rule = prox or trust, or another problem.loss and regularizer."
            )
        convexity = problem.regularization * problem.regularizer.convexity
        return Exact(problem.smoothness(shard), convexity, a.tolerance)
    at = Point(a.linearize_at)
    if a.rule == "trust":
        return Trust(Power(s.radius_a, RADII[s.radius]), Norm(a.trust_norm), at)
    if s.eta == "power":
        return Prox(Power(s.eta_a, -0.5), at)
    if s.eta == "constant":
        return Prox(Constant(s.eta_a), at)
    return Prox(Scaled(s.eta_a, _huang(s, problem, shard, bound, calibration, dimension)), at)


def _huang(
    s: ScheduleSpec, problem: Problem, shard: Shard, bound: RecordBound, calibration: float, dimension: int
) -> HuangStep:
    if not isinstance(bound, Declared):
        raise IncompatibleError(
            "Huang's step needs a declared bound: use privacy.sensitivity = feature_bounds or row_norm."
        )
    if not problem.smooth:
        raise IncompatibleError(
            "Huang's step needs a bound on the curvature, and this loss or regulariser has kinks: set schedule.eta to "
            "power or constant."
        )
    noise = calibration * bound.value
    if s.eta == "huang_released":  # c3 = I_p / 4 and c_w = sqrt(4 J K)
        return HuangStep(len(shard) / 4, dimension, noise, math.sqrt(4 * dimension))
    if math.isinf(bound.row_norm):
        raise IncompatibleError("Huang's step needs a bound on |x|: use sensitivity feature_bounds or row_norm.")
    curvature = problem.loss.curvature * bound.row_norm**2  # c3, from the largest record there can be
    smoothness = problem.weight * len(shard) * curvature + problem.regular_curvature
    return HuangStep(smoothness, dimension, noise, s.c_w)


def _perturbation(spec: Spec) -> Perturbation:
    output = spec.algorithm.perturbation == "output"
    return Output(spec.privacy.squared_std) if output else Objective()


def total_noise(agents: Sequence[Agent], behind: InSum | None) -> float:
    """Return the std of the noise in a sum over these agents: that of each, or that of one, shared out behind a sum."""
    scales = [agent.calibration * agent.constant_bound for agent in agents]
    if behind is not None:
        return max(scales) * math.sqrt(behind.whole_noises(len(agents)))
    laplace = bool(agents) and isinstance(agents[0].variant.mechanism, Laplace)
    return (math.sqrt(2) if laplace else 1.0) * math.sqrt(sum(scale**2 for scale in scales))  # std over scale


def _step(spec: Spec, federation: Federation, agents: Sequence[Agent]) -> float:
    """Return the first step on sum_p f_p from score_noise: w gathers the sum of the agents' noise."""
    std = total_noise([agent for agent in agents if agent.variant.bound.public], spec.in_sum)
    score_noise, momentum, most = spec.schedule.score_noise, spec.algorithm.momentum, LARGEST_STEP
    assert score_noise is not None, "a settled spec has one"
    assert momentum is not None, "a settled spec has one"
    if spec.data.row_norm == "l2":
        most = rules.longest_step(federation, agents[0].problem, spec.data.row_bound, momentum, spec.run.rounds)
    return cooled_step(score_noise, std, spec.run.rounds, most)


def _rho(spec: Spec, federation: Federation, agents: Sequence[Agent]) -> Schedule:
    s = spec.schedule
    if s.rho == "static":
        return Scaled(s.rho_factor, Constant(s.rho_static))
    if s.rho == "root":
        return Scaled(s.rho_factor, Power(s.rho_static, 0.5))
    if s.rho == "cooling":
        step = s.step or _step(spec, federation, agents)
        first = (1 - (spec.algorithm.momentum or 0.0)) * step  # moves that are repeated add up to the whole step
        return Scaled(s.rho_factor, Cooling(1 / (len(agents) * first), spec.run.rounds))
    return Scaled(s.rho_factor, Staircase(s.rho_c1, s.rho_c2, s.rho_period, spec.privacy.epsilon))
