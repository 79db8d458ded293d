"""The compiled evaluation says what NumPy says, ties and broken models included."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.engine import evaluate
from tacit.engine.evaluate import auc, loss_and_errors, measures, rmse_and_r2
from tacit.engine.kernels import compiled
from tacit.problem.loss import Softmax, Squared
from tacit.types import Shard, Target
from tests.conftest import examples, instructions


def twin(w, shard, loss):
    score = shard.x.astype(np.float64) @ w
    return loss.value(score, shard.y), int((score.argmax(1) != shard.y).sum())


def instance(n, features, classes, seed):
    """Small whole numbers, so that scores are exact and many of them tie."""
    rng = np.random.default_rng(seed)
    x, y = rng.integers(-2, 3, (n, features)), rng.integers(0, classes, n)
    return Shard(x.astype(np.float32), y), rng.integers(-1, 2, (features, classes)).astype(float)


@pytest.mark.skipif(compiled() is None, reason="kernels were not built")
@pytest.mark.parametrize("name", ["avx512", "avx2", "plain"])
@examples(60)
@given(
    n=st.integers(0, 400), features=st.sampled_from([1, 7, 8, 9, 30, 100]), classes=st.integers(2, 40),
    seed=st.integers(0, 10**6),
)  # fmt: skip
def test_losses_and_errors_are_those_of_numpy(name, n, features, classes, seed):
    shard, w = instance(n, features, classes, seed)
    with instructions(name):
        total, errors = loss_and_errors(w, shard, Softmax())
    expected, wrong = twin(w, shard, Softmax())
    assert errors == wrong
    assert total == pytest.approx(expected, rel=1e-5, abs=1e-4)


@pytest.mark.skipif(compiled() is None, reason="kernels were not built")
def test_pieces_on_threads_add_up_in_order(monkeypatch):
    shard, w = instance(1000, 9, 3, 0)
    monkeypatch.setattr(evaluate, "PIECE", 128)
    first = loss_and_errors(w, shard, Softmax())
    assert first == loss_and_errors(w, shard, Softmax())
    monkeypatch.setattr(evaluate, "PIECE", 1000)
    assert first == pytest.approx(loss_and_errors(w, shard, Softmax()), rel=1e-12)


@pytest.mark.parametrize("broken", [np.nan, np.inf, -np.inf, 1e38])
def test_a_model_that_is_not_finite_is_as_wrong_as_numpy_says(broken):
    shard, w = instance(50, 10, 3, 0)
    w[3, 1] = broken
    with np.errstate(all="ignore"):
        score = shard.x @ w.astype(np.float32)
        total, errors = loss_and_errors(w, shard, Softmax())
    assert errors == (score.argmax(1) != shard.y).sum()
    assert not np.isfinite(total) or broken == 1e38


def test_another_loss_is_evaluated_by_numpy():
    shard, w = instance(20, 10, 3, 0)
    assert loss_and_errors(w, shard, Squared()) == pytest.approx(twin(w, shard, Squared()))
    assert loss_and_errors(w, Shard(shard.x, shard.y, dtype=np.float64), Softmax()) == pytest.approx(
        twin(w, shard, Softmax())
    )


scores = st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1, max_size=40)


@given(pairs=scores, scale=st.sampled_from([1.0, 1e-30, 1e30]))
def test_auc_is_the_share_of_pairs_in_order_ties_counted_half(pairs, scale):
    score, positive = np.array([s for s, _ in pairs]) * scale, np.array([p for _, p in pairs])
    above = [1.0 if p > q else 0.5 if p == q else 0.0 for p in score[positive] for q in score[~positive]]
    assert auc(score, positive) == (sum(above) / len(above) if above else None)


@given(pairs=scores)
def test_auc_is_that_of_the_other_class_with_scores_turned_round(pairs):
    score, positive = np.array([float(s) for s, _ in pairs]), np.array([p for _, p in pairs])
    assert auc(score, positive) == auc(-score, ~positive)


def test_auc_of_a_model_that_is_not_finite_is_none():
    assert auc(np.array([np.nan, 1.0]), np.array([True, False])) is None


@pytest.mark.parametrize("classes", [2, 3])
def test_two_classes_have_an_auc_beside_their_error_and_more_classes_have_none(classes):
    shard, w = instance(50, 9, classes, seed=0)
    found = measures(w, shard, None)
    assert found["test_error"] == twin(w, shard, Softmax())[1] / 50
    assert set(found) == ({"test_error", "test_auc"} if classes == 2 else {"test_error"})


def test_equal_records_tie_wherever_they_stand():
    """BLAS may round a row by its place in a batch: half of the pairs must tie all the same."""
    rng = np.random.default_rng(0)
    row, w = rng.normal(size=(1, 301)).astype(np.float32), rng.normal(size=(301, 2))
    shard = Shard(np.repeat(row, 1001, axis=0), np.arange(1001) % 2)
    assert measures(w, shard, None)["test_auc"] == 0.5


@given(seed=st.integers(0, 10**6), n=st.integers(2, 60))
def test_rmse_and_r2_are_those_of_numpy_in_the_units_of_the_target(seed, n):
    rng = np.random.default_rng(seed)
    target = Target(-5.0, 45.0)
    x, days = rng.normal(size=(n, 3)).astype(np.float32), rng.uniform(-5, 45, size=n)
    w = rng.normal(size=(3, 1))
    guess = np.clip(20 + 25 * (x.astype(np.float64) @ w)[:, 0], -5, 45)
    found = measures(w, Shard(x, target.scaled(days)), target)
    assert found["test_rmse"] == pytest.approx(np.sqrt(np.mean((guess - days) ** 2)), rel=1e-5)
    spread = np.sum((days - days.mean()) ** 2)
    assert found["test_r2"] == pytest.approx(1 - np.sum((guess - days) ** 2) / spread, rel=1e-4, abs=1e-5)


def test_what_test_records_do_not_tell_is_none():
    target, w = Target(0.0, 1.0), np.ones((2, 1))
    assert measures(w, Shard(np.zeros((0, 2)), np.zeros(0)), target) == {"test_rmse": None, "test_r2": None}
    assert measures(np.ones((2, 2)), Shard(np.zeros((0, 2)), np.zeros(0, int)), None) == {
        "test_error": None, "test_auc": None,
    }  # fmt: skip
    assert rmse_and_r2(np.zeros(2), np.full(2, 0.5), target) == (0.25, None)  # one number alone has no spread
    assert rmse_and_r2(np.full(2, np.inf), np.zeros(2), target) == (None, None)
