"""DP-FedAvg: what it reduces to, how far one agent moves it, and its noise."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.admm.messages import Broadcast
from tacit.methods.fedavg import DP_FEDAVG, DPFedAvg, LocalSGD, shrink
from tacit.methods.method import Budget
from tacit.methods.promise import Trusted, Unit
from tests.conftest import federation
from tests.methods.tasks import one_round, task

W = np.random.default_rng(1).normal(size=(4, 3))
LOCAL = LocalSGD(epochs=2, batch=3, step=0.5)


def test_without_noise_and_clipping_it_is_fedavg_with_equal_weights():
    own = task()
    state, _ = one_round(own, DPFedAvg(1, 1.0, 1e9, 0.0, LOCAL), W)
    np.testing.assert_allclose(state.w, LOCAL.models(own, Broadcast(1, W)).mean(0), atol=1e-14)


def test_the_noise_has_the_std_that_its_release_declares():
    own = task()
    loud, mute = (DPFedAvg(1, 0.5, 0.2, z, LocalSGD(1, 0, 0.5)) for z in (3.0, 0.0))
    noise = [
        one_round(at, loud, W)[0].w - one_round(at, mute, W)[0].w
        for at in (replace(own, seed=seed) for seed in range(500))
    ]
    assert np.std(noise) == pytest.approx(3 * 0.2 / (0.5 * 3), rel=0.03)  # 6,000 draws: 3.3 standard errors
    ((release, count),) = loud.promise(own).each_round
    assert (release.multiplier, release.rate, count) == (3.0, 0.5, 1)


@pytest.mark.parametrize("batch", [0, 3])
@pytest.mark.parametrize("gone", [0, 1, 2])
def test_an_agent_moves_the_sum_by_at_most_the_clip_whatever_its_records(batch, gone):
    own = task()
    huge = tuple(replace(s, x=50 * s.x) if p == gone else s for p, s in enumerate(own.shards))
    local, others = LocalSGD(3, batch, 5.0), np.delete(np.arange(3), gone)
    with_it = shrink(local.models(replace(own, shards=huge), Broadcast(1, W)) - W, 0.2).sum(0)
    without = shrink(local.models(own, Broadcast(1, W, to=others)) - W, 0.2).sum(0)
    assert np.linalg.norm(with_it - without) <= 0.2 * (1 + 1e-12)


def test_a_round_of_one_agent_moves_the_model_by_no_more_than_the_clip():
    own = task(federation(n_agents=1))
    state, _ = one_round(own, DPFedAvg(1, 1.0, 0.2, 0.0, LocalSGD(3, 0, 50.0)), W)
    assert 0.19 < np.linalg.norm(state.w - W) <= 0.2


@given(seed=st.integers(0, 10**6), size=st.floats(0.0, 1e6), clip=st.floats(1e-3, 1e3))
def test_shrinking_keeps_the_direction_and_what_is_short(seed, size, clip):
    own = size * np.random.default_rng(seed).normal(size=(2, 4, 3))
    for u, v in zip(own, shrink(own, clip), strict=True):
        assert np.linalg.norm(v) <= clip * (1 + 1e-12)
        np.testing.assert_allclose(v * max(np.linalg.norm(u), clip), u * clip, rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_an_update_that_is_not_finite_counts_as_none(bad):
    updates = np.stack([W, W])
    updates[0, 1, 2] = bad
    np.testing.assert_array_equal(shrink(updates, 100.0), np.stack([0 * W, W]))


def test_a_round_nobody_joins_adds_noise_alone():
    own = task()
    for batch in (0, 3):
        method = DPFedAvg(1, 1e-9, 1e-9, 1.0, LocalSGD(1, batch, 0.5))
        state, _ = one_round(own, method, W)
        np.testing.assert_allclose(state.w, W + own.gaussian(3, 1) / 3, atol=1e-12)


def test_only_the_model_is_seen_and_not_who_took_part():
    own = task()
    state, info = one_round(own, DPFedAvg(1, 0.5, 0.2, 1.0, LOCAL), W)
    (seen,) = info.seen
    np.testing.assert_array_equal(seen, state.w)
    assert {one_round(own, DPFedAvg(1, 0.5, 0.2, 1.0, LOCAL), W, t)[1].sent for t in range(1, 10)} == {4 * 12 * 0.5}


@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_it_spends_the_budget_and_no_more_on_a_whole_agent(rate):
    own = task()
    method = DP_FEDAVG.build(own, Budget(1.0, 1e-5), DP_FEDAVG.grid[0] | {"rounds": 20, "rate": rate})
    promise = method.promise(own)
    assert 0.99 < promise.total(method.rounds, 1e-5).epsilon <= 1.0
    assert (promise.unit, promise.trusted) == (Unit.CLIENT, Trusted.SERVER)


def test_without_a_budget_it_says_so():
    assert DP_FEDAVG.build(task(), Budget(math.inf), DP_FEDAVG.grid[0]).promise(task()).caveats
