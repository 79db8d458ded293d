"""The problems that are timed: MNIST, data of FEMNIST's shape, dense tables, and sparse pixels of any size."""

from __future__ import annotations

import numpy as np

from tacit import data
from tacit.run.presets import preset
from tacit.run.spec import Spec
from tacit.types import Federation, Shard

# agents and records of LEAF's FEMNIST at 5%: the part with 114 writers, and all 195
FEMNIST = {"femnist": (114, 15_440), "femnist195": (195, 36_680)}

# records, columns and classes of dense instances, ten agents each: the tables hold about as many numbers each
DENSE = {
    "dense392": (60_000, 392, 10), "table30": (1_000_000, 30, 2), "table100": (300_000, 100, 2),
    "table200": (150_000, 200, 2),
}  # fmt: skip

SPEC = preset("released", "objt")
FEMNIST_SPEC = SPEC.with_values({"schedule.rho_c1": 0.005, "schedule.rho_c2": 0.05, "schedule.rho_period": 2e3})


def mnist() -> tuple[Spec, Federation]:
    """The paper's: ten agents with 6,000 records each, 19% of the pixels not zero."""
    return SPEC, data.load("mnist", agents=10)


def femnist(name: str, directory: str | None = None) -> tuple[Spec, Federation]:
    """Records of FEMNIST's shape and density; with a LEAF directory, the records themselves."""
    if directory is not None:
        return FEMNIST_SPEC, data.load(directory)
    n_agents, n_records = FEMNIST[name]
    return FEMNIST_SPEC, pixels(n_agents, n_records, 784, 62, density=0.12, ragged=True)


def dense(name: str) -> tuple[Spec, Federation]:
    """Records without zeros, as columns of numbers are after scaling to [0, 1]."""
    n_records, n_features, n_classes = DENSE[name]
    return SPEC, pixels(10, n_records, n_features, n_classes, density=1.0)


def pixels(
    n_agents: int, n_records: int, n_features: int, n_classes: int, *, density: float, ragged: bool = False
) -> Federation:
    """Random sparse images of multiples of 1/255, made agent by agent so that little more than x is held."""
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.full(n_agents, 5.0)) if ragged else np.full(n_agents, 1 / n_agents)
    cuts = np.rint(np.cumsum(shares) * (n_records - n_agents)).astype(int)
    sizes = 1 + np.diff(cuts, prepend=0)

    def shard(n: int) -> Shard:
        x = rng.integers(1, 256, (n, n_features), np.uint8).astype(np.float32)
        x *= rng.random(x.shape, np.float32) < density
        x /= np.float32(255)
        return Shard(x, rng.integers(n_classes, size=n))

    nobody = Shard(np.empty((0, n_features)), np.empty(0, np.int64))
    return Federation(tuple(map(shard, sizes)), nobody, n_classes, "pixels", bounds=(0.0, 1.0))
