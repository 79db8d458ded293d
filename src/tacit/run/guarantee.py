"""The guarantee of a run in words: the total of its releases, or the reasons why a run has no guarantee."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from enum import Enum
from typing import Any

from tacit.admm.compatible import release
from tacit.admm.rule import Objective, Output
from tacit.data.sources import NAMED
from tacit.errors import LargeDeltaWarning, NotPrivateWarning
from tacit.features.map import PROBED
from tacit.methods.promise import Promise, Trusted, Unit
from tacit.privacy.budget import Total, best_guess, revealed, total, upward
from tacit.privacy.release import BinomialRelease, GaussianRelease, GeneralRelease, LaplaceRelease, Release, described
from tacit.problem.sensitivity import Clipped
from tacit.run.build import ADJACENCY, Setup
from tacit.run.compose import AdmmSetup, accounted_delta
from tacit.run.noise import deployable, measures_training
from tacit.run.sources import how_to_declare
from tacit.run.spec import Spec
from tacit.types import Federation

COVERS = {
    Trusted.NOBODY: "{released}, and the model; against the server, the other agents and the public",
    Trusted.SUM: "the sums that the server sees, and the model; against the server, the other agents and the public",
    Trusted.SERVER: "the models that the server sends; against the agents and the public",
    Trusted.CURATOR: "the models that the curator publishes; against everybody else",
}
TESTED = "the test results in result.json and rounds.jsonl (test error, also by class and by agent), which are exact"
TRAINING_MEASURED = (
    "the training objective in result.json and rounds.jsonl, which is exact: with the model, it tells whether a given "
    "record was used"
)
NOT_COVERED = (
    "hyper-parameters chosen by looking at private results",
    "other runs on the same records, whose costs compose with this one's (a ledger keeps their sum)",
)
UNREADABLE = "whether the files can be read: without a schema, a malformed cell ends the command"
UNREADABLE_THERE = "whether a site can read its files: if it names no schema, a malformed cell keeps its service down"
OF_A_RECORD = (  # not covered where the guarantee is for a record
    "the number of records and the names of agents, features and classes, which are taken to be public",
    "how records were dealt to agents and to the test set: a record is present or absent after that, in its place",
)
OF_A_CLIENT = (  # not covered where the guarantee is for a whole agent
    "the numbers of agents and of records and the names of agents in this file and in spec.toml, which tell who took "
    "part: keep these files with the server that is trusted",
    "the names of features and classes, which are taken to be public",
)
OF_OWN_FEATURES = (  # not covered where the feature map is a function of the user's own
    "what {} does beyond one record at a time: it was probed on synthetic rows, and nothing proves that it keeps no "
    "state and looks at no other record"
)

TRAINING_WARNING = (
    "this run records its training objective without noise (run.measure_training). With the model, that number tells "
    "whether a given record was used. Keep result.json, rounds.jsonl and report.html with the owners of the records."
)
HOW_TO_BE_PRIVATE = "For a guarantee: --preset sound --algorithm objt (or objp, outp), with a finite --epsilon."


class Ledgers(Enum):
    """Which ledgers the agents of a run keep."""

    NONE = "no ledgers"
    OF_THE_RUN = "ledgers of this run alone"
    OF_ALL_RUNS = "ledgers of all runs"
    ELSEWHERE = "ledgers that each agent keeps where its records are"


SEEDED = "whoever knows the seed: simulated noise can be drawn again and taken off, so "
NOBODY_TRUSTED = "no server, agent or channel is trusted"
DEPLOY = "train without a seed what is to be released"
NOT_DEPLOYED = "nothing of this run is to be released; deployed agents, with exact noise, are those of objp and objt"


def stated(spec: Spec, setup: Setup, ledgers: Ledgers = Ledgers.NONE) -> dict[str, Any]:
    """Return all that result.json says about privacy."""
    p, promise, spent = spec.privacy, setup.promise, spent_by(spec, setup)
    private, kept = not math.isinf(p.epsilon), accounted_delta(spec)
    dp_delta = _delta(spec, promise, spent) if private else None
    return {
        "guarantee": guarantee(spec, setup),
        "epsilon": None if spent is None else spent.epsilon,
        "epsilon_per_round": _per_round(spec, promise) if private else None,
        "dp_delta": dp_delta,
        "best_guess": None if spent is None else best_guess(spent, dp_delta or 0.0, p.dp_delta - kept),
        "accountant": None if spent is None else spent.name,
        "releases": None if spent is None else described(promise.each_round, promise.once),
        "accounted_delta": None if spent is None else kept,
        "adjacency": ADJACENCY.get(promise.unit, "client"),
        "trust": _trust(spec, promise, ledgers) if spent else None,
        "covers": _covered(setup) if spent else None,
        "not_covered": _not_covered(spec, setup, ledgers) if spent else None,
        "noise": (_noise(spec) if private else None),
        "simulated_noise": private and p.noise != "exact",
    }


def _covered(setup: Setup) -> str:
    """Return what the guarantee covers, and against whom."""
    released = "every z_p an agent releases" if isinstance(setup, AdmmSetup) else "all that agents send"
    covered = COVERS[setup.promise.trusted].format(released=released)
    return covered if setup.promise.coalition is None else covered + f"; {_adversary(setup.promise)}"


def _not_covered(spec: Spec, setup: Setup, ledgers: Ledgers) -> list[str]:
    """Return what the guarantee does not cover."""
    advice = DEPLOY if deployable(spec) else NOT_DEPLOYED
    seeded = [] if spec.privacy.noise == "exact" else [SEEDED + advice]
    own = [OF_OWN_FEATURES.format(spec.features.map)] if ":" in spec.features.map else []
    files = [] if spec.data.schema or spec.data.source in NAMED else [UNREADABLE]
    files = [UNREADABLE_THERE] if ledgers is Ledgers.ELSEWHERE else files
    measured = [TESTED, *([TRAINING_MEASURED] if measures_training(spec) else [])]
    unit = OF_A_CLIENT if setup.promise.unit is Unit.CLIENT else OF_A_RECORD
    return [*seeded, *own, *measured, *NOT_COVERED, *files, *unit]


def spent_by(spec: Spec, setup: Setup) -> Total | None:
    """Return the total of the agent that releases most; None if the run has no guarantee."""
    found = None if reasons(spec, setup) else setup.promise.total(spec.run.rounds, accounted_delta(spec))
    return None if found is None else replace(found, dp_delta=spec.privacy.dp_delta)


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


def as_if_public(spec: Spec, setup: AdmmSetup) -> Total | None:
    """Return the guarantee that the run would have if the bound that it read from the data were public.

    None without noise, and None for the noise of the released OutP, whose scale belongs to no epsilon.
    """
    variant = setup.agents[0].variant
    if isinstance(variant.perturbation, Output) and variant.perturbation.squared:
        return None
    constant = replace(variant, bound=Clipped(variant.mechanism.norm, 1.0), perturbation=Objective())
    one = release(constant)
    return None if one is None else total([(one, spec.run.rounds)], spec.privacy.dp_delta)


def _claim(spec: Spec, setup: Setup) -> list[str]:
    """Return what the paper states about a run whose epsilon covers one round."""
    if spec.privacy.covers == "run" or not isinstance(setup, AdmmSetup):
        return []
    worth = as_if_public(spec, setup)
    return [] if worth is None else [
        f"The paper states epsilon {spec.privacy.epsilon:g} a round; were the largest gradient among its records a "
        f"public bound, the run would be ({worth.epsilon:.4g}, {worth.dp_delta:g})-DP."
    ]  # fmt: skip


def guarantee(spec: Spec, setup: Setup) -> str:
    """Return the guarantee of the run in one sentence, or the reasons why the run has no guarantee."""
    found = reasons(spec, setup)
    if found:
        return " ".join(["not private:", *found, *_claim(spec, setup), "For reproduction only."])
    spent, promise = spent_by(spec, setup), setup.promise
    assert spent is not None  # a promise without caveats has a release
    trusting = "" if promise.trusted is Trusted.NOBODY else f"; trusts {promise.trusting}"
    extent = f"for the whole run of {_counted(spec.run.rounds)}{_repeated(promise)}"
    whole = total_in_words(spent, spent.dp_delta, extent, promise)
    own = f"; features by {spec.features.map}, {PROBED}" if ":" in spec.features.map else ""
    return f"{whole}; {_price(promise)}; {_noise(spec)}{trusting}{own}"


def _repeated(promise: Promise) -> str:
    """Return how often rounds may be asked again, where a secure sum is trusted."""
    again = sum(n for _, n in promise.once) if promise.coalition else 0
    return f" and up to {again} repetition{'s' if again > 1 else ''}" if again else ""


def _counted(rounds: int) -> str:
    return "1 round" if rounds == 1 else f"{rounds} rounds"


def total_in_words(spent: Total, dp_delta: float, extent: str, promise: Promise) -> str:
    """Return a total in words: "(1, 1e-06)-DP in all (gdp), one record present or absent", if `extent` is "in all"."""
    return f"({upward(spent.epsilon)}, {dp_delta:g})-DP {extent} ({spent.name}), {promise.unit.value}"


def delta_of(spent: Total, promise: Promise, rounds: int) -> float:
    """Return the delta of a total: epsilons that are added up hold at the sum of the deltas of the releases."""
    return revealed(promise.events(rounds)) if spent.name == "basic" else spent.dp_delta


def _delta(spec: Spec, promise: Promise, spent: Total | None) -> float:
    """Return the delta of the stated epsilon; 0 for the paper's pure epsilon a round, which has no total."""
    if spent is not None:
        return delta_of(spent, promise, spec.run.rounds)
    return 0.0 if spec.privacy.mechanism == "laplace" else spec.privacy.dp_delta


