"""GADMM on a chain: heads move, then tails, and it is the algorithm of its paper with f_p linearised."""

import math
from dataclasses import replace

import numpy as np
import pytest

from tacit.admm.messages import Broadcast
from tacit.methods.gadmm import ENTRY, GADMM
from tacit.methods.graph_admm import GraphADMM
from tacit.methods.method import Budget, simulate
from tacit.methods.network import circulant, path
from tacit.methods.task import Task, noise_std, noisy_gradients
from tacit.problem.domain import Ball
from tacit.problem.loss import Squared
from tacit.problem.objective import Problem
from tacit.problem.sensitivity import Clipped
from tacit.schedule import Constant, Cooling
from tacit.types import Norm, Shard
from tests.methods.tasks import empty, followed, task
from tests.methods.test_graph_admm import best, ridge, stiff


@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_without_noise_every_agent_of_a_chain_reaches_the_optimum_of_all_records(n):
    own = ridge(n)
    *_, (state, _, kept) = followed(own, GADMM(3001, 1e6, 0.0, stiff(own, 1.1), path(n)))
    np.testing.assert_allclose(state.own["z"], np.broadcast_to(best(own), own.zeros.shape), rtol=0, atol=1e-10)
    slopes = own.gradients(best(own), Clipped(Norm.L2, 1e6))
    np.testing.assert_allclose(kept["dual"], slopes, rtol=0, atol=1e-9)


def test_two_agents_by_hand():
    """One feature, one record each: x = 1, y = 1 and x = 1, y = 0; f'_p(z) = (z - y_p) / 2, rho = 1, c_p = z_q."""
    shards = tuple(Shard(np.ones((1, 1)), np.array([y]), dtype=np.float64) for y in (1.0, 0.0))
    own = Task.whole(shards, Problem(2, 0.5, loss=Squared(), beta=0.0), (1, 1), 1.0)
    told = [
        (state.own["z"].ravel(), kept["dual"].ravel())
        for state, _, kept in followed(own, GADMM(5, 10.0, 0.0, Constant(1.0), path(2)))
    ]
    # head: c = 0, f' = -1/2. tail: c = 1/2, f' = 1/4. Then dual = (1/4 - 1/2, 1/2 - 1/4)
    # head: c = 1/4, f' = -3/8, z = 1/4 - 1/4 + 3/8. tail: c = 3/8, f' = 3/16, z = 3/8 + 1/4 - 3/16
    # then dual = (-1/4 + 7/16 - 3/8, 1/4 + 3/8 - 7/16). head: c = 7/16, f' = -9/32, z = 7/16 - 3/16 + 9/32
    models = [(1 / 2, 0), (1 / 2, 1 / 4), (3 / 8, 1 / 4), (3 / 8, 7 / 16), (17 / 32, 7 / 16)]
    duals = [(0, 0), (0, 0), (-1 / 4, 1 / 4), (-1 / 4, 1 / 4), (-3 / 16, 3 / 16)]
    for (z, dual), z_wanted, dual_wanted in zip(told, models, duals, strict=True):
        np.testing.assert_allclose(z, z_wanted, atol=1e-15)
        np.testing.assert_allclose(dual, dual_wanted, atol=1e-15)


