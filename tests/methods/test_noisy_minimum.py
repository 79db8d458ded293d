"""Chaudhuri, Kifer and AMP: one minimiser, of a noisy objective, within the budget."""

import math

import numpy as np
import pytest

from tacit.errors import IncompatibleError
from tacit.methods.method import Budget, simulate
from tacit.methods.noisy_minimum import AMP, CHAUDHURI, KIFER, NoisyMinimum
from tacit.methods.objective_perturbation import Normal, Radial, jacobian, record_gradient
from tacit.methods.promise import Trusted
from tacit.methods.solve import convexity
from tacit.problem.loss import Squared
from tacit.problem.objective import Problem
from tests.methods.tasks import pooled_gradient, task

ENTRIES = [AMP, CHAUDHURI, KIFER]


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


def test_chaudhuri_is_pure():
    own = task()
    method = CHAUDHURI.build(own, Budget(2.0, 1e-6), CHAUDHURI.grid[0])
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
