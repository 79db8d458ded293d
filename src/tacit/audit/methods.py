"""Audit of any method: compare what untrusted parties see of short runs with a worst-case unit and without it.

The method is a black box. Pilot draws shape the attacks, and further draws are scored (tacit.audit.pilots). A draw has
the same seed with either data set: if the noise is then the same, the pilots see the difference of the means without
noise, and a pair of draws says more than two independent draws. A run has two rounds, because what an agent keeps in
the first may leak in the second, and because noise must be new in every round. The other records are short, so that a
scale read from the data changes with the unit. An absent unit has zero records: they move no gradient and no public
number.

A run starts at zero, and at a public model that steers the unit (`steering`): there the gradient of the canary is as
long as any can be, so that a missing clip or a bound that is too small shows. Local models start there too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from tacit.audit import mechanism
from tacit.audit.finding import CONFIDENCE, Claim, Finding, OneGaussian, Trials, dominating, weigh_all
from tacit.audit.pilots import BASES, Sides, fitted
from tacit.errors import IncompatibleError, SpecError, unknown
from tacit.methods.method import Budget, Choice, Entry, Method, simulate
from tacit.methods.promise import Unit
from tacit.methods.registry import METHODS, choice_of
from tacit.methods.task import Task
from tacit.problem.objective import Problem
from tacit.run import build
from tacit.run.presets import preset
from tacit.run.spec import Spec
from tacit.types import Array, Shard

DRAWS = 1500  # from every start, with the unit, and as many without it
PILOTS = 600  # as many again at most, which shape the attacks: a covariance of about 50 entries takes hundreds
ROUNDS = 2
FEATURES, CLASSES, OTHERS = 4, 3, 3
SHORT = 0.3  # the norm of the other records, as a share of row_norm
LAST = 0.1  # the last feature of the canary; another record in its place has the opposite
SURE = 30.0  # the score of the class that the canary is steered to, and minus that of its label: softmax is certain


def chosen(names: Sequence[str], budget: Budget) -> list[Entry]:
    """Return the entries of these names; "all" stands for every method outside ADMM that promises something."""
    if names and math.isinf(budget.epsilon):
        raise SpecError("epsilon = inf claims nothing, so there is nothing to audit: give --epsilon.")
    for name in names:
        if name not in METHODS and name != "all":
            raise unknown("method", name, [*METHODS, "all"])
    return [one for name, one in METHODS.items() if name in names or ("all" in names and _private(one, budget))]


def _private(entry: Entry, budget: Budget) -> bool:
    """Tell whether the method promises something; the ADMM family has its own attacks, and does not count."""
    of = task()
    return not entry.is_admm and not short(entry, of, budget).promise(of).caveats


def audit(
    entry: Entry, budget: Budget, draws: int = DRAWS, seed: int = 0, confidence: float = CONFIDENCE, choice: int = 0
) -> Finding:
    """Test the method, with its whole budget in ROUNDS rounds, against its promise; `choice` is a row of its grid."""
    if entry.is_admm:
        own = {"privacy.epsilon": budget.epsilon, "privacy.dp_delta": budget.dp_delta, "features.map": "none"}
        return mechanism.audit(preset("sound", entry.name).with_values(own), draws, seed, confidence)
    present = task()
    return _tested(entry, short(entry, present, budget, choice), present, budget, draws, seed, confidence)


def audit_spec(spec: Spec, draws: int = DRAWS, seed: int = 0, confidence: float = CONFIDENCE) -> Finding:
    """Test the method of a spec with the constants and the budget of the spec, in ROUNDS rounds on tiny data."""
    entry, present = METHODS[spec.algorithm.name], task()
    if spec.privacy.noise == "exact":
        raise IncompatibleError(
            f"the attacks on {entry.name} test simulated noise only: drop --noise exact. Deployed agents are the same "
            "for all methods: audit them with --algorithm objt --noise exact."
        )
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
    several = attacks(method, present, without(present, method.promise(present).unit), draws, seed)
    behind = ", secure sum" if budget.in_sum is not None else ""
    return weigh_all("method", entry.name + behind, claimed(method, present, budget), several, confidence)


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
    return entry.built(of, budget, {**own, **({"rounds": ROUNDS} if "rounds" in own else {})})


def task() -> Task:
    """Return a task with two agents; only the canary, the last record of the first agent, has the last feature."""
    rng = np.random.default_rng(0)
    x = np.zeros((2 * OTHERS + 1, FEATURES))
    x[:, :-1] = rng.normal(size=(len(x), FEATURES - 1))
    x *= SHORT / np.linalg.norm(x, axis=1, keepdims=True)
    x[OTHERS] = [*np.zeros(FEATURES - 2), math.sqrt(1 - LAST**2), LAST]
    y, parts = np.arange(len(x)) % CLASSES, (slice(OTHERS + 1), slice(OTHERS + 1, None))
    shards = tuple(Shard(x[rows], y[rows], dtype=np.float64) for rows in parts)
    return Task.whole(shards, Problem(2, 1 / len(x)), (FEATURES, CLASSES), row_norm=1.0)


def without(of: Task, unit: Unit) -> Task:
    """Return the neighbour: the canary is zero or another record, or every record of its agent is zero.

    The other record has nearly the same features and label 1. The steering model pushes the canary to class 1 and the
    other record to class 0, so that their gradients are nearly opposite.
    """
    first, *rest = of.shards
    x, y = first.x.copy(), first.y.copy()
    if unit is Unit.CLIENT:
        x[:] = 0
    elif unit is Unit.REPLACED:
        x[-1, -1], y[-1] = -x[-1, -1], 1
    else:
        x[-1] = 0
    return replace(of, shards=(replace(first, x=x, y=y), *rest))


def steering(of: Task) -> Array:
    """Return a public model of W that is certain that the canary, whose label is 0, is of class 1."""
    w = np.zeros(of.shape)
    w[-1, :2] = -SURE / LAST, SURE / LAST
    return of.problem.domain.project(w)


def attacks(
    method: Method, present: Task, absent: Task, draws: int, seed: int
) -> dict[str, Callable[[float], Trials]]:
    """Return the attacks by name: from every start that the method heeds, in each of the BASES."""
    found: dict[str, Callable[[float], Trials]] = {}
    for start, w in starts(method, present).items():
        pilots, seen = (
            _draws(method, (present, absent), n, stream, w)
            for n, stream in ((min(PILOTS, draws), 2 * seed), (draws, 2 * seed + 1))
        )
        found |= {f"{start} {name}".strip(): fitted(pilots, seen, basis) for name, basis in BASES.items()}
    return found


def starts(method: Method, of: Task) -> dict[str, Array | None]:
    """Return the starts by name; a method that shows the same from either of them has only its own."""
    own, steered = (next(views(method, of, 1, 0, w)) for w in (None, steering(of)))
    return {"": None} if np.array_equal(own, steered) else {"": None, "w0": steering(of)}


def _draws(method: Method, sides: tuple[Task, Task], draws: int, stream: int, start: Array | None) -> Sides:
    present, absent = (np.stack(list(views(method, side, draws, stream, start))) for side in sides)
    if not (np.isfinite(present).all() and np.isfinite(absent).all()):
        raise SpecError(
            f"{type(method).__name__} sends numbers that are not finite within {ROUNDS} rounds, which an audit cannot "
            "compare: shorten its steps."
        )
    return present, absent


def views(method: Method, of: Task, draws: int, stream: int, start: Array | None = None) -> Iterator[Array]:
    """Yield all that was seen of a run, as one vector, for each of many draws of the noise.

    The models of the server and of the agents start at `start`, or as the method has it.
    """
    for n in range(draws):
        own = replace(of, seed=(stream << 32) + n)
        yield np.concatenate([np.ravel(part) for _, info in simulate(method, own, start) for part in info.seen])
