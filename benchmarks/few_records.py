"""How few records are too few: the AUC of small private models beside the share of noise that public numbers give.

    python -m benchmarks.few_records     about two minutes; the source of `tacit.run.model_noise.TOO_NOISY`

A row is the mean AUC of four simulated fits, for one table, number of records, number of agents and epsilon. `noise` is
the weight of the noise in records over the number of records. `kept` is the AUC above 0.5 over that of the best model
without noise on the same table.
"""

from __future__ import annotations

import math
import statistics
import warnings
from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.metrics import roc_auc_score

import tacit
from tacit.privacy.budget import multiplier_of
from tacit.run.model_noise import TOO_NOISY

FITS, TESTED, DP_DELTA = 4, 2000, 1e-6
RECORDS = {12: True, 25: False, 50: True, 100: False, 200: True, 400: False, 800: True, 2000: False, 4000: True}
EPSILONS = (0.3, 1.0, 3.0, math.inf)  # all for the sizes that say so, else 1


class Row(NamedTuple):
    table: str
    records: int
    agents: int
    epsilon: float
    noise: float
    auc: float


def tables() -> Iterator[tuple[str, Any, Any]]:
    """Yield (name, x in [0, 1], y in {0, 1})."""
    cancer = load_breast_cancer()
    low, high = cancer.data.min(axis=0), cancer.data.max(axis=0)
    yield "breast cancer", (cancer.data - low) / (high - low), cancer.target
    for features, apart in ((5, 1.0), (30, 1.0), (10, 0.5)):
        x, y = make_classification(
            6000, features, n_informative=5, n_redundant=0, class_sep=apart, flip_y=0.1, random_state=1
        )
        yield f"synthetic, {features} features, {apart} apart", (np.clip(x, -4, 4) + 4) / 8, y
    heart = tacit.load("heart")
    shards = [*heart.shards, heart.test]
    yield "heart", np.concatenate([one.x for one in shards]), np.concatenate([one.y for one in shards])
    digits = load_digits()
    yield "digits, odd or even", digits.data / 16, digits.target % 2


def auc(x: Any, y: Any, records: int, agents: int, epsilon: float, seed: int) -> float:
    """Return the AUC of one fit on records drawn at random, tested on others."""
    order = np.random.default_rng(seed).permutation(len(x))
    train, test = order[:records], order[records:][:TESTED]
    model = tacit.PrivateFederatedClassifier(
        epsilon=epsilon, dp_delta=DP_DELTA, feature_bounds=(0, 1), classes=[0, 1], random_state=seed
    )
    model.fit(x[train], y[train], agents=np.arange(records) % agents)
    return float(roc_auc_score(y[test], model.decision_function(x[test])))


def rows() -> Iterator[Row]:
    """Yield the rows of all tables."""
    for name, x, y in tables():
        for (records, everything), agents, epsilon in product(RECORDS.items(), (1, 5), EPSILONS):
            if records > 0.75 * len(x) or not (everything or epsilon == 1.0):
                continue
            found = statistics.mean(auc(x, y, records, agents, epsilon, seed) for seed in range(FITS))
            alone = 0.0 if math.isinf(epsilon) else multiplier_of(epsilon, DP_DELTA)
            yield Row(name, records, agents, epsilon, math.sqrt(agents) * alone / records, found)


def main() -> None:
    warnings.simplefilter("ignore")
    found = []
    for row in rows():
        found.append(row)
        print(f"{row.table:<34} {row.records:>5} {row.agents:>2} {row.epsilon:>4} {row.noise:8.4f} {row.auc:6.3f}")
    best = {row.table: max(one.auc for one in found if one.table == row.table and not one.noise) for row in found}
    for above in (True, False):
        chosen = [row for row in found if row.noise and (row.noise >= TOO_NOISY) == above]
        kept = statistics.mean((row.auc - 0.5) / (best[row.table] - 0.5) for row in chosen)
        middle = statistics.median(row.auc for row in chosen)
        print(f"noise {'at least' if above else 'below'} {TOO_NOISY:.3g}: {len(chosen)} rows, median AUC {middle:.3f}, "
              f"kept {kept:.2f} on average")  # fmt: skip


if __name__ == "__main__":
    main()
