"""FedAvg and FedProx: what they reduce to, and where the local solve ends."""

from dataclasses import replace

import numpy as np
import pytest

from tacit.admm.messages import Broadcast
from tacit.methods.fedavg import FEDAVG, FEDPROX, FedProx, LocalSGD, drawn, weighted_mean
from tacit.methods.method import TRIALS, Budget
from tacit.problem.loss import Squared, one_hot
from tests.methods.tasks import one_round, pooled_gradient, task

W = np.random.default_rng(1).normal(size=(4, 3))


def after(own, method, w=W):
    """The model one round makes of w."""
    return one_round(own, method, w)[0].w


def test_one_epoch_of_one_batch_at_every_agent_is_a_gradient_step_on_the_pooled_objective():
    own = task(beta=0.1)
    moved = after(own, FedProx(1, 1.0, LocalSGD(epochs=1, batch=0, step=0.7)))
    np.testing.assert_allclose(moved, W - 0.7 * pooled_gradient(own, W), atol=1e-14)


@pytest.mark.parametrize("batch", [0, 3])
def test_fedprox_without_a_proximal_term_is_fedavg(batch):
    """FedAvg written out: SGD at the agents that were drawn, and the mean of their models by numbers of records."""
    own = task(beta=0.1)
    common = {"rounds": 3, "fraction": 0.7, "epochs": 2, "batch": batch, "step": 0.5}
    total, weight = 0.0, 0
    for p in drawn(own, 1, 0.7):
        shard, u, n = own.shards[p], W, len(own.shards[p])
        for epoch in range(2):
            order = np.argsort(own.uniform(p, 1, n, epoch))
            for rows in (order[at : at + (batch or n)] for at in range(0, n, batch or n)):
                x, y = shard.x[rows], shard.y[rows]
                u = u - 0.5 * (x.T @ own.problem.loss.residual(x @ u, y) / len(rows) + 0.1 * 2 * u)
        total, weight = total + n * u, weight + n
    for made in (FEDAVG, FEDPROX):
        method = made.build(own, Budget(1.0), common | ({"mu": 0.0} if made is FEDPROX else {}))
        np.testing.assert_allclose(after(own, method), total / weight, rtol=0, atol=1e-13)


@pytest.mark.parametrize("batch", [0, 3])
def test_without_a_proximal_term_a_local_step_is_one_of_sgd(batch):
    own = task(beta=0.1)
    u, n = W, len(own.shards[1])
    orders = [np.argsort(own.uniform(1, 4, n, epoch)) for epoch in range(2)]
    for rows in (order[at : at + (batch or n)] for order in orders for at in range(0, n, batch or n)):
        x, y = own.shards[1].x[rows], own.shards[1].y[rows]
        u = u - 0.5 * (x.T @ own.problem.loss.residual(x @ u, y) / len(rows) + 0.1 * 2 * u)
    made = LocalSGD(epochs=2, batch=batch, step=0.5).models(own, Broadcast(4, W, to=np.array([1])))
    np.testing.assert_allclose(made[0], u, atol=1e-14)


@pytest.mark.parametrize("batch", [0, 3])
def test_an_infinite_proximal_term_keeps_the_model_where_it_was(batch):
    own = task()
    for mu in (1e6, 1e12):
        moved = after(own, FedProx(1, 1.0, LocalSGD(epochs=3, batch=batch, step=2.0, mu=mu)))
        assert np.abs(moved - W).max() < 3 / mu


@pytest.mark.parametrize("mu", [0.0, 0.5, 20.0])
def test_with_the_squared_loss_the_local_solve_ends_at_the_ridge_solution(mu):
    own = task(beta=0.05)
    own = replace(own, problem=replace(own.problem, loss=Squared()))
    models = LocalSGD(epochs=1500, batch=0, step=0.3, mu=mu).models(own, Broadcast(1, W))
    for shard, u in zip(own.shards, models, strict=True):
        n = len(shard)
        left = shard.x.T @ shard.x / n + (2 * 0.05 + mu) * np.eye(4)
        right = shard.x.T @ one_hot(shard.y, 3) / n + mu * W
        np.testing.assert_allclose(u, np.linalg.solve(left, right), atol=1e-10)


def test_agents_are_drawn_without_replacement_and_all_take_part_in_time():
    own = task()
    sets = [drawn(own, t, 2 / 3) for t in range(1, 40)]
    assert all(len(set(agents)) == 2 for agents in sets)
    assert {tuple(agents) for agents in sets} == {(0, 1), (0, 2), (1, 2)}
    assert len(drawn(own, 1, 0.01)) == 1


def test_those_drawn_are_averaged_by_their_numbers_of_records():
    own = task()
    method = FedProx(1, 2 / 3, LocalSGD(epochs=1, batch=4, step=0.5))
    state, info = one_round(own, method, W)
    agents = drawn(own, 1, 2 / 3)
    share = np.array([len(own.shards[p]) for p in agents]) / sum(len(own.shards[p]) for p in agents)
    np.testing.assert_allclose(state.w, np.einsum("p,pjk->jk", share, info.seen[0]), atol=1e-14)
    assert info.sent == pytest.approx(4 * 12 * 2 / 3)


def test_equal_models_average_to_themselves():
    own = task()
    np.testing.assert_allclose(weighted_mean(own, np.stack([W, W]), np.array([0, 2])), W, atol=1e-15)


@pytest.mark.parametrize("entry", [FEDAVG, FEDPROX], ids=lambda entry: entry.name)
def test_no_budget_makes_it_private(entry):
    own = task()
    method = entry.build(own, Budget(1.0), entry.grid[0])
    assert method.promise(own).caveats
    assert method.promise(own).total(method.rounds, 1e-5) is None
    assert len(entry.grid) == TRIALS
