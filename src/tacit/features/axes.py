"""Public axes: along which features vary in drawn strokes, and how much. They are constants, and nobody's data.

    mean, covariance    of the features of strokes that strokes.py draws from SEED
    axes                the first eigenvectors of the covariance
    spread              their eigenvalues, as shares of the first

All are whole numbers on a coarse grid. Features are whole numbers too, so the mean and the covariance are exact sums;
eigenvectors are LAPACK's, whose last bits differ between machines, and the grid hides them. The axes of images of
28 x 28 grey levels are shipped (_axes/), and a test makes them again; those of other sizes are made on first use.

    python -m tacit.features.axes       writes the shipped file
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from pathlib import Path

import numpy as np

from tacit.errors import DataError
from tacit.features.gradients import Gradients
from tacit.features.strokes import strokes
from tacit.types import Array

SEED = 1
STROKES = 5000
PIXELS = STROKES * 32 * 32  # drawn at most, so that large images take no longer
FEWEST = 1000  # strokes of large images
AXIS_GRID, SPREAD_GRID = 1 << 14, 1 << 24
SHIPPED, SHIPPED_AXES = Gradients(28, 28), 300


@dataclass(frozen=True, eq=False)
class Axes:
    """mean (D,) of features f GRID, axes (D, k) in steps of 1/AXIS_GRID, spread (k,) in steps of 1/SPREAD_GRID."""

    mean: Array
    axes: Array
    spread: Array


@lru_cache(maxsize=8)
def public_axes(gradients: Gradients, count: int) -> Axes:
    """Return the first `count` axes for images of this shape."""
    whole = shipped() if gradients == SHIPPED and count <= SHIPPED_AXES else made(gradients)
    return Axes(whole.mean, whole.axes[:, :count], whole.spread[:count])


@lru_cache(maxsize=1)
def shipped() -> Axes:
    """Read the axes of images of 28 x 28 grey levels."""
    file = resources.files("tacit.features").joinpath("_axes").joinpath("28x28x1.npz")
    try:
        with file.open("rb") as opened, np.load(opened, allow_pickle=False) as archive:
            return Axes(archive["mean"], archive["axes"], archive["spread"])
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"_axes/28x28x1.npz cannot be read ({error}): reinstall tacit.") from error


@lru_cache(maxsize=8)
def made(gradients: Gradients) -> Axes:
    """Draw strokes of this shape, and find the axes of their features."""
    n = max(FEWEST, min(STROKES, PIXELS // (gradients.height * gradients.width)))
    drawn = strokes(gradients.height, gradients.width, gradients.channels, n, SEED)
    q = np.concatenate([gradients(drawn[i : i + 250]) for i in range(0, n, 250)]).astype(np.float64)
    mean = q.sum(axis=0) / n
    values, vectors = np.linalg.eigh((q.T @ q) / n - mean[:, None] * mean)  # q'q is a sum of whole numbers below 2^53
    values, vectors = values[::-1], vectors[:, ::-1]
    largest = np.take_along_axis(vectors, np.abs(vectors).argmax(axis=0)[None], axis=0)
    axes = np.clip(np.rint(vectors * np.sign(largest) * AXIS_GRID), -AXIS_GRID, AXIS_GRID - 1)
    spread = np.rint(np.maximum(values / values[0], 0) * SPREAD_GRID)
    return Axes(np.rint(mean).astype(np.int32), axes.astype(np.int16), spread.astype(np.int32))


def write(path: Path) -> None:
    """Write the file that is shipped."""
    axes = made(SHIPPED)
    first = slice(SHIPPED_AXES)
    np.savez_compressed(path, mean=axes.mean, axes=axes.axes[:, first], spread=axes.spread[first])


if __name__ == "__main__":
    write(Path(__file__).parent / "_axes" / "28x28x1.npz")
