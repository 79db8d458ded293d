"""Behind a secure sum: the server sees totals, and their noise is one release's."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.admm.rule import Point
from tacit.errors import IncompatibleError, SpecError
from tacit.methods import secure_sum
from tacit.methods.method import Budget, simulate
from tacit.methods.promise import Trusted
from tacit.methods.secure_sum import SecureSum
from tacit.methods.task import noise_std
from tacit.problem.sensitivity import Clipped
from tacit.schedule import Constant, Cooling
from tacit.types import Federation, Norm, Shard
from tests.conftest import federation
from tests.methods.tasks import pooled_gradient, task


@given(seed=st.integers(0, 10**6), colluding=st.integers(0, 2))
def test_the_sums_are_those_of_gradient_descent_on_noisy_sums(seed, colluding):
    """w - sum_p (f'_p(w) + xi_p) / (P rho): no dual and no z_p is in what is seen."""
    own, rho = task(seed=seed), Cooling(1.5, 6)
    std = noise_std(own, 2.0, 0.4) / np.sqrt(3 - colluding)
    w = np.zeros(own.shape)
    for state, info in simulate(SecureSum(6, 0.4, 2.0, rho, colluding), own):
        total = (own.gradients(w, Clipped(Norm.L2, 0.4)) + std * own.agents_gaussian(state.t)).sum(0)
        w = w - total / (3 * rho(state.t))
        (seen,) = info.seen
        np.testing.assert_allclose(seen, 3 * w, rtol=0, atol=1e-12)
        np.testing.assert_allclose(state.w, w, rtol=0, atol=1e-12)


def test_only_the_sum_is_seen():
    own = task()
    for _, info in simulate(SecureSum(3, 0.4, 2.0, Constant(1.5), 1), own):
        assert [array.shape for array in info.seen] == [own.shape]


@pytest.mark.parametrize("colluding", [0, 2])
def test_the_agents_that_do_not_collude_have_the_noise_of_one_release_together(colluding):
    own = task()
    share = secure_sum.share_std(own, 2.0, 0.4, colluding)
    assert (3 - colluding) * share**2 == pytest.approx(noise_std(own, 2.0, 0.4) ** 2)


def test_the_noise_of_the_sum_has_its_declared_variance():
    own, rounds, rho = task(), 400, 1.5
    method = SecureSum(rounds, 0.4, 2.0, Constant(rho), 0)
    w, noise = np.zeros(own.shape), []
    for state, info in simulate(method, own):
        clean = own.gradients(w, Clipped(Norm.L2, 0.4)).sum(0)
        noise.append(rho * (3 * w - info.seen[0]) - clean)
        w = state.w
    n = np.size(noise)
    ratio = np.mean(np.square(noise)) / noise_std(own, 2.0, 0.4) ** 2
    assert abs(ratio - 1) < 5 * np.sqrt(2 / n)


def test_without_noise_a_round_is_one_gradient_step_on_the_pooled_loss():
    own, method = task(), SecureSum(5, 1e3, 0.0, Constant(0.7), 0)
    state, _ = next(simulate(method, own))
    np.testing.assert_allclose(state.w, -pooled_gradient(own, np.zeros(own.shape)) / (3 * 0.7), rtol=0, atol=1e-14)
    assert method.promise(own).caveats


def test_linearising_at_a_hidden_z_is_refused():
    with pytest.raises(IncompatibleError, match="hidden z_p"):
        SecureSum(5, 0.4, 2.0, Constant(1.0), 0, at=Point.LOCAL)


def test_a_gradient_at_a_hidden_z_would_move_by_many_times_the_clip():
    """Why: one record moves z_p, and the gradients of all others are taken there."""
    bound, rho, weight = Clipped(Norm.L2, 0.5), 0.002, 1 / 41
    with_it, without = _balanced(41, weight), _balanced(40, weight)
    w = np.zeros(with_it.shape)
    at_w = [own.gradients(w, bound)[0] for own in (with_it, without)]
    assert np.linalg.norm(at_w[0] - at_w[1]) <= 0.5 * weight
    hidden = [w - gradient / rho for gradient in at_w]  # the next z_p, less a noise that the sum hides
    at_z = [own.gradients(z, bound)[0] for own, z in zip((with_it, without), hidden, strict=True)]
    assert np.linalg.norm(at_z[0] - at_z[1]) > 10 * 0.5 * weight


def _balanced(n, weight):
    """One agent with n equal records, every second one of class 1."""
    shard = Shard(np.ones((n, 1)), np.arange(n) % 2)
    own = task(Federation((shard,), shard, 2))
    return replace(own, problem=replace(own.problem, weight=weight, beta=0.0))


def test_all_agents_cannot_collude():
    own, method = task(), SecureSum(5, 0.4, 2.0, Constant(1.0), 3)
    with pytest.raises(SpecError, match="cannot collude"):
        next(simulate(method, own))


def test_it_trusts_the_sum_and_spends_the_budget():
    own = task()
    method = secure_sum.build(own, Budget(1.0, 1e-5), secure_sum.ENTRY.grid[0])
    promise = method.promise(own)
    assert promise.trusted is Trusted.SUM
    assert 0.99 < promise.total(method.rounds, 1e-5).epsilon <= 1.0


def test_one_agent_alone_still_has_all_of_its_noise():
    own = task(federation(n_agents=1))
    method = secure_sum.build(own, Budget(1.0), secure_sum.ENTRY.grid[0])
    assert method.colluding == 0
    assert secure_sum.share_std(own, 2.0, 0.4, 0) == noise_std(own, 2.0, 0.4)
