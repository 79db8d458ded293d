"""Every loss and every regulariser of the registries passes one suite: derivative, curvature, bounds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import IncompatibleError, SpecError
from tacit.problem import objective
from tacit.problem.hinge import Hinge
from tacit.problem.l1 import L1
from tacit.problem.loss import LOSSES, Huber, Loss, Softmax, Squared, predicted
from tacit.problem.objective import Problem
from tacit.problem.poisson import Poisson
from tacit.problem.regularizer import REGULARIZERS
from tacit.problem.sensitivity import ROOM, Clipped, from_row_norm
from tacit.types import Norm, Shard, Target

every_loss = pytest.mark.parametrize("loss", [make() for make in LOSSES.values()], ids=LOSSES)
every_regularizer = pytest.mark.parametrize("regularizer", [make() for make in REGULARIZERS.values()], ids=REGULARIZERS)


def shard_and_point(
    seed: int, n: int = 6, features: int = 3, classes: int = 4, loss: Loss = Softmax()  # noqa: B008
) -> tuple[Shard, np.ndarray]:
    """Labels of classes, or for a loss that is not for classes numbers and one column."""
    rng = np.random.default_rng(seed)
    x, columns = rng.normal(size=(n, features)), classes if loss.for_classes else 1
    y = rng.integers(classes, size=n) if loss.for_classes else rng.uniform(-1, 1, size=n)
    return Shard(x, y, np.float64), rng.normal(size=(features, columns))


@every_loss
@every_regularizer
@given(seed=st.integers(0, 10**6), size=st.floats(0.01, 10))
def test_no_tangent_lies_above_the_function(loss, regularizer, seed, size):
    """f(u) >= f(w) + <g, u - w>: g is a subgradient, and the function convex, with kinks or without."""
    shard, w = shard_and_point(seed, loss=loss)
    problem = Problem(3, 0.1, loss, regularizer, beta=0.7)
    w[0] = 0.0  # where l1 has its kink
    for u in w + size * np.random.default_rng(seed + 1).normal(size=(3, *w.shape)):
        tangent = problem.value(w, shard) + (problem.gradient(w, shard) * (u - w)).sum()
        assert problem.value(u, shard) >= tangent - 1e-9 * (1 + abs(tangent))


@every_loss
@every_regularizer
@given(seed=st.integers(0, 10**6))
def test_gradient_is_the_derivative_of_the_value(loss, regularizer, seed):
    shard, w = shard_and_point(seed, loss=loss)
    problem = Problem(3, 0.1, loss, regularizer, beta=0.7)
    direction = np.random.default_rng(seed + 1).normal(size=w.shape)
    h = 1e-5 if problem.smooth else 1e-9  # a step that meets a kink has no slope; so short a one rarely does
    slope = (problem.value(w + h * direction, shard) - problem.value(w - h * direction, shard)) / (2 * h)
    rounding = 1e-7 if problem.smooth else 1e-5
    assert slope == pytest.approx((problem.gradient(w, shard) * direction).sum(), rel=1e-6, abs=rounding)


@every_loss
@given(seed=st.integers(0, 10**6))
def test_gradients_change_no_faster_than_the_smoothness(loss, seed):
    shard, w = shard_and_point(seed, loss=loss)
    problem = Problem(2, 0.3, loss, beta=0.1)
    other = w + np.random.default_rng(seed).normal(size=w.shape)
    change = np.linalg.norm(problem.gradient(w, shard) - problem.gradient(other, shard))
    assert problem.smooth == np.isfinite(problem.smoothness(shard)) == (loss != Hinge())
    assert change <= problem.smoothness(shard) * np.linalg.norm(w - other) * (1 + 1e-9)
    assert problem.smoothness(shard) <= problem.smoothness_at_most(shard) * (1 + 1e-8)


@pytest.mark.parametrize("shape", [(40, 7), (7, 40)])
def test_smoothness_is_the_largest_eigenvalue_even_where_a_power_iteration_would_stall(shape):
    """The largest of 7 singular values belongs to a direction that a random start hardly sees."""
    rng = np.random.default_rng(0)
    left, right = (np.linalg.qr(rng.normal(size=(n, 7)))[0] for n in shape)
    values = np.array([3.0, *np.linspace(2.0, 2.1, 6)])
    shard = Shard(left * values @ right.T, np.zeros(shape[0], int))
    assert Problem(2, 0.5, Squared(), beta=0.0).smoothness(shard) == pytest.approx(0.5 * 9, rel=1e-5)


def test_a_plateau_does_not_halve_the_smoothness():
    x = np.zeros((300, 300))
    np.fill_diagonal(x, 1.0)
    x[0, 0] = np.sqrt(2.0)
    problem = Problem(1, 1.0, Squared(), beta=0.0)
    assert problem.smoothness(Shard(x, np.zeros(300, int))) == pytest.approx(2.0, rel=1e-6)


def test_smoothness_of_a_matrix_large_on_both_sides_falls_back_on_the_trace(monkeypatch):
    monkeypatch.setattr(objective, "EXACT_UP_TO", 2)
    shard, _ = shard_and_point(0)
    problem = Problem(1, 1.0, beta=0.3)
    assert problem.smoothness(shard) == problem.smoothness_at_most(shard)


@every_regularizer
@given(seed=st.integers(0, 10**6))
def test_a_regulariser_curves_between_its_convexity_and_its_curvature(regularizer, seed):
    """Methods take one for strong convexity, on which guarantees rest, and the other for smoothness."""
    u, v = np.random.default_rng(seed).normal(size=(2, 4, 3))
    change = ((regularizer.gradient(u) - regularizer.gradient(v)) * (u - v)).sum()
    far = np.square(u - v).sum()
    assert regularizer.convexity * far * (1 - 1e-9) <= change <= regularizer.curvature * far * (1 + 1e-9)


@every_loss
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_residuals_keep_the_precision_of_the_scores(loss, dtype):
    score, y = (np.ones((2, 3), dtype), [0, 2]) if loss.for_classes else (np.ones((2, 1), dtype), [0.5, -1.0])
    assert loss.residual(score, np.array(y)).dtype == dtype


@pytest.mark.parametrize("beta", [-1.0, float("inf"), float("nan")])
def test_a_weight_of_the_regulariser_that_is_no_number_of_its_kind_is_refused(beta):
    with pytest.raises(SpecError, match="beta"):
        Problem(1, 1.0, beta=beta)


@every_loss
@pytest.mark.parametrize("norm", [Norm.L1, Norm.L2])
@given(seed=st.integers(0, 10**6), size=st.floats(0.01, 100))
def test_residuals_stay_within_their_bound(loss, norm, seed, size):
    shard, w = shard_and_point(seed, loss=loss)
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


def numbers(seed: int, n: int = 9) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return 3 * rng.normal(size=(n, 1)), rng.uniform(-1, 1, size=n)


@given(seed=st.integers(0, 10**6), threshold=st.floats(0.01, 5))
def test_the_gradient_of_huber_is_its_finite_difference(seed, threshold):
    score, y = numbers(seed)
    loss, h = Huber(threshold), 1e-6
    pairs = zip(score[:, None], y[:, None], strict=True)
    slopes = [(loss.value(s + h, v) - loss.value(s - h, v)) / (2 * h) for s, v in pairs]
    np.testing.assert_allclose(loss.residual(score, y)[:, 0], slopes, atol=2e-6)


@given(seed=st.integers(0, 10**6))
def test_huber_with_a_large_threshold_is_squared(seed):
    score, y = numbers(seed)
    wide = Huber(threshold=100.0)
    assert wide.value(score, y) == pytest.approx(Squared().value(score, y))
    np.testing.assert_array_equal(wide.residual(score, y), Squared().residual(score, y))


@given(seed=st.integers(0, 10**6), threshold=st.floats(0.05, 2))
def test_a_clipped_squared_loss_is_huber_on_records_of_norm_one(seed, threshold):
    score, y = numbers(seed)
    clipped = Clipped(Norm.L2, threshold / ROOM).shrink(Squared().residual(score, y), np.ones(len(y)))
    np.testing.assert_allclose(clipped, Huber(threshold).residual(score, y), rtol=1e-12)


@pytest.mark.parametrize("norm", Norm)
def test_a_huber_residual_has_one_size_in_every_norm(norm):
    assert Huber(0.3).residual_bound(norm) == 0.3
    assert from_row_norm(norm, 2.0, Huber(0.3)).value == pytest.approx(0.6 / ROOM)


def test_the_squared_loss_of_a_number_is_half_the_squared_distance():
    score, y = np.array([[0.5], [-2.0]]), np.array([1.0, 0.0])
    assert Squared().value(score, y) == pytest.approx((0.25 + 4.0) / 2)
    np.testing.assert_array_equal(Squared().residual(score, y), [[-0.5], [-2.0]])


@pytest.mark.parametrize(("loss", "score", "y"), [
    (Hinge(), [[0.0, 3.0, 1.0]], [0]), (Softmax(), [[0.0, 800.0, 0.0]], [0]), (Huber(0.3), [[9.0]], [-1.0]),
    (Poisson(), [[2.0]], [-1.0]), (Poisson(), [[-800.0]], [1.0]),
])  # fmt: skip
@pytest.mark.parametrize("norm", Norm)
def test_the_bound_of_a_residual_is_reached(loss, score, y, norm):
    residual = loss.residual(np.array(score), np.array(y))
    assert norm.of_rows(residual).max() == pytest.approx(loss.residual_bound(norm), rel=1e-12)


@given(seed=st.integers(0, 10**6))
def test_with_two_classes_the_hinge_is_that_of_the_margin(seed):
    rng = np.random.default_rng(seed)
    score, y = 2 * rng.normal(size=(7, 2)), rng.integers(2, size=7)
    margin = (score[:, 1] - score[:, 0]) * (2 * y - 1)
    assert Hinge().value(score, y) == pytest.approx(np.maximum(0, 1 - margin).sum())
    slope = -np.where(margin < 1, 2 * y - 1, 0)
    np.testing.assert_array_equal(Hinge().residual(score, y), np.column_stack([-slope, slope]))


def test_a_hinge_asks_nothing_of_a_record_that_is_right_by_one_and_takes_the_first_of_equals():
    np.testing.assert_array_equal(
        Hinge().residual(np.array([[2.0, 1.0, 0.0], [1.0, 1.0, 0.5]]), np.array([0, 2])), [[0, 0, 0], [1, 0, -1]]
    )


@given(seed=st.integers(0, 10**6), most=st.integers(1, 500))
def test_poisson_is_the_likelihood_of_a_count_wherever_the_mean_is_within_the_range(seed, most):
    rng = np.random.default_rng(seed)
    counts, target = rng.integers(most + 1, size=8).astype(float), Target(0, most)
    first, second = -3 * rng.uniform(size=(2, 8, 1))
    y = target.scaled(counts)

    def unlikely(score):
        mean = target.in_units(predicted(Poisson(), score[:, 0]))
        np.testing.assert_allclose(mean, most * np.exp(score[:, 0]))
        return (mean - counts * np.log(mean)).sum() / most

    change = Poisson().value(first, y) - Poisson().value(second, y)
    assert change == pytest.approx(unlikely(first) - unlikely(second), abs=1e-9)


def test_a_range_that_does_not_begin_at_zero_is_no_range_of_counts():
    Poisson().check_target(Target(0, 60))
    with pytest.raises(IncompatibleError, match="counts, whose range begins at 0"):
        Poisson().check_target(Target(1, 60))


def test_l1_is_the_sum_of_sizes_and_pulls_all_entries_alike():
    w = np.array([[0.5, -2.0], [0.0, 1e-9]])
    assert L1().value(w) == pytest.approx(2.5 + 1e-9)
    np.testing.assert_array_equal(L1().gradient(w), [[1, -1], [0, 1]])


def test_kinks_that_weigh_nothing_do_not_count():
    shard, _ = shard_and_point(0)
    assert Problem(2, 0.1, Softmax(), L1(), beta=0.0).smoothness(shard) < np.inf
    assert Problem(2, 0.1, Softmax(), L1(), beta=0.1).smoothness(shard) == np.inf
