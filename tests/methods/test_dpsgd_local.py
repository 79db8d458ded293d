"""DP-SGD at the agents: with one step on all records, federated gradient descent."""

import math

import numpy as np
import pytest

from tacit.methods.fedavg import FedProx, LocalSGD
from tacit.methods.gradient_descent import LOCAL, FedGD, LocalDPSGD
from tacit.methods.method import Budget, simulate
from tacit.methods.promise import Trusted, Unit
from tacit.methods.task import poisson
from tacit.privacy.budget import total
from tacit.privacy.release import GaussianRelease
from tests.conftest import federation
from tests.methods.tasks import cooled_noise, empty, one_round, task

W = np.random.default_rng(1).normal(size=(4, 3))


def test_one_step_on_all_records_is_federated_gradient_descent_with_the_same_noise():
    own = task(beta=0.1)
    local = LocalDPSGD(rounds=4, local_steps=1, rate=1.0, clip=0.3, multiplier=2.0, step=0.5)
    global_ = FedGD(rounds=4, clip=0.3, multiplier=2.0, step=0.5)
    for (ours, _), (theirs, _) in zip(simulate(local, own), simulate(global_, own), strict=True):
        np.testing.assert_allclose(ours.w, theirs.w, atol=1e-13)


def test_without_noise_and_clipping_it_is_fedavg_on_whole_shards():
    own = task(beta=0.1)
    local = LocalDPSGD(rounds=1, local_steps=4, rate=1.0, clip=1e3, multiplier=0.0, step=0.5)
    averaged = FedProx(1, 1.0, LocalSGD(epochs=4, batch=0, step=0.5))
    ours, theirs = (one_round(own, method, W)[0].w for method in (local, averaged))
    np.testing.assert_allclose(ours, theirs, atol=1e-14)


def test_every_local_step_has_noise_of_its_own():
    own = task(beta=0.0)
    method = LocalDPSGD(rounds=1, local_steps=2, rate=1.0, clip=1e-9, multiplier=1e9, step=1.0)
    _, info = one_round(own, method, W)  # clipped to nothing: the noise is all there is
    size = np.array([len(shard) for shard in own.shards])[:, None, None]
    expected = W - own.rounding * (own.agents_gaussian(1, 0) + own.agents_gaussian(1, 1)) / size
    np.testing.assert_allclose(info.seen[0], expected, atol=1e-7)


def test_every_local_step_has_a_lot_of_its_own():
    own = task(beta=0.1)
    method = LocalDPSGD(rounds=1, local_steps=3, rate=0.4, clip=1e3, multiplier=0.0, step=0.5)
    _, info = one_round(own, method, W)
    for p, shard in enumerate(own.shards):
        u, n = W, len(shard)
        for lot in (poisson(own, p, 1, n, 0.4, e) for e in range(3)):
            residual = own.problem.loss.residual(shard.x[lot] @ u, shard.y[lot])
            u = u - 0.5 * (shard.x[lot].T @ residual / (0.4 * n) + 0.1 * 2 * u)
        np.testing.assert_allclose(info.seen[0][p], u, atol=1e-14)


def test_a_score_gathers_the_noise_that_was_asked_for():
    own = task(federation(n_features=60, n_classes=10), beta=0.0)
    choice = {"rounds": 10, "local_steps": 3, "rate": 0.1, "clip": 0.5, "score_noise": 1.5}
    method = LOCAL.build(own, Budget(1.0, 1e-5), choice)
    ends = []
    for seed in range(8):
        *_, (state, _) = simulate(method, empty(own, seed))
        ends.append(state.w * own.row_norm)
    assert np.std(ends) == pytest.approx(1.5 * cooled_noise(10), rel=0.04)  # 4,800 draws: 3.9 standard errors


def test_what_is_seen_is_what_each_agent_sends():
    own = task()
    method = LocalDPSGD(rounds=1, local_steps=2, rate=0.5, clip=0.3, multiplier=1.0, step=0.5)
    state, info = one_round(own, method, W)
    share = np.array([len(shard) for shard in own.shards]) / own.n_records
    np.testing.assert_allclose(state.w, np.einsum("p,pjk->jk", share, info.seen[0]), atol=1e-14)
    assert info.sent == 4 * 12


def test_a_round_costs_as_many_releases_as_local_steps():
    own = task()
    method = LocalDPSGD(rounds=7, local_steps=3, rate=0.2, clip=0.3, multiplier=2.0, step=0.5)
    promise = method.promise(own)
    assert promise.each_round == ((GaussianRelease(2.0, 0.2), 3),)
    assert promise.total(7, 1e-5).epsilon == total([(GaussianRelease(2.0, 0.2), 21)], 1e-5).epsilon


@pytest.mark.parametrize("rate", [1.0, 0.1])
def test_it_spends_the_budget_and_no_more(rate):
    own = task()
    choice = {"rounds": 10, "local_steps": 4, "rate": rate, "clip": 0.3, "score_noise": 1.0}
    method = LOCAL.build(own, Budget(1.0, 1e-5), choice)
    promise = method.promise(own)
    assert 0.99 < promise.total(method.rounds, 1e-5).epsilon <= 1.0
    assert (promise.unit, promise.trusted) == (Unit.RECORD, Trusted.NOBODY)


def test_without_a_budget_it_says_so():
    method = LOCAL.build(task(), Budget(math.inf), LOCAL.grid[0])
    assert method.promise(task()).caveats
