"""The audit of any method compares what untrusted parties see of short runs with a worst-case unit and without it.

The method is a black box. Pilot draws estimate, for either data set, the mean and the spread of all that was seen; the
score of a further draw is the likelihood ratio of two Gaussians of this mean and spread. A poor fit gives a small
bound, never a wrong one. A draw has the same seed with either data set: where the noise is then the same, the pilots
see the difference of the means without noise, and a pair of draws says more than two independent draws. A run has two
rounds, because what an agent keeps in the first may leak in the second. The other records are short, so that a scale
read from the data changes with the unit. An absent unit has zero records: they move no gradient and no public number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from tacit.audit import mechanism
from tacit.audit.finding import CONFIDENCE, Claim, Finding, OneGaussian, Trials, dominating, weigh
from tacit.errors import SpecError, unknown
from tacit.methods.method import AnyEntry, Budget, Choice, Composed, Entry, Method, choice_of, simulate
from tacit.methods.promise import Unit
from tacit.methods.registry import METHODS
from tacit.methods.task import Task
from tacit.privacy.lower_bounds import gaussian_scores
from tacit.problem.objective import Problem
from tacit.run import build
from tacit.run.presets import preset
from tacit.run.spec import Spec
from tacit.types import Array, Shard

DRAWS = 1500  # with the unit, and as many without it
PILOTS = 200  # with the unit, and as many without it, which shape the score
ROUNDS = 2
LEAST = 1e-9
FEATURES, CLASSES, OTHERS = 4, 3, 3
SHORT = 0.3  # the norm of the other records, as a share of row_norm


def chosen(names: Sequence[str], budget: Budget) -> list[AnyEntry]:
    """Return the entries of these names; "all" stands for every method outside ADMM that promises something."""
    if names and math.isinf(budget.epsilon):
        raise SpecError("epsilon = inf claims nothing, so there is nothing to audit: give --epsilon.")
    for name in names:
        if name not in METHODS and name != "all":
            raise unknown("method", name, [*METHODS, "all"])
    return [one for name, one in METHODS.items() if name in names or ("all" in names and _private(one, budget))]


def _private(entry: AnyEntry, budget: Budget) -> bool:
    """Tell whether the method promises something; the ADMM family has its own attacks, and does not count."""
    of = task()
    return isinstance(entry, Entry) and not short(entry, of, budget).promise(of).caveats


def audit(
    entry: AnyEntry, budget: Budget, draws: int = DRAWS, seed: int = 0, confidence: float = CONFIDENCE, choice: int = 0
) -> Finding:
    """Test the method, with its whole budget in ROUNDS rounds, against its promise; `choice` is a row of its grid."""
    if isinstance(entry, Composed):
        own = {"privacy.epsilon": budget.epsilon, "privacy.dp_delta": budget.dp_delta, "features.map": "none"}
        return mechanism.audit(preset("sound", entry.name).with_values(own), draws, seed, confidence)
    present = task()
    return _tested(entry, short(entry, present, budget, choice), present, budget, draws, seed, confidence)


def audit_spec(spec: Spec, draws: int = DRAWS, seed: int = 0, confidence: float = CONFIDENCE) -> Finding:
    """Test the method of a spec with the constants and the budget of the spec, in ROUNDS rounds on tiny data."""
    entry, present = METHODS[spec.algorithm.name], task()
    assert isinstance(entry, Entry)
    build.check_applies(entry, spec)
    budget = build.budget_of(spec)
    if budget.in_sum is not None:  # one agent of the tiny data does not collude: it holds the unit
        few = min(budget.in_sum.colluding, present.n_agents - 1)
        budget = replace(budget, in_sum=replace(budget.in_sum, colluding=few))
    if not budget.private:
        raise SpecError("epsilon = inf claims nothing, so there is nothing to audit: give --epsilon.")
    method = _short(entry, present, budget, choice_of(entry, spec.values()))
    build.check_unit(entry, spec, method.promise(present))
    return _tested(entry, method, present, budget, draws, seed, confidence)


def _tested(
    entry: Entry, method: Method, present: Task, budget: Budget, draws: int, seed: int, confidence: float
) -> Finding:
    seen = attack(method, present, without(present, method.promise(present).unit), draws, seed)
    behind = ", secure sum" if budget.in_sum is not None else ""
    return weigh("method", entry.name + behind, claimed(method, present, budget), seen, confidence)


def claimed(method: Method, of: Task, budget: Budget) -> Claim:
    """Return the accountant's total; if there is no total, the epsilon of the budget as a nominal claim."""
    promise = method.promise(of)
    spent = promise.total(method.rounds, budget.dp_delta)
    if spent is None:
        note = f"nominal epsilon; not private: {' '.join(promise.caveats)}"
        return Claim(budget.epsilon, budget.dp_delta, OneGaussian(budget.epsilon, budget.dp_delta), note)
    return Claim(spent.epsilon, spent.dp_delta, dominating(spent))


