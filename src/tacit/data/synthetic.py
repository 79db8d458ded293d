"""Records drawn from a softmax model with a known truth: x in [0, 1]^J, y ~ softmax(x^T w)."""

from __future__ import annotations

import math

import numpy as np

from tacit.data import partition
from tacit.data.spec import DataSpec
from tacit.errors import SpecError
from tacit.types import Array, Federation, Shard

_SIGNAL = 4.0  # standard deviation of the scores x^T w over records: the most likely class then mostly wins
_MOST = 1e9  # numbers in all: 4 GB of features


def load(spec: DataSpec) -> Federation:
    """Draw the federation of a spec: its agents get equal numbers of records, unless a partition is given."""
    sizes = (spec.records, spec.features, spec.classes)
    if spec.partition is None:
        return make(spec.n_agents, *sizes, seed=spec.seed)
    return partition.deal(make(1, *sizes, seed=spec.seed), spec.partition, spec.n_agents, spec.seed, spec.alpha)


def make(
    n_agents: int = 10, n_records: int = 1000, n_features: int = 20, n_classes: int = 3, *,
    density: float = 1.0, heterogeneity: float = 0.0, noise: float = 0.0, unequal: bool = False,
    n_test: int | None = None, seed: int = 0,
) -> Federation:  # fmt: skip
    """Draw a federation from `seed`; the test records follow the mixture of the agents.

    `density`        the share of features that are not zero
    `heterogeneity`  h in [0, 1]: agent p draws x = (1 - h) u + h m_p, u uniform and m_p its own mean
    `noise`          the share of labels replaced by a uniform one
    `unequal`        log-normal numbers of records instead of equal ones
    `n_test`         I / 5 where it is not given
    """
    n_test = n_records // 5 if n_test is None else n_test
    _check_sizes(n_records, n_test, n_features, n_classes)
    for name, share in (("density", density), ("heterogeneity", heterogeneity), ("noise", noise)):
        if not 0 <= share <= 1 or (name == "density" and share == 0):
            raise SpecError(f"{name} is a share and must be in [0, 1], density above 0: got {share}.")
    model, sizes, train, test = map(np.random.default_rng, np.random.SeedSequence(seed).spawn(4))
    cut = partition.unequal if unequal else partition.shuffled
    counts = [len(part) for part in cut(np.empty(n_records), n_agents, sizes)]
    owner = np.repeat(np.arange(n_agents), counts)
    means = model.random((n_agents, n_features), dtype=np.float32)
    w = _truth(model, n_features, n_classes, density)

    def draw(rng: np.random.Generator, agents: Array) -> Shard:
        u = rng.random((len(agents), n_features), dtype=np.float32)
        x = (1 - heterogeneity) * u + heterogeneity * means[agents]
        x = np.minimum(x, 1) * (rng.random(x.shape, dtype=np.float32) < density)
        # Gumbel's trick: argmax_k (score_k + Gumbel noise) is a draw from softmax(score)
        y = (x @ w + rng.gumbel(size=(len(x), n_classes))).argmax(1)
        wrong = rng.random(len(x)) < noise
        return Shard(x, np.where(wrong, rng.integers(n_classes, size=len(x)), y), owners=agents)

    pool, cuts = draw(train, owner), np.cumsum(counts)[:-1]
    shards = map(Shard, np.split(pool.x, cuts), np.split(pool.y, cuts))
    return Federation(tuple(shards), draw(test, test.choice(owner, n_test)), n_classes, "synthetic", bounds=(0.0, 1.0))


def _truth(rng: np.random.Generator, n_features: int, n_classes: int, density: float) -> Array:
    """Draw w (J, K), scaled so that the scores have standard deviation _SIGNAL."""
    w = rng.standard_normal((n_features, n_classes))
    if n_features > 1:
        w -= w.mean(0)  # x is never negative: without this its mean alone would favour one class
    variance = density / 3 - density**2 / 4  # of one feature, uniform with probability `density`, else zero
    return w * (_SIGNAL / math.sqrt(n_features * variance))


def _check_sizes(n_records: int, n_test: int, n_features: int, n_classes: int) -> None:
    """Refuse data that do not fit into memory, and data without a feature or a second class."""
    numbers = (n_records + n_test) * (n_features + n_classes) + n_features * n_classes
    if numbers > _MOST:
        sizes = f"{n_records + n_test} records by {n_features} features and {n_classes} classes"
        raise SpecError(f"{sizes} are {numbers:.3g} numbers, more than the {_MOST:.0e} there is room for: draw fewer.")
    if n_features < 1 or n_classes < 2 or n_test < 0:
        sizes = f"{n_features} features, {n_classes} classes, {n_test} test records"
        raise SpecError(f"synthetic data needs a feature, two classes and no negative test size: got {sizes}.")
