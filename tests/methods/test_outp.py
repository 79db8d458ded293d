"""Huang's DP-ADMM: its calibration, its order of updates, and the released code beside it."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.admm.agent import Agent, Variant
from tacit.admm.messages import Order
from tacit.admm.rule import Objective, Prox
from tacit.errors import IncompatibleError
from tacit.methods import outp
from tacit.methods.method import Budget, simulate
from tacit.methods.promise import Unit
from tacit.privacy.mechanism import Silence
from tacit.problem.loss import Squared
from tacit.problem.sensitivity import Observed
from tacit.run.build import setup
from tacit.run.presets import preset
from tacit.schedule import Constant, HuangStep, Staircase
from tacit.types import Norm
from tests.conftest import federation
from tests.methods.tasks import of_the_paper, task

EQUAL = federation(sizes=(6, 6, 6))  # then all agents have the same eta


def of_preset(name, over, rounds, change=lambda agent: agent, **values):
    """w after each round of a preset's OutP, in the plain engine."""
    values = {"problem.beta": 1e-3, "run.engine": "plain", "run.rounds": rounds, **values}
    built = setup(preset(name, "outp").with_values(values), over)
    agents = [*map(change, built.agents)]
    return [state.w for state, _ in of_the_paper(agents, built.shape, built.rho, built.server.order, rounds)]


def test_the_noise_times_the_stiffness_is_the_same_in_every_round_and_every_agent():
    own, method = task(), outp.OutP(rounds=9, multiplier=2.0, rho=0.3, c_w=5.0)
    expected = 2.0 * 2 * own.gradient_bound / own.n_records
    w, z = np.zeros(own.shape), own.zeros
    dual = own.zeros
    for state, _ in simulate(method, own):
        eta = method.eta(own, state.t)
        slope = own.gradients(z, outp.record_bound(own))
        clean = (0.3 * w + dual - slope + z / eta) / (0.3 + 1 / eta)
        noise = (clean - state.own["z"]) / own.agents_gaussian(state.t)
        np.testing.assert_allclose(noise * (0.3 + 1 / eta), expected, rtol=1e-4)  # the rest is room for float32 sums
        w, z, dual = state.w, state.own["z"], state.own["dual"]


def test_the_step_is_huangs_with_declared_constants():
    own, method = task(EQUAL), outp.OutP(rounds=9, multiplier=2.0, rho=0.3, c_w=5.0)
    s = 2.0 * 2 * own.gradient_bound / own.n_records
    c3, c4 = own.row_norm**2 / 2, 2.0
    for k in (1, 7):
        expected = c3 / 3 + own.problem.beta / 3 * c4 + math.sqrt(2 * 12 * k) * s / 5.0
        np.testing.assert_allclose(1 / method.eta(own, k), expected, rtol=1e-4)


