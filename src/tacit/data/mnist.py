"""MNIST, shipped with the package: 60,000 and 10,000 digits of 28 x 28 grey levels, as x in [0, 1]^784.

Y. LeCun, C. Cortes, C. Burges, The MNIST database of handwritten digits, CC BY-SA 3.0. The four idx files
are gzipped; what they unpack to is checked against its sha256 before it is used.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from importlib import resources
from pathlib import Path

import numpy as np

from tacit.data.partition import deal
from tacit.data.spec import DataSpec
from tacit.errors import DataError
from tacit.types import Array, Federation, Shard

# sha256 of the unpacked files
SHA256 = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}


def load(spec: DataSpec) -> Federation:
    """Load the digits, dealt to the agents; contiguous blocks, as in the paper, unless a partition is given."""
    train, test = read()
    pooled = Federation((train,), test, 10, name="mnist", bounds=(0.0, 1.0), image=(28, 28, 1))
    return deal(pooled, spec.partition or "contiguous", spec.n_agents, spec.seed, spec.alpha)


def read(directory: Path | None = None) -> tuple[Shard, Shard]:
    """Read (train, test): x (60000, 784) and (10000, 784) in [0, 1], labels 0..9."""
    return _digits("train", directory), _digits("t10k", directory)


def _digits(part: str, directory: Path | None) -> Shard:
    x = _bytes(f"{part}-images-idx3-ubyte", 16, directory).reshape(-1, 28 * 28).astype(np.float32)
    x /= 255  # in place: the training images are 188 MB
    return Shard(x, _bytes(f"{part}-labels-idx1-ubyte", 8, directory))


def _bytes(name: str, header: int, directory: Path | None) -> Array:
    """Return the bytes of a file behind its header: four bytes, then four for each dimension."""
    folder = resources.files("tacit.data").joinpath("_mnist") if directory is None else directory
    try:
        data = gzip.decompress(folder.joinpath(f"{name}.gz").read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{name}.gz cannot be read ({error}): reinstall tacit or fetch it again.") from error
    if hashlib.sha256(data).hexdigest() != SHA256[name]:
        raise DataError(f"{name}.gz does not hold the MNIST bytes (its sha256 differs): reinstall tacit.")
    return np.frombuffer(data, np.uint8, offset=header)
