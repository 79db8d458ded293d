"""Images: gradient orientations (gradients.py) along the public axes of drawn strokes (axes.py).

    phi(x) = u / |u|,    u = D A (f(x) - m),    D = spread^(-whitening / 2)

f(x) are the pooled orientations of one image, m and A the mean and the first axes of strokes that nobody's data had a
part in. Centring matters most: without it a record of norm one is mostly the mean image. A blank image is as far from
the mean stroke as any other: its phi has norm one too.

One record in, one record out, bit for bit: A (f - m) is a sum of whole numbers below 2^53, which float64 holds exactly
in whatever order BLAS or a compiled loop adds them, and everything else takes one record at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tacit.errors import SpecError
from tacit.features.axes import SPREAD_GRID, public_axes
from tacit.features.gradients import MOST_CELLS, Gradients, compiled
from tacit.types import Array

LENGTH = 1 - 1e-6  # float32 rounding moves a norm by at most 6e-8 of itself: this keeps it below one
SCALE_GRID = 1 << 12  # steps of a scale, so that no library's power function decides a bit
LARGEST = 1 << 13  # pixels of a side, channels or orientations


@dataclass(frozen=True)
class Orientations:
    """Images of height x width x channels, channel last, pixels in [low, high], to at most `axes` numbers."""

    height: int
    width: int
    channels: int = 1
    axes: int = 200
    whitening: float = 0.25
    turns: int = 16
    low: float = 0.0
    high: float = 1.0

    bound = 1.0  # |phi(x)|_2 <= 1

    def __post_init__(self) -> None:
        for name in ("height", "width", "channels", "axes"):
            if not 1 <= getattr(self, name) <= LARGEST:
                raise SpecError(f"{name} of an image must be 1 to {LARGEST}, got {getattr(self, name)}: give its shape.")
        if not 4 <= self.turns <= LARGEST:
            raise SpecError(f"orientations must be 4 or more to tell directions apart, got {self.turns}: use 16.")
        if not 0 <= self.whitening <= 1:
            raise SpecError(f"whitening must be 0 (none) to 1 (all axes alike), got {self.whitening}.")
        if not -1e30 <= self.low < self.high <= 1e30 or self.high - self.low < 1e-30:
            raise SpecError(f"pixels need a range low < high within float32's, got [{self.low}, {self.high}].")

    @property
    def gradients(self) -> Gradients:
        return Gradients(self.height, self.width, self.channels, self.turns, self.low, self.high)

    @property
    def n_inputs(self) -> int:
        return self.gradients.n_inputs

    @property
    def n_outputs(self) -> int:
        return min(self.axes, self.gradients.n_outputs)

    def names(self, inputs: tuple[str, ...]) -> tuple[str, ...]:  # noqa: ARG002
        """Axes have no names that would tell anything."""
        return ()

    def block(self, x: Array) -> Array:
        """Map images (n, n_inputs) to (n, n_outputs) float32, each by itself."""
        q = self.gradients(x)
        kernels = compiled()
        mean, axes, scale = _constants(self)
        if kernels is None:
            return _projected(q, mean, axes, scale)
        out = np.empty((len(q), self.n_outputs), np.float32)
        kernels.project(q, mean, _panels(self, kernels.WIDE), scale, LENGTH, out)
        return out


@lru_cache(maxsize=8)
def _constants(images: Orientations) -> tuple[Array, Array, Array]:
    """Return mean (D,) float32, axes (D, k) float64 and the scale (k,) of every axis; all whole numbers."""
    public = public_axes(images.gradients, images.n_outputs)
    spread = np.maximum(public.spread, 1) / SPREAD_GRID
    scale = np.rint(SCALE_GRID * spread ** (-images.whitening / 2))
    return public.mean.astype(np.float32), public.axes.astype(np.float64), scale


@lru_cache(maxsize=8)
def _panels(images: Orientations, wide: int) -> Array:
    """Return the axes as (panels, D, wide) float32, as the compiled product reads them."""
    axes = _constants(images)[1]
    padded = np.pad(axes, ((0, 0), (0, -axes.shape[1] % wide)))
    return np.ascontiguousarray(padded.reshape(len(axes), -1, wide).swapaxes(0, 1), np.float32)


def _projected(q: Array, mean: Array, axes: Array, scale: Array) -> Array:
    """Return what the compiled product returns, by NumPy."""
    u = ((q.astype(np.float64) - mean) @ axes) * scale
    square = np.add.accumulate(u * u, axis=1)[:, -1]  # one after the other; a sum would be split as its length suits
    factor = np.divide(LENGTH, np.sqrt(square), out=np.zeros_like(square), where=square > 0)
    found: Array = (u * factor[:, None]).astype(np.float32)
    return found
