"""The guarantee of a run as a value, built from its spec and setup, and all that result.json says about privacy."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import Any

from tacit.admm.compatible import release
from tacit.admm.rule import Objective, Output
from tacit.data.sources import NAMED
from tacit.errors import LargeDeltaWarning, NotPrivateWarning
from tacit.methods.promise import Promise, Unit
from tacit.privacy import exclusions
from tacit.privacy.budget import Total, best_guess, revealed, total
from tacit.privacy.exclusions import Exclusion
from tacit.privacy.guarantee import FIELDS, Answers, Guarantee, Ledgers, NoiseSource, described
from tacit.privacy.release import described as described_releases
from tacit.problem.sensitivity import Clipped
from tacit.run.compose import accounted_delta
from tacit.run.noise import deployable, measures_training
from tacit.run.setup import Setup
from tacit.run.sources import how_to_declare
from tacit.run.spec import Spec
from tacit.types import Federation

TRAINING_WARNING = (
    "this run records its training objective without noise (run.measure_training). With the model, that number tells "
    "whether a given record was used. Keep result.json, rounds.jsonl and report.html with the owners of the records."
)
HOW_TO_BE_PRIVATE = "For a guarantee: --preset sound --algorithm objt (or objp, outp), with a finite --epsilon."
UNBOUNDED = "no bound on its releases holds."


def stated(spec: Spec, setup: Setup, ledgers: Ledgers = Ledgers.NONE) -> dict[str, Any]:
    """Return all that result.json says about privacy."""
    p, promise, spent = spec.privacy, setup.promise, spent_by(spec, setup)
    noisy, kept = not math.isinf(p.epsilon), accounted_delta(spec)
    found = _of(spec, setup, spent, ledgers)
    dp_delta = _delta(spec, promise, spent) if noisy else None
    return {
        "guarantee": found.sentence,
        "epsilon": found.epsilon,
        "epsilon_per_round": _per_round(spec, promise) if noisy else None,
        "dp_delta": dp_delta,
        "best_guess": None if spent is None else best_guess(spent, dp_delta or 0.0, p.dp_delta - kept),
        "accountant": found.accountant,
        "releases": None if spent is None else described_releases(promise.each_round, promise.once),
        "accounted_delta": None if spent is None else kept,
        "adjacency": found.unit.adjacency,
        "trust": found.trust if found.private else None,
        "covers": found.covers if found.private else None,
        "not_covered": found.exclusions if found.private else None,
        "noise": found.noise.value if noisy else None,
        "simulated_noise": found.simulated,
        FIELDS: described(found),
    }


def of(spec: Spec, setup: Setup, ledgers: Ledgers = Ledgers.NONE) -> Guarantee:
    """Return the guarantee of a run, or the reasons why the run has none."""
    return _of(spec, setup, spent_by(spec, setup), ledgers)


def _of(spec: Spec, setup: Setup, spent: Total | None, ledgers: Ledgers) -> Guarantee:
    p, promise = spec.privacy, setup.promise
    source = NoiseSource.EXACT if p.noise == "exact" else NoiseSource.SIMULATED
    own_map = spec.features.map if ":" in spec.features.map else None
    return Guarantee(
        epsilon=None if spent is None else spent.epsilon,
        dp_delta=None if spent is None else delta_of(spent, promise, spec.run.rounds),
        allowed_delta=None if spent is None else spent.dp_delta,
        accountant=None if spent is None else spent.name,
        unit=promise.unit,
        rounds=spec.run.rounds,
        each_round=() if spent is None else promise.each_round,
        once=() if spent is None else promise.once,
        trusted=promise.trusted,
        coalition=promise.coalition,
        answers=Answers.STEPS if setup.agents else Answers.MESSAGES,
        noise=NoiseSource.NONE if math.isinf(p.epsilon) else source,
        ledgers=ledgers,
        own_map=own_map,
        not_covered=() if spent is None else _not_covered(spec, setup, ledgers),
        reasons=() if spent is not None else (*(reasons(spec, setup) or [UNBOUNDED]),),
        claim=_claim(spec, setup) if spent is None else None,
    )


def _not_covered(spec: Spec, setup: Setup, ledgers: Ledgers) -> tuple[Exclusion, ...]:
    """Return what the guarantee does not cover."""
    seed = Exclusion.SEED if deployable(spec) else Exclusion.SEED_OF_SIMULATION
    files = () if spec.data.schema or spec.data.source in NAMED else (Exclusion.UNREADABLE_FILES,)
    return (
        *(() if spec.privacy.noise == "exact" else (seed,)),
        *((Exclusion.OWN_MAP,) if ":" in spec.features.map else ()),
        Exclusion.TEST_RESULTS,
        *((Exclusion.TRAINING_OBJECTIVE,) if measures_training(spec) else ()),
        *exclusions.ALWAYS,
        *((Exclusion.UNREADABLE_AT_SITES,) if ledgers is Ledgers.ELSEWHERE else files),
        *(exclusions.OF_A_CLIENT if setup.promise.unit is Unit.CLIENT else exclusions.OF_A_RECORD),
    )


def spent_by(spec: Spec, setup: Setup) -> Total | None:
    """Return the total of the agent that releases most; None if the run has no guarantee."""
    found = None if reasons(spec, setup) else setup.promise.total(spec.run.rounds, accounted_delta(spec))
    return None if found is None or not found.bounds else replace(found, dp_delta=spec.privacy.dp_delta)


def reasons(spec: Spec, setup: Setup) -> list[str]:
    """Return the reasons why this run has no guarantee; an empty list if it has one."""
    found = against(setup.promise)
    if not setup.public_classes and not math.isinf(spec.privacy.epsilon):
        found.append(classes_read(spec, number=setup.shape[1] == 1))
    return found


def against(promise: Promise) -> list[str]:
    """Return the reasons why a promise is no guarantee; an empty list if it is one."""
    return list(promise.caveats) or ([] if promise.events(1) else ["it declares no release."])


def classes_read(spec: Spec, number: bool = False) -> str:
    """Return the reason why a run has no guarantee whose classes, or the range of whose number, nobody declared."""
    if number:
        return "the range of the target was read from the private labels (declare it: target_bounds of the estimator)."
    how = how_to_declare(spec.data.source)
    return f"the list of classes was read from the private labels (declare it: {how})."


def as_if_public(spec: Spec, setup: Setup) -> Total | None:
    """Return the guarantee that the run would have if the bound that it read from the data were public.

    None without noise, and None for the noise of the released OutP, whose scale belongs to no epsilon.
    """
    variant = setup.agents[0].variant
    if isinstance(variant.perturbation, Output) and variant.perturbation.squared:
        return None
    constant = replace(variant, bound=Clipped(variant.mechanism.norm, 1.0), perturbation=Objective())
    one = release(constant)
    return None if one is None else total([(one, spec.run.rounds)], spec.privacy.dp_delta)


def _claim(spec: Spec, setup: Setup) -> str | None:
    """Return what the paper states about a run whose epsilon covers one round."""
    if spec.privacy.covers == "run" or not setup.agents:
        return None
    worth = as_if_public(spec, setup)
    return None if worth is None else (
        f"The paper states epsilon {spec.privacy.epsilon:g} a round; were the largest gradient among its records a "
        f"public bound, the run would be ({worth.epsilon:.4g}, {worth.dp_delta:g})-DP."
    )


def delta_of(spent: Total, promise: Promise, rounds: int) -> float:
    """Return the delta of a total: epsilons that are added up hold at the sum of the deltas of the releases."""
    return revealed(promise.events(rounds)) if spent.name == "basic" else spent.dp_delta


def _delta(spec: Spec, promise: Promise, spent: Total | None) -> float:
    """Return the delta of the stated epsilon; 0 for the paper's pure epsilon a round, which has no total."""
    if spent is not None:
        return delta_of(spent, promise, spec.run.rounds)
    return 0.0 if spec.privacy.mechanism == "laplace" else spec.privacy.dp_delta


