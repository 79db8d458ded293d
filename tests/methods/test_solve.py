"""Solves end where they say, on the minimiser that a closed form or the optimality condition gives."""

from dataclasses import replace

import numpy as np
import pytest

from tacit.errors import TacitError
from tacit.methods import solve
from tacit.methods.solve import convexity, minimise
from tacit.methods.task import Task, plain_sums
from tacit.problem.loss import Squared
from tacit.problem.objective import Problem
from tacit.types import Shard
from tests.conftest import federation
from tests.methods.tasks import pooled_gradient, task


def squared_task() -> Task:
    base = task()
    problem = Problem(base.n_agents, base.problem.weight, Squared(), beta=1e-3)
    return Task.whole(base.shards, problem, base.shape, base.row_norm)


def test_with_the_squared_loss_every_agent_finds_its_ridge_solution():
    own, rho = squared_task(), 0.3
    target = np.random.default_rng(0).normal(size=(own.n_agents, *own.shape))
    found = minimise(own, lambda u: rho * (u - target), rho, np.zeros(target.shape), 1e-11)
    for shard, goal, z in zip(own.shards, target, found, strict=True):
        left = own.problem.weight * shard.x.T @ shard.x + convexity(own, rho) * np.eye(own.shape[0])
        right = own.problem.weight * shard.x.T @ np.eye(own.shape[1])[shard.y] + rho * goal
        np.testing.assert_allclose(z, np.linalg.solve(left, right), atol=1e-10)


@pytest.mark.parametrize("tau", [1e-2, 1e-6, 1e-11])
def test_every_gradient_is_below_the_tolerance_and_the_minimiser_within_its_reach(tau):
    own, rho = task(), 0.01
    rest, start = (lambda u: rho * (u - 1)), np.zeros((own.n_agents, *own.shape))
    found, exact = (minimise(own, rest, rho, start, t) for t in (tau, 1e-12))
    for shard, z, true in zip(own.shards, found, exact, strict=True):
        assert np.linalg.norm(own.problem.gradient(z, shard) + rest(z)) <= tau
        assert np.linalg.norm(z - true) <= (tau + 1e-12) / convexity(own, rho)


def test_a_pooled_solve_is_of_the_pooled_objective():
    own, lam = task(), 0.01
    w = minimise(own, lambda u: lam * u, lam, np.zeros((1, *own.shape)), 1e-10, pooled=True)[0]
    assert np.linalg.norm(pooled_gradient(own, w) + lam * w) <= 1e-10
    assert convexity(own, lam, pooled=True) == pytest.approx(lam + 2 * own.problem.beta)


def test_fast_sums_that_err_change_where_a_solve_goes_but_not_what_is_certified():
    def rough(shards, problem, points, bound):
        return plain_sums(shards, problem, points, bound) * (1 + 1e-3)

    base, rho, tau = task(), 0.1, 1e-9
    own = replace(base, sums=rough)
    z = minimise(own, lambda u: rho * (u - 1), rho, np.zeros((own.n_agents, *own.shape)), tau)
    for shard, u in zip(own.shards, z, strict=True):
        assert np.linalg.norm(own.problem.gradient(u, shard) + rho * (u - 1)) <= tau


def test_float32_records_are_summed_in_float64_by_blocks(monkeypatch):
    monkeypatch.setattr(solve, "BLOCK", 3)
    shards = tuple(Shard(shard.x, shard.y) for shard in federation().shards)
    own = Task.whole(shards, task().problem, task().shape, task().row_norm)
    w = np.random.default_rng(1).normal(size=own.shape)
    found = solve.double_sums(own.shards, own.problem, w, None)
    assert found.dtype == np.float64
    for shard, total in zip(own.shards, found, strict=True):
        x = shard.x.astype(np.float64)
        np.testing.assert_allclose(total, x.T @ own.problem.loss.residual(x @ w, shard.y), rtol=1e-13)


def test_what_cannot_be_reached_is_refused_rather_than_returned():
    own = task()
    with pytest.raises(TacitError, match="above 1e-25"):
        minimise(own, lambda u: u - 1, 1.0, np.zeros((own.n_agents, *own.shape)), 1e-25)


def test_the_gradient_that_certifies_is_that_of_the_point_returned_even_where_no_step_is_short_enough():
    asked = []

    def uphill(u):
        asked.append(u)
        return np.full(u.shape, 2.0 + len(asked))

    u, way = np.zeros((1, 2, 2)), np.ones((1, 2, 2))
    ahead, after = solve._along(uphill, u, way, np.full((1, 1, 1), -1.0))
    assert len(asked) == solve.TRIES
    np.testing.assert_array_equal(ahead, asked[-1])
    np.testing.assert_array_equal(after, 2.0 + len(asked))


def test_where_a_solve_ends_is_no_other_agents_business():
    base, rho = task(), 1e-4
    shards = (replace(base.shards[0], x=0 * base.shards[0].x), *base.shards[1:])
    rest, start = (lambda u: rho * (u - 1)), np.zeros((base.n_agents, *base.shape))
    with_it, without = (minimise(own, rest, rho, start, 1e-6) for own in (base, replace(base, shards=shards)))
    assert np.abs(with_it[0] - without[0]).max() > 1e-3
    np.testing.assert_array_equal(with_it[1:], without[1:])
