"""What the updates must satisfy, whatever the data: the identities of the ADMM family."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.admm.agent import Agent, Variant
from tacit.admm.algorithm import Consensus
from tacit.admm.messages import Order
from tacit.admm.rule import Exact, Objective, Output, Point, Prox, Trust
from tacit.engine.plain import PlainEngine
from tacit.privacy.mechanism import Gaussian, Laplace, Silence
from tacit.problem.domain import Ball, Box, Everywhere
from tacit.problem.loss import Softmax, Squared, one_hot
from tacit.problem.objective import Problem
from tacit.problem.sensitivity import Clipped, Observed
from tacit.rounds import rounds as loop
from tacit.schedule import Constant, Power, Staircase
from tacit.types import Federation, Norm, Shard
from tests.conftest import federation

FREE = Trust(Constant(1e6))  # a trust region that never binds
LAPLACE = {"mechanism": Laplace.pure(1.0), "bound": Observed(Norm.L1)}
GAUSSIAN = {"mechanism": Gaussian(3.0), "bound": Clipped(Norm.L2, 0.5)}
SILENT = {"mechanism": Silence(), "bound": Observed(Norm.L2)}


def engine(over, rule, loss=None, domain=None, beta=1e-2, perturbation=None, order=Order.WZD, seed=0, noise=None):
    problem = Problem(over.n_agents, 1 / over.n_records, loss or Softmax(), beta=beta, domain=domain or Everywhere())
    variant = Variant(rule, perturbation or Objective(), order=order, **(noise or SILENT))
    agents = [Agent(shard, problem, variant, (seed, p)) for p, shard in enumerate(over.shards)]
    return PlainEngine([agents], (over.n_features, over.n_classes)), problem


def history(running, rho, rounds, order=Order.WZD):
    """[(state, agents' z, agents' duals)] after each round, the zeros of the start first."""
    server = Consensus(rounds, running.locals[0][0].z.shape, rho, order)
    steps = [(server.start(), *_stacked(running))]
    for ((state, _),) in loop([server], [server.start()], running.exchange_all):
        steps.append((state, *_stacked(running)))
    return steps


def _stacked(running):
    return tuple(np.stack([getattr(own, name) for own in running.locals[0]]) for name in ("z", "dual"))


def pooled_ridge(over, beta):
    """argmin sum_p f_p for squared loss, in closed form."""
    x = np.concatenate([shard.x for shard in over.shards]).astype(float)
    y = one_hot(np.concatenate([shard.y for shard in over.shards]), over.n_classes)
    n, j = x.shape
    return np.linalg.solve(x.T @ x / n + 2 * beta * np.eye(j), x.T @ y / n)


def gradients(running, problem, z):
    return np.stack([problem.gradient(u, agent.shard) for u, agent in zip(z, running.runs[0], strict=True)])


@given(seed=st.integers(0, 10**6))
def test_1_without_constraints_the_dual_is_the_noisy_gradient(seed):
    running, problem = engine(federation(seed=seed), FREE, noise=LAPLACE, seed=seed)
    steps = history(running, Constant(3.0), 4)
    for t, ((_, z, _), (_, _, dual)) in enumerate(pairwise(steps), start=1):
        gradient = gradients(running, problem, z)
        for p, agent in enumerate(running.runs[0]):
            scale = agent.calibration * agent.gradient(z[p], z[p])[1]
            noise = scale * agent.variant.mechanism.sample((seed, p), t, 0, z[p].shape).astype(float)
            np.testing.assert_allclose(dual[p], gradient[p] + noise, atol=1e-12)


@pytest.mark.parametrize("rho", [Constant(2.0), Power(2.0, 0.3), Staircase(2, 5, 2, 1.0)])
@pytest.mark.parametrize("rule", [FREE, Prox(Power(1, -0.5)), Trust(Constant(0.01))])
@given(seed=st.integers(0, 10**6))
def test_2_the_server_extrapolates_the_mean_of_the_local_models(rho, rule, seed):
    steps = history(engine(federation(seed=seed), rule, noise=LAPLACE)[0], rho, 6)
    for t in range(2, 6):
        before, now = steps[t - 1][1].mean(0), steps[t][1].mean(0)
        expected = now + rho(t) / rho(t + 1) * (now - before)
        np.testing.assert_allclose(steps[t + 1][0].w, expected, atol=1e-12)


@given(seed=st.integers(0, 10**6))
def test_3_the_mean_of_the_local_models_does_plain_gradient_descent(seed):
    over, rho = federation(seed=seed), 4.0
    running, problem = engine(over, FREE)
    steps = history(running, Constant(rho), 5)
    for (_, z, _), (_, after, _) in pairwise(steps):
        total = gradients(running, problem, z).sum(0)
        np.testing.assert_allclose(after.mean(0), z.mean(0) - total / (over.n_agents * rho), atol=1e-12)


@pytest.mark.parametrize("perturbation", [Objective(), Output()])
@given(seed=st.integers(0, 10**6))
def test_4_with_z_first_the_duals_sum_to_zero_and_w_is_the_plain_mean(perturbation, seed):
    rule = Prox(Power(1, -0.5))
    running, _ = engine(federation(seed=seed), rule, order=Order.ZWD, perturbation=perturbation, noise=GAUSSIAN)
    steps = history(running, Constant(2.0), 5, Order.ZWD)
    for state, z, dual in steps[1:]:
        np.testing.assert_allclose(state.w, z.mean(0), atol=1e-12)
        np.testing.assert_allclose(state.own["dual_mean"], 0, atol=1e-12)
        np.testing.assert_allclose(dual.sum(0), 0, atol=1e-12)


def test_5_exact_admm_reaches_the_pooled_ridge_optimum():
    over = federation(n_features=3)
    running, problem = engine(over, Exact(1.0), Squared(), beta=0.05)
    smoothness = max(problem.smoothness(shard) for shard in over.shards)
    running, _ = engine(over, Exact(smoothness, 0.1 / 3, tolerance=1e-13), Squared(), beta=0.05)
    w = history(running, Constant(0.3), 150)[-1][0].w
    np.testing.assert_allclose(w, pooled_ridge(over, 0.05), atol=1e-11)


@pytest.mark.parametrize(("eta", "rounds", "within"), [(Power(1, -0.5), 2000, 1e-6), (Constant(1.0), 1500, 1e-12)])
def test_5_inexact_admm_reaches_the_pooled_ridge_optimum(eta, rounds, within):
    over = federation(n_features=3)
    running, _ = engine(over, Prox(eta), Squared(), beta=0.5)
    w = history(running, Constant(0.5), rounds)[-1][0].w
    np.testing.assert_allclose(w, pooled_ridge(over, 0.5), atol=within)


@given(seed=st.integers(0, 10**6))
def test_6_one_agent_does_gradient_descent_with_step_one_over_rho(seed):
    running, problem = engine(federation(1, seed=seed), FREE)
    steps = history(running, Constant(2.5), 6)
    for (_, z, _), (_, after, _) in pairwise(steps):
        np.testing.assert_allclose(after, z - gradients(running, problem, z) / 2.5, atol=1e-12)


@pytest.mark.parametrize(("labels", "ratio", "stable"), [
    ([0, 1], 2.02, True), ([0, 1], 1.98, False), ([0, 0], 0.51, True), ([0, 0], 0.49, False),
])  # fmt: skip
def test_7_agents_that_disagree_need_rho_above_twice_their_curvature(labels, ratio, stable):
    """Deviations from the mean obey r^2 + k r - k = 0, k = L / rho; identical agents have none."""
    shards = tuple(Shard(np.ones((1, 1)), np.array([label])) for label in labels)
    running, problem = engine(Federation(shards, shards[0], 2), FREE, Squared(), beta=0.0)
    curvature = problem.smoothness(shards[0])
    _, z, _ = history(running, Constant(ratio * curvature), 4000)[-1]
    assert (np.abs(z).max() < 10) == stable


@pytest.mark.parametrize("domain", [Everywhere(), Box(0.05), Ball(0.05)])
@given(seed=st.integers(0, 10**6))
def test_output_noise_equals_objective_noise_exactly_when_nothing_binds(domain, seed):
    """algorithm OutP and ObjP with the same step coincide on all of R^{JxK}, and differ where W binds."""
    over = federation(seed=seed)
    rule = Prox(Power(1, -0.5))
    runs = [
        history(engine(over, rule, domain=domain, perturbation=kind, noise=GAUSSIAN)[0], Constant(2.0), 5)[-1][1]
        for kind in (Objective(), Output())
    ]
    same = np.allclose(*runs, atol=1e-12)
    assert same == isinstance(domain, Everywhere)
    assert all(domain.contains(z) for z in runs[0])


@pytest.mark.parametrize("order", list(Order))
@pytest.mark.parametrize("rule", [Prox(Power(1, -0.5)), Trust(Constant(0.1)), Trust(Constant(0.1), Norm.L2)])
@pytest.mark.parametrize("at", list(Point))
def test_the_server_knows_the_mean_of_the_duals_without_being_told(order, rule, at):
    from dataclasses import replace

    running, _ = engine(federation(), replace(rule, at=at), order=order, noise=LAPLACE)
    steps = history(running, Power(2.0, 0.1), 6, order)
    for n in range(1, 7):
        state, z, dual = steps[n]
        if order is Order.ZWD:  # agents catch up when the next broadcast brings w
            dual = dual + Power(2.0, 0.1)(n) * (state.w - z)
        np.testing.assert_allclose(state.own["dual_mean"], dual.mean(0), atol=1e-12)


def test_the_averaged_iterate_is_the_mean_of_every_w():
    steps = history(engine(federation(), FREE, noise=LAPLACE)[0], Constant(3.0), 7)
    np.testing.assert_allclose(steps[-1][0].average, np.mean([s.w for s, _, _ in steps[1:]], axis=0), atol=1e-14)


def test_noise_depends_on_seed_agent_and_round_not_on_the_order_of_agents():
    over = federation()
    forward, _ = engine(over, FREE, noise=LAPLACE)
    backward = PlainEngine([forward.runs[0][::-1]], (over.n_features, over.n_classes))
    _, z, _ = history(forward, Constant(3.0), 3)[-1]
    _, reversed_z, _ = history(backward, Constant(3.0), 3)[-1]
    np.testing.assert_allclose(z, reversed_z[::-1], atol=1e-13)


def test_a_radius_of_one_over_t_squared_moves_no_coordinate_further_than_its_sum():
    running, _ = engine(federation(), Trust(Power(0.01, -2)), noise=LAPLACE)
    _, z, _ = history(running, Constant(0.5), 300)[-1]
    assert np.abs(z).max() <= 0.01 * np.pi**2 / 6


@pytest.mark.parametrize("domain", [Box(0.03), Ball(0.1)])
@pytest.mark.parametrize("norm", [Norm.INF, Norm.L2])
def test_objective_noise_never_leaves_the_set(domain, norm):
    running, _ = engine(federation(), Trust(Constant(0.02), norm), domain=domain, noise=LAPLACE)
    for _, z, _ in history(running, Constant(0.5), 10):
        assert all(domain.contains(u) for u in z)


@pytest.mark.parametrize("domain", [Everywhere(), Box(0.2), Ball(0.3)])
def test_the_exact_step_satisfies_its_optimality_condition(domain):
    """z = Proj_W(z - gradient of the subproblem), to the tolerance."""
    from tacit.admm.messages import Broadcast, Local

    over, rng = federation(), np.random.default_rng(1)
    shape = (over.n_features, over.n_classes)
    running, problem = engine(over, Exact(1.0, tolerance=1e-11), domain=domain)
    own, msg = Local(np.zeros(shape), rng.normal(size=shape)), Broadcast(1, rng.normal(size=shape), 0.7)
    after, _, _ = running.runs[0][0].respond(own, msg)
    slope = problem.gradient(after.z, running.runs[0][0].shard) - own.dual + 0.7 * (after.z - msg.w)
    np.testing.assert_allclose(after.z, domain.project(after.z - slope), atol=1e-9)
