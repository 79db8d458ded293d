"""The audit of a method sees noise that is not new, gradients that are not clipped, and records that are replaced."""

from dataclasses import replace

import numpy as np
import pytest

from tacit.audit import controls, methods
from tacit.audit.controls import CONTROLS
from tacit.audit.finding import Claim, OneGaussian, weigh, weigh_all
from tacit.audit.pilots import entries, fitted, whitened
from tacit.errors import SpecError
from tacit.methods.gradient_descent import FedGD
from tacit.methods.method import Budget
from tacit.methods.promise import Unit, gaussian_releases
from tacit.methods.registry import METHODS
from tacit.problem.sensitivity import Clipped
from tacit.types import Norm

BUDGET = Budget(3.0, 1e-5)
CLAIM = Claim(3.0, 1e-5, OneGaussian(3.0, 1e-5))


def refuted_by(found):
    return {name for name, check in found.checks.items() if check.violated}


@pytest.mark.parametrize(("name", "by"), [("method-reused-noise", "whitened"), ("method-unclipped", "w0")])
def test_a_broken_method_is_caught_by_one_kind_of_attack_alone(name, by):
    caught = refuted_by(CONTROLS[name].audit(draws=400))
    assert caught
    assert all(by in test.split() for test in caught)


def test_an_agent_that_answers_from_its_local_model_is_steered_too():
    present = methods.task()
    method = methods.short(METHODS["outp-huang"], present, Budget(1e6, 1e-5))
    sides = present, methods.without(present, Unit.REPLACED)

    def moved(start):
        one, other = (next(methods.views(method, side, 1, 0, start)) for side in sides)
        return np.linalg.norm((one - other)[: one.size // 2])  # of the first round

    assert moved(methods.steering(present)) > 1.7 * moved(None)


def test_agents_without_a_server_are_sent_the_steering_model():
    present = methods.task()
    method, w = methods.short(METHODS["graph-admm"], present, BUDGET), methods.steering(present)
    first = next(methods.views(method, present, 1, 0, w))[: 2 * w.size].reshape(2, *w.shape)
    np.testing.assert_allclose(first, [w, w], atol=0.1 * w.max())


def test_from_a_steering_start_the_canary_has_the_longest_gradient_there_is():
    present, w = methods.task(), methods.steering(methods.task())
    for unit, factor in ((Unit.RECORD, 1), (Unit.REPLACED, 2)):
        one, other = (
            task.gradients(w, Clipped(Norm.L2, 10.0))[0] for task in (present, methods.without(present, unit))
        )
        bound = factor * present.problem.weight * present.gradient_bound
        assert 0.99 * bound < np.linalg.norm(one - other) <= bound


def test_a_method_that_does_not_heed_its_start_is_attacked_from_one():
    present = methods.task()
    made = [methods.short(METHODS[name], present, BUDGET) for name in ("onemessage", "fedgd")]
    assert [list(methods.starts(method, present)) for method in made] == [[""], ["", "w0"]]


@pytest.mark.parametrize("basis", [entries, whitened])
def test_a_combination_without_noise_tells_all_if_the_draws_are_whitened(basis):
    """v = (xi, xi + 1e-3 if the unit is there): an eigenvalue of zero, which is raised and not dropped."""
    rng = np.random.default_rng(0)

    def sides(n):
        xi = rng.normal(size=n)
        return np.stack([xi, xi + 1e-3], axis=1), np.stack([xi, xi], axis=1)

    found = weigh("method", "same noise", CLAIM, fitted(sides(600), sides(400), basis), 0.95)
    assert found.violated == (basis is whitened)


def test_independent_noise_is_scaled_alike_in_both_bases():
    rng = np.random.default_rng(0)
    pilots = tuple(rng.normal(size=(20_000, 3)) * [0.1, 1.0, 7.0] for _ in range(2))
    for basis in (entries, whitened):
        scaled = np.concatenate(pilots) @ basis(pilots)
        np.testing.assert_allclose(np.cov(scaled.T), np.eye(3), atol=0.03)


class Silent(FedGD):
    """Promise noise, and add none."""

    def promise(self, facts):  # noqa: ARG002
        return gaussian_releases(self.multiplier)

    def answer(self, agents, own, msg):
        return FedGD.answer(replace(self, multiplier=0.0), agents, own, msg)


def test_a_method_without_any_noise_is_caught():
    entry = controls.broken_method("silent", "no noise", Silent)
    assert methods.audit(entry, BUDGET, draws=100).violated


class Endless(FedGD):
    """Send what is not finite in the second round."""

    def answer(self, agents, own, msg):
        after, sent = FedGD.answer(self, agents, own, msg)
        return after, sent if msg.t == 1 else {"answer": np.full(sent["answer"].shape, np.inf)}


def test_a_method_that_sends_what_is_not_finite_is_refused_with_a_reason():
    with pytest.raises(SpecError, match="Endless sends numbers that are not finite within 2 rounds"):
        methods.audit(controls.broken_method("endless", "no number", Endless), BUDGET, draws=10)


def test_all_attacks_of_a_finding_share_its_risk():
    rng = np.random.default_rng(0)
    pilots, seen = (tuple(rng.normal([shift, 0.0], size=(n, 2)) for shift in (1.0, 0.0)) for n in (600, 400))
    bases = {"": entries, "a": entries, "b": whitened}
    several = {name: fitted(pilots, seen, basis) for name, basis in bases.items()}
    found = weigh_all("method", "three", CLAIM, several, 0.94)
    alone = weigh("method", "one", CLAIM, several["b"], 0.98)
    assert found.confidence == 0.94
    assert set(found.checks) == {"rates", "mu", "rates a", "mu a", "rates b", "mu b"}
    assert found.checks["mu b"].measured == pytest.approx(alone.checks["mu"].measured, rel=1e-12)
    assert found.detects == max(weigh("method", "one", CLAIM, one, 0.98).detects for one in several.values())
