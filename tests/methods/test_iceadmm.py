"""APPFL's ICEADMM: what it sends holds the records through noisy gradients alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.admm.rule import Point
from tacit.methods.appfl import ICEADMM, ICEADMM_ENTRY, IIADMM
from tacit.methods.method import Budget, simulate
from tacit.methods.task import noise_std, noisy_gradients
from tacit.schedule import Constant, Cooling
from tests.methods.tasks import pooled_gradient, task


@pytest.mark.parametrize("at", list(Point))
@given(seed=st.integers(0, 10**6))
def test_without_zeta_the_dual_it_sends_is_minus_the_noisy_gradient(at, seed):
    own, rho = task(seed=seed), Cooling(1.5, 5)
    std = noise_std(own, 2.0, 0.4)
    method = ICEADMM(5, 0.4, 2.0, rho, at=at)
    w, z = np.zeros(own.shape), own.zeros
    for state, info in simulate(method, own):
        point = w if at is Point.GLOBAL else z
        np.testing.assert_allclose(info.seen[1], -noisy_gradients(own, point, 0.4, std, state.t), rtol=0, atol=1e-12)
        w, z = state.w, info.seen[0]


def test_noise_on_z_alone_would_send_the_exact_clipped_gradient():
    """The published form: a dual of clean gradients travels beside z + noise."""
    own, rho = task(), 1.5
    w = z = np.full(own.shape, 0.1)
    pi = np.full((own.n_agents, *own.shape), 0.05)
    clipped = noisy_gradients(own, w, 0.4, 0.0, 1)
    z = z - (rho * (z - w) + clipped + pi) / rho
    pi = pi + rho * (z - w)
    sent = (z + 0.1 * own.agents_gaussian(1), pi)
    np.testing.assert_allclose(sent[1], -clipped, rtol=0, atol=1e-14)


def test_without_zeta_it_is_iiadmm_with_the_dual_of_the_other_sign():
    own, rho = task(), Cooling(1.5, 6)
    pairs = zip(simulate(ICEADMM(6, 0.4, 2.0, rho), own), simulate(IIADMM(6, 0.4, 2.0, rho), own), strict=True)
    for (one, info), (other, _) in pairs:
        np.testing.assert_allclose(one.w, other.w, rtol=0, atol=1e-12)
        np.testing.assert_allclose(info.seen[1], -other.own["dual"], rtol=0, atol=1e-12)


@pytest.mark.parametrize("zeta", [0.0, 0.7])
def test_the_server_needs_nothing_but_what_was_sent(zeta):
    own = task()
    for state, info in simulate(ICEADMM(4, 0.4, 2.0, Constant(1.5), zeta), own):
        z, pi = info.seen
        np.testing.assert_allclose(state.w, (z + pi / 1.5).mean(0), rtol=0, atol=1e-14)


@pytest.mark.parametrize("zeta", [0.0, 0.7])
def test_without_noise_it_reaches_the_optimum(zeta):
    own = task(beta=0.1)
    *_, (state, _) = simulate(ICEADMM(600, 1e3, 0.0, Constant(1.5), zeta), own)
    np.testing.assert_allclose(pooled_gradient(own, state.w), 0, atol=1e-6)


def test_an_agent_sends_two_models_a_round():
    own = task()
    for _, info in simulate(ICEADMM(3, 0.4, 2.0, Constant(2.0), 0.5, local_steps=2), own):
        assert [array.shape for array in info.seen] == 2 * [(own.n_agents, *own.shape)]
        assert info.sent == 2 * 4 * 12


def test_several_local_steps_leave_every_noise_in_the_dual():
    """With zeta the dual adds up local steps: change the noise of any one, and what is sent changes."""
    own, rho, zeta, std = task(), 1.5, 0.7, noise_std(task(), 2.0, 0.4)
    (_, info), *_ = simulate(ICEADMM(1, 0.4, 2.0, Constant(rho), zeta, local_steps=2), own)
    first = noisy_gradients(own, np.zeros(own.shape), 0.4, std, 1, 0)
    z1 = -first / (rho + zeta)
    second = noisy_gradients(own, z1, 0.4, std, 1, 1)
    z2 = z1 - (rho * z1 + second + rho * z1) / (rho + zeta)
    np.testing.assert_allclose(info.seen[1], rho * (z1 + z2), rtol=0, atol=1e-12)


@pytest.mark.parametrize("local_steps", [1, 4])
def test_every_local_step_is_accounted(local_steps):
    own, choice = task(), dict(ICEADMM_ENTRY.grid[0], rounds=10, local_steps=local_steps)
    promise = ICEADMM_ENTRY.build(own, Budget(1.0, 1e-5), choice).promise(own)
    assert [count for _, count in promise.each_round] == [local_steps]
    assert 0.99 < promise.total(10, 1e-5).epsilon <= 1.0
    assert ICEADMM(3, 0.4, 0.0, Constant(1.0)).promise(own).caveats