def _per_round(spec: Spec, promise: Promise) -> float | None:
    """Return the paper's epsilon where epsilon covers one round, else the exact epsilon of one round at dp_delta."""
    if spec.privacy.covers == "round":
        return spec.privacy.epsilon
    events = list(promise.each_round)
    return total(events, spec.privacy.dp_delta, pld=False).epsilon if events else None


def warn(spec: Spec, federation: Federation, setup: Setup) -> None:
    """Warn why the run will not be private and what to do, or that its delta is too large to mean much."""
    found = reasons(spec, setup)
    if found:
        advice = [HOW_TO_BE_PRIVATE] if setup.promise.caveats else []  # else the reason itself says what to do
        warnings.warn(" ".join(["not private:", *found, *advice]), NotPrivateWarning, stacklevel=3)
        return
    if spec.privacy.noise == "exact" and measures_training(spec):
        warnings.warn(TRAINING_WARNING, NotPrivateWarning, stacklevel=3)
    client = setup.promise.unit is Unit.CLIENT
    units = federation.n_agents if client else federation.n_records
    each = f"P = {units} agents" if client else f"I = {units} training records"
    if spec.privacy.dp_delta >= 1 / units:  # the same makes protection weak (tacit.privacy.risk)
        warnings.warn(
            f"delta = {spec.privacy.dp_delta:g} is not below 1/{each[0]} = {1 / units:.3g}: it allows a mechanism that "
            f"publishes each of the {each} whole with probability delta. Use --dp-delta {0.1 / units:.1g} or less.",
            LargeDeltaWarning,
            stacklevel=3,
        )
