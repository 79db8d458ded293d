"""Chaudhuri, Kifer and AMP: one minimiser, of a noisy objective or with noise on it, within the budget."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.audit import methods as audit
from tacit.errors import IncompatibleError
from tacit.methods.method import Budget, simulate
from tacit.methods.noisy_minimum import AMP, CHAUDHURI, CHAUDHURI_OUTPUT, KIFER, NoisyMinimum, OutputPerturbation
from tacit.methods.objective_perturbation import Normal, Radial, jacobian, record_gradient
from tacit.methods.promise import Trusted, Unit
from tacit.methods.solve import convexity
from tacit.problem.loss import Squared
from tacit.problem.objective import Problem
from tests.methods.tasks import pooled_gradient, task

ENTRIES = [AMP, CHAUDHURI, CHAUDHURI_OUTPUT, KIFER]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
@pytest.mark.parametrize("epsilon", [0.5, 8.0])
def test_every_choice_spends_the_budget_and_no_more(entry, epsilon):
    own = task()
    for choice in entry.grid:
        method = entry.build(own, Budget(epsilon, 1e-6), choice)
        promise = method.promise(own)
        assert method.rounds == 1
        assert promise.trusted is Trusted.CURATOR
        assert promise.total(1, 1e-6).epsilon <= epsilon * (1 + 1e-12)
        assert promise.total(1, 1e-6).epsilon > 0.98 * epsilon


@pytest.mark.parametrize("entry", [CHAUDHURI, CHAUDHURI_OUTPUT], ids=lambda entry: entry.name)
def test_chaudhuri_is_pure(entry):
    own = task()
    method = entry.build(own, Budget(2.0, 1e-6), entry.grid[0])
    assert method.promise(own).total(1, 0.0).epsilon == pytest.approx(2.0, rel=1e-12)


@pytest.mark.parametrize("noise", [Radial(3.0), Normal(3.0, 1e-6)])
def test_the_model_shown_is_the_minimiser_of_the_noisy_objective_and_a_little_more(noise):
    own, lam, curator = task(), 0.5, 3
    method = NoisyMinimum(lam, noise, Normal(2.0), tolerance=1e-4)
    _, info = next(simulate(method, own))
    mu, unit = convexity(own, lam, pooled=True), record_gradient(own)
    w = info.seen[0] - 2e-4 * unit / mu * Normal(2.0).draw(own, curator, 1, 1)
    b = unit * noise.draw(own, curator, 1, 0)
    assert np.linalg.norm(pooled_gradient(own, w) + lam * w + b) <= 1e-4 * unit


def test_output_perturbation_shows_the_minimiser_with_noise_of_its_sensitivity():
    own, noise, curator = task(), Radial(2.0), 3
    method = OutputPerturbation(0.5, noise, tolerance=1e-4)
    _, info = next(simulate(method, own))
    w = info.seen[0] - method.sensitivity(own) * noise.draw(own, curator, 1, 0)
    assert np.linalg.norm(pooled_gradient(own, w) + 0.5 * w) <= 1e-4 * record_gradient(own)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), lam=st.sampled_from([0.01, 0.1, 1.0]))
def test_one_record_moves_the_minimiser_by_no_more_than_the_sensitivity(seed, lam):
    """Whatever the record: what is shown without noise lies within s, the ends of both solves included."""
    rng, own = np.random.default_rng(seed), audit.task()
    first, *rest = own.shards
    rows, labels = first.x.copy(), first.y.copy()
    rows[-1], labels[-1] = rng.normal(size=4), rng.integers(3)
    rows[-1] /= np.linalg.norm(rows[-1])
    present = replace(own, shards=(replace(first, x=rows, y=labels), *rest))
    quiet = OutputPerturbation(lam, Radial(0.0))
    shown = [next(simulate(quiet, side))[0].w for side in (present, audit.without(present, Unit.RECORD))]
    assert np.linalg.norm(shown[0] - shown[1]) <= quiet.sensitivity(own)


def test_the_sensitivity_of_the_minimiser_is_met_to_the_first_order():
    """The gradient of a record at w = 0 has the norm sqrt(1 - 1/K); with a large Lambda w moves by that over mu."""
    own = audit.task()
    quiet = OutputPerturbation(50.0, Radial(0.0), tolerance=1e-6)
    shown = [next(simulate(quiet, side))[0].w for side in (own, audit.without(own, Unit.RECORD))]
    assert np.linalg.norm(shown[0] - shown[1]) / quiet.sensitivity(own) == pytest.approx(math.sqrt(1 / 3), rel=0.05)


def test_without_noise_it_is_the_pooled_optimum_and_promises_nothing():
    own = task(beta=1e-2)
    for entry in ENTRIES:
        method = entry.build(own, Budget(math.inf), entry.grid[0])
        state, _ = next(simulate(method, own))
        assert np.linalg.norm(pooled_gradient(own, state.w)) <= record_gradient(own)
        assert method.promise(own).caveats


def test_amp_gives_the_determinant_its_share_of_epsilon():
    own = task(beta=0.0)
    for choice in AMP.grid:
        method = AMP.build(own, Budget(1.0, 1e-6), choice)
        whole = method.promise(own).once[0][0].epsilon
        mu = convexity(own, method.convexity, pooled=True)
        assert jacobian(own, mu) == pytest.approx(choice["jacobian"] * whole)


def test_less_noise_in_a_score_costs_more_regularisation():
    own = task()
    lams = [CHAUDHURI.build(own, Budget(1.0), {"score_noise": noise}).convexity for noise in (0.1, 1.0, 1e9)]
    assert lams[0] > lams[1] >= lams[2]
    floor = CHAUDHURI.build(own, Budget(1.0), {"score_noise": 1e9})
    assert jacobian(own, convexity(own, floor.convexity, pooled=True)) == pytest.approx(0.99 / 2)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_a_loss_without_a_bound_is_refused(entry):
    from dataclasses import replace

    own = replace(task(), problem=Problem(3, 1 / 24, Squared()))
    with pytest.raises(IncompatibleError, match="bounded gradients"):
        entry.build(own, Budget(1.0), entry.grid[0])