@pytest.mark.parametrize("n", [2, 5])
def test_it_is_the_algorithm_of_its_paper_with_a_multiplier_for_each_link(n):
    """The gradient is zero of f_p's linear part, <lambda_l, z_l - z_l+1>, e/2 |z_l - z_l+1|^2 and s_p/2 |z - z_p|^2."""
    own, rho, chain = replace(ridge(n), seed=5), 1.5, path(n)
    e, std = rho / chain.most, noise_std(own, 2.0, 0.4)
    z, links = own.zeros, np.zeros((n + 1, *own.shape))  # of links -1 to 0, 0 to 1, ...: the first and the last are not
    for state, info, kept in followed(own, GADMM(8, 0.4, 2.0, Constant(rho), chain)):
        asked, last = range((state.t + 1) % 2, n, 2), z
        z = state.own["z"]
        np.testing.assert_array_equal(info.seen[0], z[list(asked)])
        slope = noisy_gradients(own, chain.means(last, own.index, chain.most), 0.4, std, state.t)
        for p, near in enumerate(chain.neighbours):
            if p not in asked:
                np.testing.assert_array_equal(z[p], last[p])
                continue
            pulls = e * sum(z[p] - last[q] for q in near) + (rho - e * len(near)) * (z[p] - last[p])
            np.testing.assert_allclose(slope[p] + links[p + 1] - links[p] + pulls, 0, atol=1e-11)
        np.testing.assert_allclose(kept["dual"].sum(0), 0, atol=1e-11)
        np.testing.assert_allclose(kept["dual"], links[:-1] - links[1:], rtol=0, atol=1e-11)
        if state.t % 2 == 0:
            links[1:-1] += e * (z[:-1] - z[1:])


def test_the_duals_follow_from_what_was_released_whatever_the_penalty():
    """Whoever saw every message knows c_p and dual_p, and reads the noisy gradients off: nothing else is hidden."""
    own, rho, chain = replace(ridge(), seed=3), Cooling(1.5, 4), path(5)
    std, z, dual = noise_std(own, 2.0, 0.4), own.zeros, own.zeros
    for state, info in simulate(GADMM(8, 0.4, 2.0, rho, chain), own):
        c, k, asked = chain.means(z, own.index, 2), (state.t + 1) // 2, slice((state.t + 1) % 2, None, 2)
        dual = dual + (rho(k - 1) * (c - z) if state.t % 2 and k > 1 else 0)
        slope = dual[asked] - rho(k) * (info.seen[0] - c[asked])
        np.testing.assert_allclose(slope, noisy_gradients(own, c, 0.4, std, state.t)[asked], rtol=0, atol=1e-10)
        z = state.own["z"]


def test_a_disagreement_shrinks_by_the_singular_values_of_one_groups_means_of_the_other():
    """In a circle of eight these are cos(0) and cos(2 pi / 8)."""
    own = empty(ridge(8))
    own = replace(own, problem=replace(own.problem, beta=0.0))
    start, left = np.random.default_rng(0).normal(size=own.zeros.shape), {}
    for kind in (GADMM, GraphADMM):
        method = kind(80, 1.0, 0.0, Constant(1.0), circulant(8, 2))
        kept, z = {"z": start, "dual": own.zeros}, start
        for t in range(1, 81):
            to = np.arange((t + 1) % 2, 8, 2) if kind is GADMM else None
            kept, _ = method.answer(own, kept, Broadcast(t, z, to=to))
            z = kept["z"]
        left[kind] = float(np.abs(z - z.mean(0)).max())
    assert 1e-3 * math.cos(math.pi / 4) ** 40 < left[GADMM] < 100 * math.cos(math.pi / 4) ** 40
    assert left[GADMM] < left[GraphADMM] / 10  # of as many messages on every link, or fewer


def test_a_record_is_released_in_every_second_round():
    own = task()
    for rounds, releases in ((1, 1), (2, 1), (3, 2), (200, 100)):
        method = ENTRY.build(own, Budget(1.0, 1e-5), dict(ENTRY.grid[0], rounds=rounds))
        promise = method.promise(own)
        assert [count for _, count in promise.events(rounds)] == [releases]
        assert 0.99 < promise.total(rounds, 1e-5).epsilon <= 1.0
    sizes = [(info.seen[0].shape, info.sent) for _, info in simulate(replace(method, rounds=3), own)]
    assert sizes == [((2, 4, 3), 24.0), ((1, 4, 3), 24.0), ((2, 4, 3), 24.0)]


def test_agents_of_a_chain_stay_in_the_set():
    own = ridge()
    own = replace(own, problem=replace(own.problem, domain=Ball(0.02)))
    for state, info in simulate(GADMM(20, 1e3, 0.0, stiff(own, 1.1), path(5)), own):
        assert all(own.problem.domain.contains(z) for z in info.seen[0])
        assert own.problem.domain.contains(state.w)
