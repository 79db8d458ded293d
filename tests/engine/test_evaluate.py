"""The compiled evaluation says what NumPy says, ties and broken models included."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.engine import evaluate
from tacit.engine.evaluate import loss_and_errors
from tacit.engine.kernels import compiled
from tacit.problem.loss import Softmax, Squared
from tacit.types import Shard
from tests.conftest import instructions


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
@settings(max_examples=60)
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
