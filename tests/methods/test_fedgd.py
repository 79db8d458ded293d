"""Without noise and clipping, gradient descent on the pooled loss."""

import numpy as np

from tacit.methods.gradient_descent import FEDGD, FedGD
from tacit.methods.method import Budget, simulate
from tests.methods.tasks import pooled_gradient, task


def test_a_round_without_noise_is_one_gradient_step_on_the_pooled_loss():
    own = task()
    method = FedGD(rounds=5, clip=1e3, multiplier=0.0, step=0.5)
    state, _ = next(simulate(method, own))
    np.testing.assert_allclose(state.w, -0.5 * pooled_gradient(own, np.zeros(own.shape)), atol=1e-14)


def test_its_noise_spends_the_budget_and_no_more():
    own = task()
    method = FEDGD.build(own, Budget(1.0, 1e-5), FEDGD.grid[0])
    spent = method.promise(own).total(method.rounds, 1e-5)
    assert 0.99 < spent.epsilon <= 1.0
