"""No neighbouring data set moves the gradient further than the declared sensitivity."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import DataError, IncompatibleError
from tacit.problem.loss import Softmax, Squared
from tacit.problem.sensitivity import (
    ROOM,
    Adjacency,
    Clipped,
    Declared,
    Observed,
    from_feature_bounds,
    from_row_norm,
)
from tacit.types import Norm

J, K = 5, 3


def contributions(bound, x, w, y):
    """Every record's part of the gradient, (n, J * K)."""
    residual = Softmax().residual(x @ w, y)
    return np.einsum("nj,nk->njk", x, bound.shrink(residual, bound.norm.of_rows(x))).reshape(len(x), -1)


@pytest.mark.parametrize("norm", [Norm.L1, Norm.L2])
@pytest.mark.parametrize("mode", ["observed", "features", "rows", "clip"])
@given(seed=st.integers(0, 10**6), size=st.floats(0.0, 50))
def test_one_record_moves_the_gradient_by_at_most_the_sensitivity(norm, mode, seed, size):
    rng = np.random.default_rng(seed)
    x, y, w = rng.uniform(size=(8, J)), rng.integers(K, size=8), size * rng.normal(size=(J, K))
    if mode == "rows":
        x /= np.maximum(norm.of_rows(x), 1)[:, None]
    bound = {
        "observed": Observed(norm),
        "features": from_feature_bounds(norm, (0.0, 1.0), J, Softmax()),
        "rows": from_row_norm(norm, 1.0, Softmax()),
        "clip": Clipped(norm, 0.5),
    }[mode]
    each = contributions(bound, x, w, y)
    limit = bound.bound(Softmax().residual(x @ w, y), norm.of_rows(x)) * (1 + 1e-9)
    assert (norm.of_rows(each) <= limit * Adjacency.ZERO_OUT.value).all()
    assert (norm.of_rows(each[0] - each[1:]) <= limit * Adjacency.REPLACE_ONE.value).all()


@pytest.mark.parametrize(
    ("norm", "expected"), [(Norm.L1, 2 * 784), (Norm.L2, math.sqrt(2 * 784))]
)
def test_the_pixel_box_gives_the_table_of_bounds(norm, expected):
    assert from_feature_bounds(norm, (0.0, 1.0), 784, Softmax()).value * ROOM == pytest.approx(expected)


def test_clipping_leaves_short_gradients_alone_and_shortens_long_ones_to_the_bound():
    residual, x_norm = np.array([[3.0, 4.0], [0.03, 0.04]]), np.array([2.0, 2.0])
    shrunk = Clipped(Norm.L2, 1.0).shrink(residual, x_norm)
    np.testing.assert_allclose(Norm.L2.of_rows(shrunk) * x_norm, [1.0 - 1e-5, 0.1])


def test_a_loss_without_a_bound_is_refused_by_name():
    with pytest.raises(IncompatibleError, match="clip"):
        from_row_norm(Norm.L2, 1.0, Squared())


def test_records_beyond_the_declared_norm_are_refused():
    with pytest.raises(DataError, match="declared"):
        Declared(Norm.L2, 1.0, row_norm=1.0).shrink(np.ones((1, 2)), np.array([1.1]))


def test_at_zero_the_observed_sensitivity_is_twice_the_missing_share_times_the_largest_norm():
    rng = np.random.default_rng(0)
    x, y = rng.uniform(size=(9, J)), rng.integers(K, size=9)
    residual = Softmax().residual(x @ np.zeros((J, K)), y)
    bound = Observed(Norm.L1).bound(residual, Norm.L1.of_rows(x))
    assert bound == pytest.approx(2 * (1 - 1 / K) * np.abs(x).sum(1).max())


def test_mnist_noise_scales_are_those_of_the_authors_log(mnist):
    """The ten Laplace scales of round one at epsilon 0.05; the authors' log averages 0.1573."""
    scales = []
    for shard in mnist.shards:
        residual = Softmax().residual(shard.x @ np.zeros((784, 10)), shard.y)
        scales.append(Observed(Norm.L1).bound(residual, Norm.L1.of_rows(shard.x)) / mnist.n_records / 0.05)
    known = [0.16013, 0.16184, 0.14501, 0.14616, 0.16690, 0.15193, 0.18702, 0.14331, 0.14567, 0.16465]
    np.testing.assert_allclose(scales, known, atol=6e-6)
    assert np.mean(scales) == pytest.approx(0.1572626, abs=5e-8)
