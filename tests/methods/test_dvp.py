"""Its minimisers answer the noise that was drawn, and their epsilon is that of the accountant's coin."""

import numpy as np
import pytest

from tacit.admm.updates import exact_slope
from tacit.methods.exact_admm import DVP, DualPerturbation, PrimalPerturbation
from tacit.methods.method import Budget, simulate
from tacit.methods.objective_perturbation import Radial, jacobian, record_gradient
from tacit.methods.solve import convexity
from tacit.privacy.release import GaussianRelease, GeneralRelease
from tacit.schedule import Constant
from tests.methods.tasks import followed, task


def test_without_noise_it_is_exact_admm():
    own = task()
    dual, primal = DualPerturbation(3, np.inf, 0.0, Constant(0.1)), PrimalPerturbation(3, 0.0, Constant(0.1))
    for (one, _), (two, _) in zip(simulate(dual, own), simulate(primal, own), strict=True):
        np.testing.assert_array_equal(one.w, two.w)
    assert dual.promise(own).caveats


def test_every_minimiser_answers_its_noise_to_the_tolerance():
    own, rho, mask = task(), 40.0, 2.0
    method = DualPerturbation(3, 1.5, mask, Constant(rho), tolerance=1e-4)
    (state, _, _), (_, info, agents), _ = followed(own, method)
    mu, unit = convexity(own, rho), record_gradient(own)
    noise = Radial(1 / (1.5 - jacobian(own, mu)))
    for p, (shard, sent) in enumerate(zip(own.shards, info.seen[0], strict=True)):
        z = sent - 2e-4 * unit / mu * mask * own.gaussian(p, 2, 1)
        slope = own.problem.gradient(z, shard) + unit * noise.draw(own, p, 2, 0)
        assert np.linalg.norm(exact_slope(z, state.w, agents["dual"][p], slope, rho)) <= 1e-4 * unit


def test_the_budget_pays_for_both_releases_of_every_round():
    own = task()
    for choice in DVP.grid:
        method = DVP.build(own, Budget(2.0, 1e-5), choice)
        promise = method.promise(own)
        kinds = [type(release) for release, n in promise.each_round if n == 1]
        assert kinds == [GeneralRelease, GaussianRelease]
        assert 0.99 * 2 < promise.total(method.rounds, 1e-5).epsilon <= 2.0


def test_the_declared_epsilon_is_that_of_the_noise_in_use_in_the_worst_round():
    own = task()
    method = DVP.build(own, Budget(2.0, 1e-5), DVP.grid[0])
    (release, _), _ = method.promise(own).each_round
    for t in range(1, method.rounds + 1):
        mu = convexity(own, method.penalty(own, t))
        assert jacobian(own, mu) <= release.epsilon / 2 * (1 + 1e-9)
        used = 1 / method.noise(own, method.penalty(own, t)).multiplier + jacobian(own, mu)
        assert used == pytest.approx(release.epsilon, rel=1e-9)


def test_a_small_penalty_is_raised_until_the_determinant_leaves_room_for_noise():
    own = task()
    method = DualPerturbation(3, 0.1, 1.0, Constant(1e-6))
    assert jacobian(own, convexity(own, method.penalty(own, 1))) == pytest.approx(0.05)
    assert DualPerturbation(3, 0.1, 1.0, Constant(1e9)).penalty(own, 1) == 1e9
