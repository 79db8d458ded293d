"""Every loss passes one suite: derivative, curvature, bounds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.problem.objective import Problem
from tacit.problem.regularizer import L2, NoRegularizer
from tacit.problem.softmax import Softmax
from tacit.problem.squared import Squared
from tacit.types import Norm, Shard

LOSSES = [Softmax(), Squared()]


def shard_and_point(seed: int, n: int = 6, features: int = 3, classes: int = 4) -> tuple[Shard, np.ndarray]:
    rng = np.random.default_rng(seed)
    shard = Shard(rng.normal(size=(n, features)), rng.integers(classes, size=n), np.float64)
    return shard, rng.normal(size=(features, classes))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("regularizer", [L2(), NoRegularizer()])
@given(seed=st.integers(0, 10**6))
def test_gradient_is_the_derivative_of_the_value(loss, regularizer, seed):
    shard, w = shard_and_point(seed)
    problem = Problem(3, 0.1, loss, regularizer, beta=0.7)
    direction = np.random.default_rng(seed + 1).normal(size=w.shape)
    h = 1e-5
    slope = (problem.value(w + h * direction, shard) - problem.value(w - h * direction, shard)) / (2 * h)
    assert slope == pytest.approx((problem.gradient(w, shard) * direction).sum(), rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("loss", LOSSES)
@given(seed=st.integers(0, 10**6))
def test_gradients_change_no_faster_than_the_smoothness(loss, seed):
    shard, w = shard_and_point(seed)
    problem = Problem(2, 0.3, loss, beta=0.1)
    other = w + np.random.default_rng(seed).normal(size=w.shape)
    change = np.linalg.norm(problem.gradient(w, shard) - problem.gradient(other, shard))
    assert change <= problem.smoothness(shard) * np.linalg.norm(w - other) * (1 + 1e-3)
    assert problem.smoothness(shard) <= problem.smoothness_at_most(shard) * (1 + 2e-3)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("norm", [Norm.L1, Norm.L2])
@given(seed=st.integers(0, 10**6), size=st.floats(0.01, 100))
def test_residuals_stay_within_their_bound(loss, norm, seed, size):
    shard, w = shard_and_point(seed)
    residual = loss.residual(shard.x @ (size * w), shard.y)
    assert (norm.of_rows(residual) <= loss.residual_bound(norm) * (1 + 1e-12)).all()


def test_softmax_residual_norm_is_twice_the_missing_probability():
    shard, w = shard_and_point(0)
    h = Softmax().probability(shard.x @ w)
    missing = 1 - h[np.arange(len(shard)), shard.y]
    np.testing.assert_allclose(Norm.L1.of_rows(Softmax().residual(shard.x @ w, shard.y)), 2 * missing)


def test_softmax_is_finite_for_scores_that_overflow_exp():
    score = np.array([[1000.0, 0.0], [-1000.0, 1000.0]])
    y = np.array([1, 0])
    assert Softmax().value(score, y) == pytest.approx(3000.0)
    assert np.isfinite(Softmax().residual(score, y)).all()
