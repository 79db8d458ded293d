"""APPFL's IIADMM: two copies of the dual that agree, one array a round."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.admm.agent import Agent, Variant
from tacit.admm.messages import Order
from tacit.admm.rule import Objective, Point, Trust
from tacit.admm.updates import consensus
from tacit.methods.appfl import IIADMM, IIADMM_ENTRY
from tacit.methods.method import Budget, simulate
from tacit.methods.task import noise_std, noisy_gradients
from tacit.privacy.mechanism import Gaussian
from tacit.problem.sensitivity import Clipped
from tacit.schedule import Constant, Cooling
from tacit.types import Norm
from tests.conftest import federation
from tests.methods.tasks import followed, of_the_paper, task


@pytest.mark.parametrize("at", list(Point))
@pytest.mark.parametrize("local_steps", [1, 3])
@given(seed=st.integers(0, 10**6))
def test_agents_and_server_hold_the_same_duals_to_the_last_bit(at, local_steps, seed):
    own, method = task(seed=seed), IIADMM(6, 0.4, 2.0, Cooling(1.5, 6), local_steps, at)
    for state, _, agents in followed(own, method):
        assert (agents["dual"] == state.own["dual"]).all()


def test_the_server_needs_nothing_but_what_was_sent():
    """w and the server's duals follow from the messages alone."""
    own, rho = task(), Cooling(1.5, 6)
    w, dual = np.zeros(own.shape), np.zeros((own.n_agents, *own.shape))
    for state, info in simulate(IIADMM(6, 0.4, 2.0, rho), own):
        (sent,) = info.seen
        dual = dual + rho(state.t) * (w - sent)
        w = sent.mean(0) - dual.mean(0) / rho(state.t)
        assert (dual == state.own["dual"]).all()
        assert (w == state.w).all()


def test_an_agent_sends_one_model_a_round_however_many_steps_it_takes():
    own = task()
    for _, info in simulate(IIADMM(3, 0.4, 2.0, Constant(2.0), local_steps=3), own):
        assert [array.shape for array in info.seen] == [(own.n_agents, *own.shape)]
        assert info.sent == 4 * own.shape[0] * own.shape[1]


@pytest.mark.parametrize("at", list(Point))
def test_with_constant_rho_it_is_the_trust_rule_with_w_first(at):
    """tacit.admm counts the w that opens a round, this method the w that closes it."""
    over = federation(sizes=(6, 6, 6))  # then all agents have noise of the same size
    own, method = task(over), IIADMM(5, 0.4, 2.0, Constant(1.5), at=at)
    rule = Variant(Trust(Constant(1e6), at=at), Objective(), Gaussian(2.0), Clipped(Norm.L2, 0.4))
    agents = [Agent(shard, own.problem, rule, (0, p)) for p, shard in enumerate(own.shards)]
    theirs = of_the_paper(agents, own.shape, Constant(1.5), Order.WZD, 5)
    for (state, info), (other, z) in zip(simulate(method, own), theirs, strict=True):
        np.testing.assert_allclose(info.seen[0], z, rtol=0, atol=1e-12)
        after = consensus(other.own["z_mean"], other.own["dual_mean"], 1.5)
        np.testing.assert_allclose(state.w, after, rtol=0, atol=1e-12)


def test_at_w_the_dual_is_the_noisy_gradient_and_w_extrapolates_gradient_descent():
    own, rho = task(), 1.5
    std = noise_std(own, 2.0, 0.4)
    w, last = np.zeros(own.shape), 0.0
    for state, _ in simulate(IIADMM(6, 0.4, 2.0, Constant(rho)), own):
        g = noisy_gradients(own, w, 0.4, std, state.t)
        np.testing.assert_allclose(state.own["dual"], g, rtol=0, atol=1e-12)
        w = w - (2 * g - last).sum(0) / (own.n_agents * rho)
        np.testing.assert_allclose(state.w, w, rtol=0, atol=1e-12)
        last = g


def test_noise_added_after_the_dual_would_drive_the_two_duals_apart():
    """The published form: the agent's dual sees the clean z, the server's the noisy one."""
    own, rho, w = task(), 1.5, np.zeros(task().shape)
    gradient = noisy_gradients(own, w, 0.4, 0.0, 1)
    clean = w - gradient / rho
    agent, server = rho * (w - clean), rho * (w - (clean + 0.1 * own.agents_gaussian(1)))
    np.testing.assert_allclose(agent, gradient, rtol=0, atol=1e-14)
    assert np.abs(agent - server).max() > 0.1


@pytest.mark.parametrize("local_steps", [1, 4])
def test_every_local_step_is_accounted(local_steps):
    own, choice = task(), dict(IIADMM_ENTRY.grid[0], rounds=10, local_steps=local_steps)
    method = IIADMM_ENTRY.build(own, Budget(1.0, 1e-5), choice)
    promise = method.promise(own)
    assert [count for _, count in promise.each_round] == [local_steps]
    assert 0.99 < promise.total(10, 1e-5).epsilon <= 1.0
    assert IIADMM(3, 0.4, 0.0, Constant(1.0)).promise(own).caveats


def test_local_steps_draw_fresh_noise():
    own = task()
    two = IIADMM(1, 0.4, 2.0, Constant(1.5), local_steps=2)
    state, _ = next(simulate(two, own))
    noise = state.own["dual"] - noisy_gradients(own, _first(own), 0.4, 0.0, 1)
    np.testing.assert_allclose(noise, noise_std(own, 2.0, 0.4) * own.agents_gaussian(1, 1), rtol=0, atol=1e-12)


def _first(own):
    """z after the first of two local steps."""
    return -noisy_gradients(own, np.zeros(own.shape), 0.4, noise_std(own, 2.0, 0.4), 1, 0) / 1.5