@given(seed=st.integers(0, 10**6))
def test_the_duals_sum_to_zero_and_w_is_the_plain_mean_after_every_round(seed):
    own, method = task(seed=seed), outp.OutP(rounds=5, multiplier=1.0, rho=0.3, c_w=5.0)
    for state, _ in simulate(method, own):
        np.testing.assert_allclose(state.own["dual"].sum(0), 0, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(state.w, state.own["z"].mean(0))


def test_without_noise_it_is_the_proximal_inexact_admm_with_z_first():
    own, method = task(EQUAL), outp.OutP(rounds=8, multiplier=0.0, rho=0.3, c_w=5.0)
    eta = HuangStep(1 / method.eta(own, 1)[0, 0, 0], 12, 0.0, 5.0)
    rule = Variant(Prox(eta), Objective(), Silence(), Observed(Norm.L2), order=Order.ZWD)
    agents = [Agent(shard, own.problem, rule) for shard in own.shards]
    theirs = of_the_paper(agents, own.shape, Constant(0.3), Order.ZWD, 8)
    for (state, _), (other, z) in zip(simulate(method, own), theirs, strict=True):
        np.testing.assert_allclose(state.w, other.w, rtol=0, atol=1e-12)
        np.testing.assert_allclose(state.own["z"], z, rtol=0, atol=1e-12)
    assert not outp.OutP(3, 0.0, 0.3, 5.0).promise(own).total(3, 1e-6)


def test_with_the_same_noise_it_is_the_outp_of_the_paper_preset():
    """Whose step leaves out the room for float32 sums that its noise has; here both have it."""
    multiplier = math.sqrt(2 * math.log(1.25e6)) / 0.5
    own, method = task(EQUAL), outp.OutP(rounds=4, multiplier=multiplier, rho=0.3, c_w=5.0)

    def with_room(agent):
        step = agent.variant.rule.eta.schedule  # Huang's, times a = 1
        eta = replace(step, noise=step.noise * own.rounding)
        return replace(agent, variant=replace(agent.variant, rule=Prox(eta)))

    values = {"privacy.epsilon": 0.5, "privacy.dp_delta": 1e-6, "schedule.c_w": 5.0}
    expected = of_preset(
        "paper", EQUAL, 4, with_room, **values, **{"schedule.rho": "static", "schedule.rho_static": 0.3}
    )
    np.testing.assert_allclose([state.w for state, _ in simulate(method, own)], expected, rtol=0, atol=1e-12)


@pytest.mark.filterwarnings("ignore:not private")
def test_released_is_the_outp_of_the_released_preset():
    over, epsilon = federation(), 0.5
    multiplier = math.sqrt(2 * math.log(1.25e6)) / epsilon
    own, method = task(over), outp.Released(5, multiplier, Staircase(2.0, 5.0, 1e4, epsilon))
    expected = of_preset("released", over, 5, **{"privacy.epsilon": epsilon, "privacy.dp_delta": 1e-6})
    np.testing.assert_allclose([state.w for state, _ in simulate(method, own)], expected, rtol=0, atol=1e-12)


def test_released_builds_the_rho_of_the_epsilon_that_its_noise_would_have():
    own, budget, choice = task(), Budget(1.0, 1e-6), outp.RELEASED.grid[0]
    method = outp.build_released(own, budget, choice)
    epsilon = math.sqrt(2 * math.log(1.25e6)) / method.multiplier
    assert method.rho(1) == pytest.approx(2 + 5 / epsilon)
    assert outp.build_released(own, Budget(math.inf), choice).rho(1) == 2


def test_released_promises_nothing_with_noise_or_without():
    own = task()
    for epsilon in (1.0, math.inf):
        method = outp.build_released(own, Budget(epsilon), outp.RELEASED.grid[0])
        assert method.promise(own).caveats
        assert method.promise(own).total(method.rounds, 1e-6) is None


def test_huang_protects_a_replaced_record_and_spends_the_budget():
    own = task()
    method = outp.build(own, Budget(1.0, 1e-5), outp.HUANG.grid[0])
    assert method.promise(own).unit is Unit.REPLACED
    assert 0.99 < method.promise(own).total(method.rounds, 1e-5).epsilon <= 1.0


def test_plus_is_huang_with_a_hundredth_of_the_penalty():
    own, budget = task(), Budget(1.0)
    for huang, plus in zip(outp.HUANG.grid, outp.PLUS.grid, strict=True):
        one, other = outp.HUANG.build(own, budget, huang), outp.PLUS.build(own, budget, plus)
        assert other.rho == pytest.approx(one.rho / 100)
        assert (other.c_w, other.rounds, other.multiplier) == (one.c_w, one.rounds, one.multiplier)


def test_a_loss_without_a_bound_is_refused():
    own = task()
    unbounded = replace(own, problem=replace(own.problem, loss=Squared()))
    method = outp.OutP(rounds=3, multiplier=1.0, rho=0.3, c_w=5.0)
    with pytest.raises(IncompatibleError, match="this loss has none"):
        next(simulate(method, unbounded))
