"""Build the setup of a run from its Spec and its Federation. The loop runs a setup, and the accountant prices it."""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from tacit.data import sources
from tacit.data.spec import GIVEN
from tacit.data.transform import facts_of, rescale_rows, with_features, with_intercept
from tacit.engine.kernels import normals
from tacit.errors import IncompatibleError
from tacit.features import registry as features
from tacit.methods.method import Budget, Coordinator, Entry, Method
from tacit.methods.promise import Promise, Unit
from tacit.methods.queried import Gathered, QueryMethod
from tacit.methods.registry import METHODS, choice_of, key_of
from tacit.methods.task import Facts, Task
from tacit.problem.domain import from_values
from tacit.problem.loss import LOSSES, Huber, Linked, Loss, check_separable
from tacit.problem.objective import Problem
from tacit.problem.regularizer import REGULARIZERS
from tacit.run import in_sum, rules
from tacit.run.compose import accounted_delta, composed
from tacit.run.deployment import Deployment
from tacit.run.noise import deployable, simulated
from tacit.run.presets import check_loss, preset
from tacit.run.setup import HostedMethod, Setup
from tacit.run.spec import Spec, keys
from tacit.types import Federation


def federation(spec: Spec) -> Federation:
    """Load and transform the records that [data] names."""
    return transformed(spec, sources.load(spec.data.checked()))


def transformed(spec: Spec, loaded: Federation) -> Federation:
    """Pass the records through the map of [features], add the intercept and rescale them as [data] asks.

    A federation that has been through this is given back: neither a map nor an intercept is added again.
    """
    d = spec.data
    if spec.features.map != "none":
        loaded = _mapped(spec, loaded)
    named = (*loaded.features[-1:], *(one.column for one in loaded.columns[-1:]))
    has_one = loaded.intercept or (loaded.recipe and "intercept" in named)  # a map may bring its own
    if d.intercept and not has_one:
        loaded = with_intercept(loaded)
    return loaded if d.row_norm == "none" else rescale_rows(loaded, d.row_norm, d.row_bound, d.row_mode)


def _mapped(spec: Spec, loaded: Federation) -> Federation:
    if loaded.recipe:
        if spec.features.map not in ("auto", features.name_of(loaded.recipe)):
            raise IncompatibleError(
                f"the records have passed the feature map {features.name_of(loaded.recipe)} already, and features.map "
                f"= {spec.features.map}: give the records as they were before."
            )
        return loaded
    found = features.chosen(spec.features, facts_of(loaded))
    return loaded if found is None else with_features(loaded, *found)


def setup(spec: Spec, federation: Federation) -> Setup:
    """Return the setup of the spec's method over these records; refuse choices that cannot go together."""
    spec = simulated(spec.checked())
    entry, problem = METHODS[spec.algorithm.name], objective(spec, federation)
    if entry.is_admm:
        return composed(spec, federation, problem)
    return _built(entry, spec, federation, problem)


def admm_setup(spec: Spec, federation: Federation) -> Setup:
    """Return the setup of an ADMM run; refuse every other method, whose steps cannot be inverted."""
    found = setup(spec, federation)
    if not found.agents:
        raise IncompatibleError(f"{spec.algorithm.name} is not of the ADMM family: use objp, objt or outp.")
    return found


def _built(entry: Entry, spec: Spec, federation: Federation, problem: Problem) -> Setup:
    """Return the setup of a method with the constants and the total budget of the spec."""
    check_applies(entry, spec)
    shape = (federation.n_features, federation.n_classes)
    # a deployed server draws its own random numbers from the operating system, and its agents have no seed
    seed = secrets.randbits(62) if spec.run.seed is None else spec.run.seed
    task = Task.whole(federation.shards, problem, shape, spec.data.row_bound, seed)
    task = replace(task, normals=normals(), largest_step=rules.plain_step(federation, problem, spec.data.row_bound))
    budget = budget_of(spec)
    if budget.in_sum is not None:
        in_sum.check_agents(budget.in_sum, federation.n_agents)
    method = entry.built(task.facts, budget, choice_of(entry, spec.values()))
    server = Coordinator(method, task.facts)
    if method.rounds != spec.run.rounds:
        raise IncompatibleError(f"{entry.name} takes {method.rounds} round: drop --rounds.")
    check_unit(entry, spec, server.promise)
    _check_gap(spec, task.facts, method)

    def asked() -> Deployment:
        return asked_of(entry, method, task.facts)

    return Setup(
        server, server.promise, problem, shape, federation.public_classes, asked, hosted=HostedMethod(server, task)
    )


def asked_of(entry: Entry, method: Method, facts: Facts) -> Deployment:
    """Return what deployed agents of a method are asked; refuse a method that is not made of queries."""
    if not isinstance(method, QueryMethod):
        raise IncompatibleError(not_deployable(entry))
    agreements = (method.agreement(facts),) * facts.n_agents
    return Deployment(agreements, facts.sizes, facts.shape, lambda _: Gathered(method, facts), method.fades)


def deployable_methods() -> list[str]:
    """Return the names of the methods whose agents can be deployed."""
    return [name for name in METHODS if deployable(preset("sound", name))]


def not_deployable(entry: Entry) -> str:
    """Return why agents of a method cannot be deployed, and what to do."""
    return (
        f"{entry.name} cannot be deployed, because its agents do more than answer queries with noise: use simulated "
        f"noise (--seed), or a method of {', '.join(deployable_methods())} (docs/adding-a-method.md says what makes "
        "the difference)."
    )


