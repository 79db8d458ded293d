"""`tacit agent serve` for tests alone: noise is a function of the value, so that two runs draw the same.

    python seeded_agent.py SITE.toml
"""

import hashlib
import sys

import numpy as np

from tacit.cli import main
from tacit.privacy import lattice
from tacit.privacy.summed import Attempt
from tests.federation.summing import seeded as seeded_share


def seeded(value, scale, law, bits=None):
    """Noise from the hash of what it is added to. It hides nothing: whoever knows the value knows the noise."""
    del bits
    exact = np.ascontiguousarray(value, "<f8")
    seed = hashlib.sha256(exact.tobytes() + repr((float(scale), str(law))).encode()).digest()
    return exact + np.random.default_rng(int.from_bytes(seed, "big")).normal(0.0, scale, exact.shape)


if __name__ == "__main__":
    lattice.release = seeded
    Attempt.share = seeded_share
    sys.exit(main(["agent", "serve", *sys.argv[1:]]))
