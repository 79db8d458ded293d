"""The mechanism audit of any method: a short run with a worst-case unit and without it, by what the untrusted saw.

The method is a black box. Pilot draws estimate, for either data set, the mean of all that was seen and how far it
spreads; the score of a further draw is the likelihood ratio of two Gaussians so shaped. A poor fit gives a small bound,
never a wrong one. A draw has the same seed with either data set: where their noise is then the same, the pilots see the
difference of the means without it, and a pair of draws says more than two draws apart. Two rounds, because what an
agent keeps to itself in the first may leak in the second. The other records are short, so that a scale read from the
data changes with the unit. Without the unit its records are zero: they move no gradient, and every public number stays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from tacit.audit import mechanism
from tacit.audit.finding import CONFIDENCE, Claim, Finding, OneGaussian, Trials, dominating, weigh
from tacit.errors import SpecError, unknown
from tacit.methods.method import AnyEntry, Budget, Composed, Entry, Method, simulate
from tacit.methods.promise import Unit
from tacit.methods.registry import METHODS
from tacit.methods.task import Task
from tacit.privacy.lower_bounds import gaussian_scores
from tacit.problem.objective import Problem
from tacit.run.presets import preset
from tacit.types import Array, Shard

DRAWS = 1500  # a side
PILOTS = 200  # a side, that shape the score
ROUNDS = 2
LEAST = 1e-9
FEATURES, CLASSES, OTHERS = 4, 3, 3
SHORT = 0.3  # the norm of the other records, of row_norm


def chosen(names: Sequence[str], budget: Budget) -> list[AnyEntry]:
    """The entries of these names; "all" stands for every one that promises something."""
    if names and math.isinf(budget.epsilon):
        raise SpecError("epsilon = inf claims nothing, so there is nothing to audit: give --epsilon.")
    for name in names:
        if name not in METHODS and name != "all":
            raise unknown("method", name, [*METHODS, "all"])
    return [one for name, one in METHODS.items() if name in names or ("all" in names and _private(one, budget))]


def _private(entry: AnyEntry, budget: Budget) -> bool:
    """Whether the method promises something. The ADMM family has attacks of its own."""
    of = task()
    return isinstance(entry, Entry) and not short(entry, of, budget).promise(of).caveats


def audit(
    entry: AnyEntry, budget: Budget, draws: int = DRAWS, seed: int = 0, confidence: float = CONFIDENCE, choice: int = 0
) -> Finding:
    """The method with its whole budget in ROUNDS rounds, against what it promises; `choice` is of its grid."""
    if isinstance(entry, Composed):
        own = {"privacy.epsilon": budget.epsilon, "privacy.dp_delta": budget.dp_delta}
        return mechanism.audit(preset("sound", entry.name).with_values(own), draws, seed, confidence)
    present = task()
    method = short(entry, present, budget, choice)
    seen = attack(method, present, without(present, method.promise(present).unit), draws, seed)
    return weigh("method", entry.name, claimed(method, present, budget), seen, confidence)


def claimed(method: Method, of: Task, budget: Budget) -> Claim:
    """The total by the accountant; where there is none, the epsilon of the budget as if it held."""
    promise = method.promise(of)
    spent = promise.total(method.rounds, budget.dp_delta)
    if spent is None:
        note = f"nominal epsilon; not private: {' '.join(promise.caveats)}"
        return Claim(budget.epsilon, budget.dp_delta, OneGaussian(budget.epsilon, budget.dp_delta), note)
    return Claim(spent.epsilon, spent.dp_delta, dominating(spent))


def short(entry: Entry, of: Task, budget: Budget, choice: int = 0) -> Method:
    """A choice of an entry, in few rounds."""
    own = dict(entry.grid[choice])
    return entry.build(of, budget, own | ({"rounds": ROUNDS} if "rounds" in own else {}))


def task() -> Task:
    """Two agents; the last record of the first one has a feature of its own."""
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
    """The neighbour: the record zero, or its opposite; or every record of its agent zero."""
    first, *rest = of.shards
    x = first.x.copy()
    if unit is Unit.CLIENT:
        x[:] = 0
    else:
        x[-1] = -x[-1] if unit is Unit.REPLACED else 0
    return replace(of, shards=(replace(first, x=x), *rest))


def attack(method: Method, present: Task, absent: Task, draws: int, seed: int) -> Callable[[float], Trials]:
    """The scores with the unit and without, where all that varies, in pilots and draws, shrinks by a factor."""
    pilot = [np.stack(list(views(method, side, PILOTS, 2 * seed))) for side in (present, absent)]
    shape = np.sqrt(sum(part.var(0) for part in pilot) / 2)
    noisy = shape > 0
    shape = np.where(noisy, shape, LEAST)  # without noise the least difference tells all
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
    """All that was seen of a run, as one vector, for draws of their own noise."""
    for n in range(draws):
        own = replace(of, seed=(stream << 32) + n)
        yield np.concatenate([np.ravel(part) for _, info in simulate(method, own) for part in info.seen])