def budget_of(spec: Spec) -> Budget:
    """Return the total budget that noise is calibrated for, and the secure sum that the spec trusts."""
    return Budget(spec.privacy.epsilon, accounted_delta(spec), spec.in_sum)


def _check_gap(spec: Spec, facts: Facts, method: Method) -> None:
    """Refuse a sum whose kept-back delta does not cover the gap of its integers to continuous noise."""
    sum_ = method.behind(facts)
    cost = 0.0 if sum_ is None else sum_.cost(spec.privacy.epsilon)
    if cost > spec.privacy.dp_delta - accounted_delta(spec):
        raise IncompatibleError(
            f"the integers of a secure sum cost {cost:.2g} of delta at epsilon {spec.privacy.epsilon:g}, more than is "
            f"kept back of {spec.privacy.dp_delta:g}: use a larger dp_delta, or a smaller epsilon."
        )


def check_unit(entry: Entry, spec: Spec, promise: Promise) -> None:
    """Refuse an adjacency for which the promise of a method does not hold."""
    asked, unit = spec.privacy.adjacency, promise.unit
    if not promise.caveats and asked != ("zero_out" if unit is Unit.CLIENT else unit.adjacency):
        raise IncompatibleError(f"{entry.name} is private for {unit.value}, not for {asked}: drop --adjacency.")


CHOICES = ("algorithm.", "schedule.", "privacy.")  # the sections that the ADMM family is composed of


def reads(entry: Entry, key: str) -> bool:
    """Tell whether a method that is not of the ADMM family reads a key of the sections CHOICES."""
    own = {"algorithm.name", "privacy.epsilon", "privacy.dp_delta", "privacy.adjacency", "privacy.noise"}
    own |= {"privacy.trust", "privacy.colluding", "privacy.repetitions"} if entry.sums else set()
    own |= {"privacy.ledger", "privacy.limit", "privacy.data_id"} if entry.queries else set()
    return key in own or key in map(key_of, entry.grid[0])


def unread(values: Mapping[str, Any]) -> set[str]:
    """Return the keys that a run with these values does not read: those of other sources, methods and rules."""
    source, name = str(values.get("data.source")), str(values.get("algorithm.name"))
    kinds: set[Any] = set() if source.startswith(GIVEN) else sources.may_be(source)
    found = set()
    for key, declared in keys().items():
        for other, some in declared.metadata["when"].items():
            if not any(value in some for value in (kinds if other == "data.source" else (values.get(other),))):
                found.add(key)
    if name in METHODS and not (entry := METHODS[name]).is_admm:
        found |= {key for key in values if key.startswith(CHOICES) and not reads(entry, key)}
    return found


def check_applies(entry: Entry, spec: Spec) -> None:
    """Refuse a changed key that this method does not read: a run must be what its spec says."""
    if spec.data.row_norm != "l2":
        raise IncompatibleError(f"{entry.name} needs records bounded in l2: set data.row_norm = l2.")
    if spec.problem.domain != "everywhere" and not entry.sets:
        raise IncompatibleError(f"{entry.name} does not keep its steps in a set: drop problem.domain.")
    if spec.privacy.noise == "exact" and not entry.queries:
        raise IncompatibleError(not_deployable(entry))
    if entry.values.get("privacy.epsilon") == math.inf != spec.privacy.epsilon:
        raise IncompatibleError(
            f"{entry.name} adds no noise, so epsilon = {spec.privacy.epsilon:g} cannot hold: drop epsilon, or choose a "
            "method that is private (tacit compare --list)."
        )
    in_sum.check_method(spec)
    usual = preset(spec.run.preset, entry.name, spec.data.source).values()
    for key, value in spec.values().items():
        if key.startswith(CHOICES) and not reads(entry, key) and value != usual[key]:
            raise IncompatibleError(f"{entry.name} does not read {key}: drop it.")
    if spec.run.engine not in ("fast", "mpi") or spec.run.device != "cpu":
        raise IncompatibleError(f"{entry.name} has no {spec.run.engine} engine on {spec.run.device}: drop --engine.")


def objective(spec: Spec, federation: Federation) -> Problem:
    """Return the problem that [problem] names, with weight 1/I."""
    problem = Problem(
        federation.n_agents,
        1 / federation.n_records,
        _loss(spec, federation),
        REGULARIZERS[spec.problem.regularizer](),
        spec.problem.beta,
        from_values(asdict(spec.problem)),
    )
    problem.start((federation.n_features, federation.n_classes))  # refuses a set of models of another shape
    return problem


def _loss(spec: Spec, federation: Federation) -> Loss:
    """Return the loss that [problem] names; refuse one that is not for what the records hold, or couples records."""
    number = federation.target is not None
    check_loss(spec, federation.name, number)
    loss, threshold = LOSSES[spec.problem.loss](), spec.problem.threshold
    check_separable(spec.problem.loss, loss, federation.n_classes, number)
    if isinstance(loss, Linked) and federation.target is not None:
        loss.check_target(federation.target)
    if threshold is None:
        return loss
    if not isinstance(loss, Huber):
        raise IncompatibleError(f"the loss {spec.problem.loss} has no threshold: drop problem.threshold.")
    return replace(loss, threshold=threshold)
