"""Several local steps a round: with one it is the paper's algorithm, with E it costs E."""

import numpy as np
import pytest

from tacit.admm.agent import Agent, Variant
from tacit.admm.messages import Order
from tacit.admm.rule import Objective, Prox, Trust
from tacit.methods import multilocal
from tacit.methods.method import Budget, simulate
from tacit.methods.multilocal import MultiLocal, noise_gain
from tacit.methods.task import noise_std, noisy_gradients
from tacit.privacy.mechanism import Gaussian
from tacit.problem.sensitivity import Clipped
from tacit.schedule import Constant, Cooling, Power
from tacit.types import Norm
from tests.conftest import federation
from tests.methods.tasks import of_the_paper, task

OBJP = Prox(Power(0.7, -0.5))
OBJT = Trust(Constant(0.05))
OBJT_L2 = Trust(Constant(0.3), Norm.L2)


@pytest.mark.parametrize("averaged", [True, False])
@pytest.mark.parametrize("rule", [OBJP, OBJT, OBJT_L2])
def test_one_local_step_is_the_algorithm_of_the_paper(rule, averaged):
    over = federation(sizes=(6, 6, 6))  # then all agents have noise of the same size
    own, rho = task(over), Cooling(1.5, 6)
    admm = Variant(rule, Objective(), Gaussian(2.0), Clipped(Norm.L2, 0.4), order=Order.ZWD)
    agents = [Agent(shard, own.problem, admm, (0, p)) for p, shard in enumerate(own.shards)]
    ours = simulate(MultiLocal(6, 0.4, 2.0, rho, rule, 1, averaged), own)
    for (state, info), (other, z) in zip(ours, of_the_paper(agents, own.shape, rho, Order.ZWD, 6), strict=True):
        np.testing.assert_allclose(state.w, other.w, rtol=0, atol=1e-12)
        np.testing.assert_allclose(info.seen[0], z, rtol=0, atol=1e-12)


def test_the_trust_region_binds_at_every_local_step():
    own = task()
    (_, info), *_ = simulate(MultiLocal(1, 0.4, 20.0, Constant(0.1), OBJT, 3, averaged=False), own)
    assert 0.05 < np.abs(info.seen[0]).max() <= 3 * 0.05


@pytest.mark.parametrize("averaged", [True, False])
def test_the_release_is_the_mean_of_the_local_steps_or_the_last(averaged):
    own, rho, eta = task(), 1.5, 0.7
    z, points = np.zeros((own.n_agents, *own.shape)), []
    for e in range(3):
        g = noisy_gradients(own, z, 0.4, noise_std(own, 2.0, 0.4), 1, e)
        z = (z / eta - g) / (rho + 1 / eta)
        points.append(z)
    (_, info), *_ = simulate(MultiLocal(1, 0.4, 2.0, Constant(rho), Prox(Constant(eta)), 3, averaged), own)
    np.testing.assert_allclose(info.seen[0], np.mean(points, axis=0) if averaged else z, rtol=0, atol=1e-12)


@pytest.mark.parametrize("entry", [multilocal.OBJP, multilocal.OBJT])
def test_a_round_costs_as_many_releases_as_it_has_local_steps(entry):
    own, budget = task(), Budget(1.0, 1e-5)
    many = entry.build(own, budget, dict(entry.grid[0], rounds=10, local_steps=5))
    promise = many.promise(own)
    assert [count for _, count in promise.each_round] == [5]
    assert 0.99 < promise.total(10, 1e-5).epsilon <= 1.0
    single = entry.build(own, budget, dict(entry.grid[0], rounds=50, local_steps=1))
    assert single.multiplier == many.multiplier
    assert single.promise(own).total(50, 1e-5) == promise.total(10, 1e-5)


def test_no_noise_promises_nothing():
    own = task()
    assert MultiLocal(1, 0.4, 0.0, Constant(1.0), OBJP, 3).promise(own).caveats


@pytest.mark.parametrize("averaged", [True, False])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.9])
def test_the_noise_a_release_carries_is_that_of_the_recursion(share, averaged):
    """Unit noise in one local step at a time, through u <- share u - n."""
    effects = []
    for noisy in range(4):
        u, points = 0.0, []
        for e in range(4):
            u = share * u - (e == noisy)
            points.append(u)
        effects.append(np.mean(points) if averaged else u)
    assert noise_gain(share, 4, averaged) == pytest.approx(np.linalg.norm(effects))


def test_the_share_divides_the_stiffness_between_the_penalty_and_the_proximal_term():
    own, choice = task(), dict(multilocal.OBJP.grid[0], rounds=10, share=0.8)
    method = multilocal.build(own, Budget(1.0), choice)
    for t in (1, 7):
        whole = method.rule.stiffness(method.rho(t), t)
        assert method.rho(t) == pytest.approx(0.2 * whole)
        assert 1 / method.rule.eta(t) == pytest.approx(0.8 * whole)
