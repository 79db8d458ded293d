"""Without noise, exact ADMM; its noise covers what a record, and the end of a solve, can move."""

from itertools import islice

import numpy as np
import pytest

from tacit.methods.exact_admm import PVP, PrimalPerturbation
from tacit.methods.method import Budget, simulate
from tacit.methods.promise import Unit
from tacit.methods.solve import convexity
from tacit.methods.task import Task
from tacit.problem.loss import Squared
from tacit.problem.objective import Problem
from tacit.problem.sensitivity import Adjacency
from tacit.schedule import Constant
from tacit.types import Shard
from tests.methods.tasks import followed, pooled_gradient, task


def run(own, method, rounds):
    """The state and the info after some rounds."""
    return next(islice(simulate(method, own), rounds - 1, None))


def test_without_noise_it_converges_to_the_pooled_optimum():
    own = task(beta=0.1)
    state, _ = run(own, PrimalPerturbation(60, 0.0, Constant(0.2), tolerance=1e-9), 60)
    assert np.linalg.norm(pooled_gradient(own, state.w)) < 1e-8


def test_with_the_squared_loss_it_converges_to_the_ridge_solution():
    base = task()
    problem = Problem(base.n_agents, base.problem.weight, Squared(), beta=0.1)
    own = Task.whole(base.shards, problem, base.shape, base.row_norm)
    state, _ = run(own, PrimalPerturbation(60, 0.0, Constant(0.2), tolerance=1e-9), 60)
    x, y = np.concatenate([s.x for s in own.shards]), np.concatenate([s.y for s in own.shards])
    left = problem.weight * x.T @ x + 0.2 * np.eye(own.shape[0])
    np.testing.assert_allclose(state.w, np.linalg.solve(left, problem.weight * x.T @ np.eye(3)[y]), atol=1e-8)


def test_duals_add_up_to_zero_and_follow_from_what_was_sent():
    own = task()
    method = PrimalPerturbation(5, 3.0, Constant(0.2))
    (state, info, before), (_, _, after), *_ = followed(own, method)
    np.testing.assert_allclose(after["dual"].sum(0), 0, atol=1e-12)
    (z,) = info.seen
    np.testing.assert_allclose(state.w, z.mean(0), atol=1e-12)
    np.testing.assert_allclose(after["dual"], before["dual"] + 0.2 * (state.w - z), atol=1e-12)


@pytest.mark.parametrize("adjacency", Adjacency)
def test_no_record_moves_a_minimiser_further_than_the_noise_is_made_for(adjacency):
    own, rho = task(), 0.05
    method = PrimalPerturbation(5, 1.0, Constant(rho), adjacency=adjacency)
    silent = PrimalPerturbation(5, 0.0, Constant(rho))
    (z,) = run(own, silent, 1)[1].seen
    furthest = 0.0
    for i in range(len(own.shards[0])):
        first = own.shards[0]
        if adjacency is Adjacency.ZERO_OUT:
            changed = Shard(np.delete(first.x, i, 0), np.delete(first.y, i), dtype=np.float64)
        else:
            x, y = first.x.copy(), first.y.copy()
            x[i], y[i] = 1.0, (y[i] + 1) % 3
            changed = Shard(x, y, dtype=np.float64)
        other = Task.whole((changed, *own.shards[1:]), own.problem, own.shape, own.row_norm)
        furthest = max(furthest, np.linalg.norm(run(other, silent, 1)[1].seen[0][0] - z[0]))
    assert 0.02 * method.noise_std(own, rho) < furthest <= method.noise_std(own, rho)


def test_its_noise_has_the_std_that_the_sensitivity_asks_for():
    own, rho = task(), 0.3
    method, silent = (PrimalPerturbation(5, m, Constant(rho)) for m in (4.0, 0.0))
    (z,), (clean,) = run(own, method, 1)[1].seen, run(own, silent, 1)[1].seen
    c = own.problem.weight * own.row_norm * np.sqrt(2)
    np.testing.assert_allclose(z - clean, 4 * 1.02 * c / convexity(own, rho) * own.agents_gaussian(1), rtol=1e-4)


def test_it_spends_the_budget_and_no_more_and_says_who_is_protected():
    own = task()
    method = PVP.build(own, Budget(1.0, 1e-5), PVP.grid[0])
    assert 0.99 < method.promise(own).total(method.rounds, 1e-5).epsilon <= 1.0
    replaced = PrimalPerturbation(5, 1.0, Constant(1.0), adjacency=Adjacency.REPLACE_ONE)
    assert replaced.promise(own).unit is Unit.REPLACED
    assert PVP.build(own, Budget(np.inf), PVP.grid[0]).promise(own).caveats
