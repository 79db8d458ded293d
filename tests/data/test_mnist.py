"""MNIST: the facts of the shipped files, and what happens to damaged ones."""

from __future__ import annotations

import gzip
import hashlib
import struct
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from tacit.data import mnist
from tacit.errors import DataError
from tacit.types import Shard

IMAGES = struct.pack(">BBBB3I", 0, 0, 8, 3, 2, 2, 2) + bytes(range(8))


@pytest.fixture(scope="module")
def digits() -> tuple[Shard, Shard]:
    return mnist.read()


def test_sizes_types_and_range_are_those_of_mnist(digits: tuple[Shard, Shard]) -> None:
    train, test = digits
    assert train.x.shape == (60000, 784)
    assert test.x.shape == (10000, 784)
    assert train.x.dtype == np.float32
    assert train.y.dtype == np.int64
    assert (train.x.min(), train.x.max()) == (0, 1)
    assert np.bincount(test.y).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


def test_largest_norms_and_density_are_those_measured(digits: tuple[Shard, Shard]) -> None:
    x = digits[0].x
    assert x.sum(1, dtype=np.float64).max() == pytest.approx(311.7, abs=0.05)
    squares = np.einsum("ij,ij->i", x, x)  # float32 suffices for two decimals
    assert np.sqrt(squares.max()) == pytest.approx(17.18, abs=0.005)
    assert np.count_nonzero(x) / x.size == pytest.approx(0.19, abs=0.005)


def test_md5_sums_are_those_published() -> None:
    published = {
        "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
        "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
        "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
        "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
    }
    for name, md5 in published.items():
        packed = resources.files("tacit.data").joinpath("_mnist", f"{name}.gz").read_bytes()
        assert hashlib.md5(gzip.decompress(packed)).hexdigest() == md5


def test_changed_bytes_are_refused(tmp_path: Path) -> None:
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(IMAGES))
    with pytest.raises(DataError, match="sha256 differs"):
        mnist.read(tmp_path)


@pytest.mark.parametrize(
    "content", [gzip.compress(IMAGES)[:-9], b"not gzip", None], ids=["truncated", "foreign", "missing"]
)
def test_a_truncated_foreign_or_missing_archive_is_refused(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(content)
    with pytest.raises(DataError, match="cannot be read"):
        mnist.read(tmp_path)