def _trust(spec: Spec, promise: Promise, ledgers: Ledgers) -> str:
    """Return who is trusted. To trust nobody, the agents' ledgers must outlive the process that asks the agents."""
    if spec.privacy.noise != "exact":
        told = "a simulation: one process holds all records and the seed of all noise"
        trusting = "" if promise.trusted is Trusted.NOBODY else f"; the method itself trusts {promise.trusting}"
        return told + trusting
    if ledgers is Ledgers.NONE:
        return "one process holds all records, and no ledger outlives it: train with --ledger what is to be deployed"
    if ledgers is Ledgers.ELSEWHERE:
        own = "adds its noise" if promise.coalition is None else "adds its share of the noise and masks its answer"
        return f"each agent {own} where its records are, and keeps its own ledger; {_adversary(promise)}"
    alone = "; the ledgers are of this run alone (with --ledger, of all runs)"
    added = "added at each agent" if promise.coalition is None else "shared out over the agents, who mask their answers"
    told = f"noise is {added}; {_adversary(promise)}; one process read all records"
    return told + alone if ledgers is Ledgers.OF_THE_RUN else told


def _adversary(promise: Promise) -> str:
    """Return against whom the guarantee holds; of a secure sum, who must not collude with whom."""
    if promise.coalition is None:
        return NOBODY_TRUSTED
    c, n = promise.coalition
    return (
        f"no channel is trusted, and neither is the server, nor any {c} of the {n} agents that tell it all they know; "
        f"{c + 1} agents that do so void the guarantee"
    )