def short(entry: Entry, of: Task, budget: Budget, choice: int = 0) -> Method:
    """Build a method from a row of its grid, with ROUNDS rounds."""
    return _short(entry, of, budget, entry.grid[choice])


def _short(entry: Entry, of: Task, budget: Budget, own: Choice) -> Method:
    return entry.build(of, budget, {**own, **({"rounds": ROUNDS} if "rounds" in own else {})})


def task() -> Task:
    """Return a task with two agents; only the last record of the first agent has the last feature."""
    rng = np.random.default_rng(0)
    x = np.zeros((2 * OTHERS + 1, FEATURES))
    x[:, :-1] = rng.normal(size=(len(x), FEATURES - 1))
    x[OTHERS] = np.eye(FEATURES)[-1]
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    x[np.arange(len(x)) != OTHERS] *= SHORT
    y, parts = np.arange(len(x)) % CLASSES, (slice(OTHERS + 1), slice(OTHERS + 1, None))
    shards = tuple(Shard(x[rows], y[rows], dtype=np.float64) for rows in parts)
    return Task.whole(shards, Problem(2, 1 / len(x)), (FEATURES, CLASSES), row_norm=1.0)


def without(of: Task, unit: Unit) -> Task:
    """Return the neighbour: the record is zero or its opposite, or every record of its agent is zero."""
    first, *rest = of.shards
    x = first.x.copy()
    if unit is Unit.CLIENT:
        x[:] = 0
    else:
        x[-1] = -x[-1] if unit is Unit.REPLACED else 0
    return replace(of, shards=(replace(first, x=x), *rest))


def attack(method: Method, present: Task, absent: Task, draws: int, seed: int) -> Callable[[float], Trials]:
    """Return factor -> scores with the unit and without it, where the factor multiplies all that varies."""
    pilot = [np.stack(list(views(method, side, PILOTS, 2 * seed))) for side in (present, absent)]
    shape = np.sqrt(sum(part.var(0) for part in pilot) / 2)
    noisy = shape > 0
    shape = np.where(noisy, shape, LEAST)  # without noise the smallest difference tells all
    spread = [float(np.sqrt(np.mean(part.var(0)[noisy] / shape[noisy] ** 2))) for part in pilot]
    fit = [part.mean(0) / shape for part in pilot]
    seen = [np.stack(list(views(method, side, draws, 2 * seed + 1))) / shape for side in (present, absent)]
    middle = [part.mean(0) for part in seen]

    def trials(factor: float) -> Trials:
        center = [m + factor * (c - m) for c, m in zip(fit, middle, strict=True)]
        with_it, without_it = (
            gaussian_scores(
                m + factor * (part - m), (center[0], center[1]), (factor * spread[0], factor * spread[1])
            )
            for part, m in zip(seen, middle, strict=True)
        )
        return Trials(with_it, without_it, paired=True)

    return trials


def views(method: Method, of: Task, draws: int, stream: int) -> Iterator[Array]:
    """Yield all that was seen of a run, as one vector, for each of many draws of the noise."""
    for n in range(draws):
        own = replace(of, seed=(stream << 32) + n)
        yield np.concatenate([np.ravel(part) for _, info in simulate(method, own) for part in info.seen])
