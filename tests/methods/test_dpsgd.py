"""Central DP-SGD: what it reduces to, what it releases, and what that costs."""

import math
from dataclasses import replace

import numpy as np
import pytest

from tacit.methods.gradient_descent import CENTRAL, DPSGD, lot_sums
from tacit.methods.method import Budget, simulate
from tacit.methods.promise import Trusted, Unit
from tacit.methods.task import poisson
from tacit.problem.sensitivity import ROOM
from tacit.schedule import LARGEST_STEP
from tacit.types import Shard
from tests.conftest import federation
from tests.methods.tasks import cooled_noise, empty, one_round, pooled_gradient, task

W = np.random.default_rng(1).normal(size=(4, 3))


def test_without_noise_clipping_and_sampling_it_is_gradient_descent():
    own = task(beta=0.1)
    method = DPSGD(rounds=5, rate=1.0, clip=1e3, multiplier=0.0, step=0.5)
    first = np.zeros(own.shape)
    for t, (state, _) in enumerate(simulate(method, own)):
        first = first - 0.5 * (1 - t / 5) * pooled_gradient(own, first)
        np.testing.assert_allclose(state.w, first, atol=1e-14)


def test_a_lot_is_clipped_record_by_record_and_divided_by_the_size_expected():
    own = task(beta=0.1)
    method = DPSGD(rounds=1, rate=0.4, clip=0.2, multiplier=0.0, step=1.0)
    total = np.zeros(own.shape)
    for p, shard in enumerate(own.shards):
        for i in poisson(own, p, 1, len(shard), 0.4):
            one = np.outer(shard.x[i], own.problem.loss.residual(shard.x[i : i + 1] @ W, shard.y[i : i + 1])[0])
            total += one * min(1, 0.2 * ROOM / np.linalg.norm(one))
    state, _ = one_round(own, method, W)
    np.testing.assert_allclose(state.w, W - (total / (0.4 * own.n_records) + 0.2 * W), atol=1e-14)


def test_the_noise_has_the_std_that_its_release_declares():
    own = task(beta=0.0)
    loud, mute = (DPSGD(rounds=1, rate=0.5, clip=0.2, multiplier=s, step=1.0) for s in (3.0, 0.0))
    noise = [
        (one_round(at, mute, W)[0].w - one_round(at, loud, W)[0].w) * 0.5 * own.n_records
        for at in (replace(own, seed=seed) for seed in range(500))
    ]
    assert np.std(noise) == pytest.approx(3 * 0.2, rel=0.03)  # 6,000 draws: 3.3 standard errors
    ((release, count),) = loud.promise(own).each_round
    assert (release.multiplier, release.rate, count) == (3.0, 0.5, 1)


def test_one_record_moves_the_sum_of_a_lot_by_at_most_the_clip():
    own = task()
    held = own.shards[1]
    for gone in range(len(held)):
        x = held.x.copy()
        x[gone] = 0  # a record that is not there, in its place: its coin and all others fall as before
        shards = (own.shards[0], Shard(x, held.y, dtype=np.float64), own.shards[2])
        with_it, without = (lot_sums(at, W, 0.2, 1, 0.7).sum(0) for at in (own, replace(own, shards=shards)))
        assert np.linalg.norm(with_it - without) <= 0.2


def test_each_record_falls_into_a_lot_by_a_coin_of_its_own():
    own, rate = task(), 0.3
    falls = np.zeros((4000, 10))
    for t in range(4000):
        falls[t, poisson(own, 0, t, 10, rate)] = 1
    error = math.sqrt(rate * (1 - rate) / 4000)
    assert np.abs(falls.mean(0) - rate).max() < 4.5 * error
    correlation = np.corrcoef(falls.T) - np.eye(10)
    assert np.abs(correlation).max() < 4.5 / math.sqrt(4000)


def test_lots_of_different_agents_rounds_and_steps_differ():
    own = task()
    lots = {tuple(poisson(own, p, t, 64, 0.5, e)) for p in range(3) for t in range(3) for e in range(3)}
    assert len(lots) == 27


def test_an_empty_lot_is_a_round_like_any_other():
    own = task()
    assert not lot_sums(own, W, 0.2, 1, 1e-9).any()


@pytest.mark.parametrize(("multiplier", "rounds", "epsilon"), [(1.0, 1000, 1.8282), (4.0, 10_000, 0.9470)])
def test_the_accountant_prices_it_as_published(multiplier, rounds, epsilon):
    method = DPSGD(rounds, 0.01, 1.0, multiplier, 1.0)
    assert method.promise(task()).total(rounds, 1e-5).epsilon == pytest.approx(epsilon, abs=2e-3)


@pytest.mark.parametrize("choice", [CENTRAL.grid[0], {"rounds": 40, "rate": 0.1, "clip": 0.5, "score_noise": 1.0}])
def test_it_spends_the_budget_and_no_more(choice):
    own = task()
    method = CENTRAL.build(own, Budget(1.0, 1e-5), choice)
    promise = method.promise(own)
    assert 0.99 < promise.total(method.rounds, 1e-5).epsilon <= 1.0
    assert (promise.unit, promise.trusted) == (Unit.RECORD, Trusted.CURATOR)


def test_a_score_gathers_the_noise_that_was_asked_for():
    own = task(federation(n_features=60, n_classes=10), beta=0.0)
    method = CENTRAL.build(own, Budget(1.0, 1e-5), {"rounds": 20, "rate": 0.1, "clip": 0.5, "score_noise": 1.5})
    ends = []
    for seed in range(8):
        *_, (state, _) = simulate(method, empty(own, seed))
        ends.append(state.w * own.row_norm)
    assert np.std(ends) == pytest.approx(1.5 * cooled_noise(20), rel=0.04)  # 4,800 draws: 3.9 standard errors


def test_only_the_model_leaves_the_curator():
    own = task()
    state, info = one_round(own, DPSGD(1, 0.5, 0.2, 1.0, 1.0), W)
    (seen,) = info.seen
    np.testing.assert_array_equal(seen, state.w)


def test_without_a_budget_it_says_so():
    method = CENTRAL.build(task(), Budget(math.inf), CENTRAL.grid[0])
    assert method.promise(task()).caveats
    assert method.step == LARGEST_STEP