def _noise(spec: Spec) -> str:
    exact = spec.privacy.noise == "exact"
    return "exact noise from the operating system" if exact else "simulated noise, from the seed: not for release"


def _price(promise: Promise) -> str:
    """Return the noise of every release in words."""
    each = [f"{_times(n)}{_words(one)} a round" for one, n in promise.each_round]
    if promise.coalition is not None:  # repetitions have the noise of a round
        return ", ".join(f"{one}, in the sum over agents" for one in each)
    once = [f"{_times(n)}{_words(one)} {'once' if n == 1 else 'in the run'}" for one, n in promise.once]
    return ", ".join(each + once)


def _times(n: int) -> str:
    return "" if n == 1 else f"{n} times "


def _words(one: Release) -> str:
    if isinstance(one, GaussianRelease):
        sampled = f" on a sample of rate {one.rate:.3g}" if one.sampled else ""
        return f"Gaussian noise of {one.multiplier:.4g} sensitivities{sampled}"
    if isinstance(one, LaplaceRelease):
        norm = one.l1 if math.isfinite(one.l1) else one.norms[1]
        return f"Laplace noise of {1 / norm:.4g} sensitivities"
    if isinstance(one, BinomialRelease):
        return f"binomial noise of {math.sqrt(one.coins) / 2 / one.moved:.4g} sensitivities"
    assert isinstance(one, GeneralRelease)
    return f"a release of ({one.epsilon:.4g}, {one.dp_delta:g})"


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
