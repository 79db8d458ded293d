"""What a server learns from z is exactly the gradient and its noise."""

import numpy as np
import pytest

from tacit.admm.agent import Agent, Variant
from tacit.admm.messages import Broadcast, Local, Order
from tacit.admm.rule import Exact, Objective, Output, Point, Prox, Trust, invert
from tacit.errors import IncompatibleError
from tacit.privacy.mechanism import Gaussian, Laplace
from tacit.problem.objective import Problem
from tacit.problem.sensitivity import Clipped
from tacit.schedule import Constant, Power
from tacit.types import Norm, Shard
from tests.conftest import federation

RULES = [Prox(Power(0.3, -0.5)), Prox(Constant(2.0), Point.GLOBAL), Trust(Constant(1e6)), Trust(Constant(1e6), Norm.L2)]


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("perturbation", [Objective(), Output()])
@pytest.mark.parametrize("rule", RULES)
def test_the_server_recovers_gradient_plus_noise(rule, perturbation, order):
    shard = federation().shards[0]
    mechanism = Laplace(2.0) if isinstance(rule, Prox) else Gaussian(2.0)
    variant = Variant(rule, perturbation, mechanism, Clipped(mechanism.norm, 0.5), order=order)
    agent = Agent(Shard(shard.x, shard.y, dtype=np.float64), Problem(3, 0.1), variant, key=(4, 1))
    rng = np.random.default_rng(0)
    own = Local(rng.normal(size=(4, 3)), rng.normal(size=(4, 3)), rho=1.7)
    msg = Broadcast(5, rng.normal(size=(4, 3)), rho=2.3)

    before = agent.caught_up(own, msg)
    _, reply, trace = agent.respond(own, msg)
    gradient, _ = agent.gradient(rule.at.of(before, msg), msg.w)
    noise = trace.scale * mechanism.sample(agent.key, msg.t, 0, gradient.shape).astype(float)
    np.testing.assert_allclose(invert(variant.rule, before, msg, reply.z), gradient + noise, atol=1e-12)


def test_an_exact_step_cannot_be_inverted():
    variant = Variant(Exact(1.0), Objective(), Laplace(1.0), Clipped(Norm.L1, 1.0))
    zero = np.zeros((4, 3))
    with pytest.raises(IncompatibleError, match="exact step"):
        invert(variant.rule, Local(zero, zero), Broadcast(1, zero, 1.0), zero)
