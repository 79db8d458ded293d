"""NbAFL as published: its formulas, its reduction to FedProx, and that it promises nothing."""

import math
from dataclasses import replace

import numpy as np
import pytest

from tacit.admm.messages import Broadcast
from tacit.methods.fedavg import NBAFL, FedProx, LocalSGD, NbAFL
from tacit.methods.method import Budget
from tacit.privacy.mechanism import Gaussian
from tests.conftest import federation
from tests.methods.tasks import one_round, task

W = np.random.default_rng(1).normal(size=(4, 3))
LOCAL = LocalSGD(epochs=2, batch=3, step=0.5, mu=0.3)


def four(seed=0):
    """Four agents, so that sqrt(P) is a whole number; the smallest has 6 records."""
    return task(federation(sizes=(9, 6, 8, 12)), seed=seed)


def test_without_noise_and_clipping_it_is_fedprox():
    own = task()
    ours, _ = one_round(own, NbAFL(3, 3, math.inf, math.inf, 1e-5, LOCAL), W)
    theirs, _ = one_round(own, FedProx(3, 1.0, LOCAL), W)
    np.testing.assert_array_equal(ours.w, theirs.w)


def test_the_noise_on_the_way_up_is_that_of_the_classic_gaussian_mechanism_for_each_exposure():
    method = NbAFL(10, 5, 0.7, 0.5, 1e-5, LOCAL)
    one = Gaussian.classic(0.5 / 5, 1e-5).multiplier * 2 * 0.7 / 6
    assert method.uplink_std(four()) == pytest.approx(one, rel=1e-12)


def test_the_noise_on_the_way_down_starts_beyond_exposures_times_the_root_of_the_agents():
    own = four()
    at = {rounds: NbAFL(rounds, 5, 0.7, 0.5, 1e-5, LOCAL).downlink_std(own) for rounds in (5, 10, 11, 26)}
    assert at[5] == at[10] == 0
    c = math.sqrt(2 * math.log(1.25e5))
    for rounds in (11, 26):
        expected = 2 * c * 0.7 * math.sqrt(rounds**2 - 5**2 * 4) / (6 * 4 * 0.5)
        assert at[rounds] == pytest.approx(expected, rel=1e-12)


def test_clipped_models_are_sent_with_the_noise_of_the_way_up_and_averaged_with_that_of_the_way_down():
    local = replace(LOCAL, batch=0)
    method = NbAFL(26, 5, 0.7, 0.5, 1e-5, local)
    up, down = [], []
    for seed in range(300):
        own = four(seed)
        state, info = one_round(own, method, W)
        clean = local.models(own, Broadcast(1, W))
        clean = np.stack([u * min(1, 0.7 / np.linalg.norm(u)) for u in clean])
        share = np.array([9, 6, 8, 12]) / 35
        up.append(info.seen[0] - clean)
        down.append(state.w - np.einsum("p,pjk->jk", share, info.seen[0]))
    assert np.std(up) == pytest.approx(method.uplink_std(four()), rel=0.02)  # 14,400 draws: 3.4 standard errors
    assert np.std(down) == pytest.approx(method.downlink_std(four()), rel=0.04)  # 3,600 draws: the same


def test_one_record_can_move_a_clipped_model_further_than_the_published_sensitivity():
    own = four()
    small = own.shards[1]
    x = small.x.copy()
    x[0] = 40.0  # a record replaced by another: clipping the model bounds where it lands, not how far it moved
    changed = replace(own, shards=(own.shards[0], replace(small, x=x), *own.shards[2:]))
    silent = NbAFL(1, 1, 0.7, math.inf, 1e-5, LocalSGD(epochs=5, batch=0, step=1.0))
    before, after = (one_round(at, silent, W)[1].seen[0][1] for at in (own, changed))
    assert np.linalg.norm(before - after) > 1.2 * (2 * 0.7 / 6)


def test_it_promises_nothing_and_says_why():
    own = task()
    method = NBAFL.build(own, Budget(1.0, 1e-5), NBAFL.grid[0])
    assert "clipping does not give" in method.promise(own).caveats[0]
    assert method.promise(own).total(method.rounds, 1e-5) is None
    assert NBAFL.build(own, Budget(math.inf), NBAFL.grid[0]).promise(own).caveats
