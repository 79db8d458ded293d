"""Synthetic federations: their sizes, range and truth."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.data import load, synthetic
from tacit.errors import DataError, SpecError
from tacit.types import Federation


def pooled(federation: Federation) -> np.ndarray:
    return np.concatenate([shard.x for shard in federation.shards])


def test_sizes_are_those_asked_for() -> None:
    federation = synthetic.make(7, 100, 5, 4, n_test=13)
    assert [len(shard) for shard in federation.shards] == [15, 15, 14, 14, 14, 14, 14]
    assert (federation.n_features, federation.n_classes, len(federation.test)) == (5, 4, 13)
    assert federation.bounds == (0.0, 1.0)
    assert federation.shards[0].x.dtype == np.float32


def test_the_same_seed_gives_the_same_records_and_another_seed_others() -> None:
    a, b, c = (synthetic.make(3, 30, heterogeneity=0.3, unequal=True, seed=s) for s in (5, 5, 6))
    assert np.array_equal(pooled(a), pooled(b))
    assert np.array_equal(a.test.x, b.test.x)
    assert not np.array_equal(pooled(a), pooled(c))


def test_without_heterogeneity_the_records_do_not_depend_on_the_agents() -> None:
    one, many = synthetic.make(1, 60), synthetic.make(6, 60)
    assert np.array_equal(pooled(one), pooled(many))


@pytest.mark.parametrize("density", [0.1, 0.5, 1.0])
def test_density_is_the_share_of_features_that_are_not_zero(density: float) -> None:
    x = pooled(synthetic.make(2, 2000, 20, density=density))
    assert np.count_nonzero(x) / x.size == pytest.approx(density, abs=0.02)


def test_heterogeneity_moves_the_means_of_the_agents_apart() -> None:
    def spread(h: float) -> float:
        federation = synthetic.make(8, 800, heterogeneity=h)
        return float(np.std([shard.x.mean(0) for shard in federation.shards], axis=0).mean())

    assert spread(0.0) < 0.05 < spread(0.3) < spread(0.9)
    alone = synthetic.make(3, 30, heterogeneity=1.0)
    assert all(np.ptp(shard.x, axis=0).max() == 0 for shard in alone.shards)


def test_a_linear_model_finds_the_labels_and_noise_hides_them() -> None:
    def error(noise: float) -> float:
        federation = synthetic.make(4, 4000, 10, 3, noise=noise, n_test=1000)
        y = np.concatenate([shard.y for shard in federation.shards])
        x = np.hstack([pooled(federation), np.ones((len(y), 1))])
        w = np.linalg.lstsq(x, np.eye(3)[y], rcond=None)[0]
        guess = np.hstack([federation.test.x, np.ones((1000, 1))]) @ w
        return float((guess.argmax(1) != federation.test.y).mean())

    assert error(0.0) < 0.3
    assert error(1.0) == pytest.approx(2 / 3, abs=0.06)


def test_unequal_agents_have_unequal_numbers_and_at_least_one_record() -> None:
    sizes = [len(shard) for shard in synthetic.make(10, 500, unequal=True).shards]
    assert sum(sizes) == 500
    assert 1 <= min(sizes) < max(sizes) / 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"density": 0.0},
        {"heterogeneity": 1.5},
        {"noise": -0.1},
        {"n_features": 0},
        {"n_classes": 1},
        {"n_test": -1},
        {"n_records": 10**12},
        {"n_features": 10**8},
        {"n_classes": 10**8},
    ],
)
def test_impossible_settings_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(SpecError):
        synthetic.make(**wrong)  # type: ignore[arg-type]


def test_more_agents_than_records_are_refused() -> None:
    for unequal in (False, True):
        with pytest.raises(DataError, match="take fewer agents"):
            synthetic.make(5, 4, unequal=unequal)


def test_load_passes_sizes_and_cuts_by_a_named_partition() -> None:
    plain = load("synthetic", records=60, features=4, classes=2, agents=3)
    assert (plain.n_agents, plain.n_records, plain.n_features, plain.n_classes) == (3, 60, 4, 2)
    blocks = load("synthetic", records=60, features=4, classes=2, agents=3, partition="contiguous")
    assert np.array_equal(pooled(plain), pooled(blocks))
    skewed = load("synthetic", records=60, features=4, classes=2, agents=3, partition="dirichlet", alpha=0.1)
    assert len({len(shard) for shard in skewed.shards}) > 1
