"""Every method of the registry: same shape, honest noise, a promise the accountant prices and an audit that agrees."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tacit.baselines.method import TRIALS, Budget
from tacit.baselines.promise import Unit
from tacit.baselines.registry import METHODS
from tacit.experiments.audit import methods as audit
from tests.baselines.tasks import task

BUDGET = Budget(3.0, 1e-5)
ENTRIES = [pytest.param(entry, id=name) for name, entry in METHODS.items()]


def small(entry, budget=BUDGET):
    """Its default, three rounds at most, on the small federation with rows of norm one."""
    own = task()
    shards = tuple(replace(s, x=s.x / np.linalg.norm(s.x, axis=1, keepdims=True)) for s in own.shards)
    own = replace(own, shards=shards, row_norm=1.0)
    choice = dict(entry.grid[0])
    if "rounds" in choice:
        choice["rounds"] = min(3, choice["rounds"])
    return own, entry.build(own, budget, choice)


def trained(method, own):
    state = method.init(own)
    for _ in range(method.rounds):
        state, info = method.run_round(own, state)
    return state, info


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_method_has_the_same_shape_as_all_others(entry):
    own, method = small(entry)
    state, info = trained(method, own)
    assert state.t == method.rounds
    assert state.w.shape == own.shape
    assert state.w.dtype == np.float64
    assert np.isfinite(state.w).all()
    assert info.sent >= 0
    assert info.seen
    assert len(entry.grid) == TRIALS
    assert len({tuple(sorted(choice.items())) for choice in entry.grid}) == TRIALS
    assert (Path(__file__).parents[2] / "docs" / "methods" / f"{entry.name}.md").exists()


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_run_is_a_function_of_its_seed(entry):
    own, method = small(entry)
    first, again, other = (trained(method, replace(own, seed=seed))[0].w for seed in (1, 1, 2))
    assert (first == again).all()
    private = not method.promise(own).caveats
    assert not private or (first != other).any()


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_promise_keeps_the_budget_whatever_the_choice(entry):
    own, _ = small(entry)
    for choice in entry.grid:
        method = entry.build(own, BUDGET, choice)
        spent = method.promise(own).total(method.rounds, BUDGET.dp_delta)
        assert spent is None or spent.epsilon <= BUDGET.epsilon
        assert spent is None or spent.epsilon > 0.5 * BUDGET.epsilon  # and does not waste it


@pytest.mark.parametrize("entry", ENTRIES)
def test_without_noise_nothing_is_promised(entry):
    own, method = small(entry, Budget(math.inf))
    assert method.promise(own).caveats
    assert np.isfinite(trained(method, own)[0].w).all()


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_promise_reads_nothing_from_the_records(entry):
    """Other records of the same number give the same promise and the same noise: both come from public numbers."""
    own, method = small(entry)
    flipped = replace(own, shards=tuple(replace(s, x=-s.x[::-1], y=s.y[::-1]) for s in own.shards))
    assert entry.build(flipped, BUDGET, dict(entry.grid[0])) == entry.build(own, BUDGET, dict(entry.grid[0]))
    assert method.promise(flipped) == method.promise(own)


PRIVATE = [pytest.param(entry, id=entry.name) for entry in audit.chosen(["all"], BUDGET)]


@pytest.mark.parametrize("entry", PRIVATE)
def test_the_mechanism_audit_agrees_with_the_promise(entry):
    finding = audit.audit(entry, BUDGET, draws=400)
    assert finding.verdict == "consistent", finding


def test_the_audit_catches_a_method_that_halves_its_noise():
    present = audit.task()
    honest = audit.one_round(METHODS["fedgd"], present, BUDGET)
    halved = replace(honest, multiplier=honest.multiplier / 2)
    scores = audit.attack(halved, present, audit.without(present, Unit.RECORD), audit.DRAWS, 0)
    found = audit.weigh("method", "halved", audit.claimed(honest, present, BUDGET), scores, 0.95)
    assert found.verdict == "VIOLATED"


def test_the_released_outp_fails_the_audit():
    """Its epsilon is nominal. sigma^2 is below sigma where sigma < 1: the larger the epsilon, the more is missing."""
    finding = audit.audit(METHODS["outp-released"], Budget(20.0, 1e-5))
    assert finding.claim.note
    assert finding.verdict == "VIOLATED", finding
