"""Images: gradient orientations (gradients.py) along the public axes of drawn strokes (axes.py).

    phi(x) = u / |u|,    u = D A (f(x) - m),    D = spread^(-whitening / 2)

f(x) are the pooled orientations of one image, m and A the mean and the first axes of strokes that nobody's data had a
part in. Centring matters most: without it a record of norm one is mostly the mean image. A blank image is as far from
the mean stroke as any other: its phi has norm one too.

One record in, one record out, bit for bit: A (f - m) is a sum of whole numbers below 2^53, which float64 holds exactly
in whatever order BLAS or a compiled loop adds them, and everything else takes one record at a time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tacit.errors import IncompatibleError, SpecError
from tacit.features.axes import SHIPPED_AXES, SPREAD_GRID, public_axes
from tacit.features.gradients import CELL, Gradients, compiled
from tacit.features.map import BELOW, FeatureSpec, PublicFacts
from tacit.types import Array, ColumnFeatures

SCALE_GRID = 1 << 12  # steps of a scale, so that no library's power function decides a bit
LONGEST = 64  # pixels of a side: a larger image is shrunk first, as its cells would blur it anyway
LARGEST, MOST_CHANNELS, MOST_TURNS = 1 << 13, 16, 32  # a recipe may come from anywhere: what it asks for is bounded
FEWEST_AXES = 48


@dataclass(frozen=True)
class OrientationsMap:
    """Images of height x width x channels, channel last, pixels in [low, high], to at most `axes` numbers."""

    height: int
    width: int
    channels: int = 1
    low: float = 0.0
    high: float = 1.0
    axes: int = 200
    whitening: float = 0.3
    turns: int = 12

    def __post_init__(self) -> None:
        for name, least, most in (
            ("height", CELL, LARGEST), ("width", CELL, LARGEST), ("channels", 1, MOST_CHANNELS), ("axes", 1, LARGEST),
            ("turns", 4, MOST_TURNS),
        ):  # fmt: skip
            value = getattr(self, name)
            if type(value) is not int or not least <= value <= most:
                raise SpecError(f"{name} of the feature map orientations is {least} to {most}: got {value!r}.")
        if not 0 <= self.whitening <= 1:
            raise SpecError(f"whitening is 0 (none) to 1 (all axes count alike): got {self.whitening}.")
        if not (-1e30 <= self.low < self.high <= 1e30 and self.high - self.low >= 1e-30):
            raise SpecError(f"pixels need a public range low < high within float32's: got {self.low} to {self.high}.")

    @classmethod
    def made_for(cls, facts: PublicFacts, asked: FeatureSpec) -> OrientationsMap:
        if facts.image is None:
            raise IncompatibleError(
                "the feature map orientations needs to know how large an image is: give features.shape, such as 28x28."
            )
        if facts.bounds is None:
            raise IncompatibleError(
                "the feature map orientations needs the public range of a pixel: give data.low and data.high."
            )
        return cls(*facts.image, *facts.bounds, axes=axes_for(facts) if asked.size is None else asked.size)

    @property
    def factor(self) -> int:
        """How many pixels of a side become one before gradients are taken."""
        return -(-max(self.height, self.width) // LONGEST)

    @property
    def gradients(self) -> Gradients:
        height, width = -(-self.height // self.factor), -(-self.width // self.factor)
        return Gradients(height, width, self.channels, self.turns)

    @property
    def n_inputs(self) -> int:
        return self.height * self.width * self.channels

    @property
    def n_outputs(self) -> int:
        return min(self.axes, self.gradients.n_outputs)

    @property
    def bound(self) -> float:
        return 1.0

    def names(self, inputs: tuple[str, ...]) -> tuple[str, ...]:  # noqa: ARG002
        return ()

    def columns(self) -> tuple[ColumnFeatures, ...]:
        return ()

    def block(self, x: Array) -> Array:
        q = self.gradients(self._shrunk(self._levels(x)))
        kernels = compiled()
        mean, axes, scale = _constants(self)
        if kernels is None:
            return projected(q, mean, axes, scale)
        out = np.empty((len(q), self.n_outputs), np.float32)
        kernels.project(q, mean, _panels(self, kernels.WIDE), scale, BELOW, out)
        return out

    def _levels(self, x: Array) -> Array:
        """Return pixels of [low, high] as float32 of about [0, 1]; the gradients clip what lies outside."""
        x = np.asarray(x, np.float32)
        if (self.low, self.high) == (0, 1):
            return x
        with np.errstate(over="ignore"):  # a number far outside is clipped, whatever it is
            return (x - np.float32(self.low)) * np.float32(1 / (self.high - self.low))

    def _shrunk(self, levels: Array) -> Array:
        """Return the mean of every `factor` by `factor` pixels; the last line is repeated where some are missing."""
        f = self.factor
        if f == 1:
            return levels
        image = np.clip(np.nan_to_num(levels), 0, 1).reshape(-1, self.height, self.width, self.channels)
        image = np.pad(image, ((0, 0), (0, -self.height % f), (0, -self.width % f), (0, 0)), mode="edge")
        total = np.zeros_like(image[:, ::f, ::f])
        for i in range(f):
            for j in range(f):
                total += image[:, i::f, j::f]
        return (total * np.float32(1 / f**2)).reshape(len(levels), -1)


def axes_for(facts: PublicFacts) -> int:
    """Return how many axes these data can teach, 11 (I / sqrt P)^0.3 in whole panels of 8.

    The noise of P agents grows by sqrt P in their sum, so I / sqrt P stands against it. A fit to what was best for
    1,000 to 50,000 digits of a split of MNIST's training set: benchmarks/tune_images.py.
    """
    taught = math.pow(facts.n_records / math.sqrt(facts.n_agents), 0.3)
    found = 8 * round(11 * taught / 8)
    return min(SHIPPED_AXES, max(FEWEST_AXES, found))


@lru_cache(maxsize=8)
def _constants(images: OrientationsMap) -> tuple[Array, Array, Array]:
    """Return mean (D,) float32, axes (D, k) float64 and the scale (k,) of every axis; all whole numbers."""
    public = public_axes(images.gradients, images.n_outputs)
    spread = np.maximum(public.spread, 1) / SPREAD_GRID
    scale = np.rint(SCALE_GRID * spread ** (-images.whitening / 2))
    return public.mean.astype(np.float32), public.axes.astype(np.float64), scale


@lru_cache(maxsize=8)
def _panels(images: OrientationsMap, wide: int) -> Array:
    """Return the axes as (panels, D, wide) float32, as the compiled product reads them."""
    axes = _constants(images)[1]
    padded = np.pad(axes, ((0, 0), (0, -axes.shape[1] % wide)))
    return np.ascontiguousarray(padded.reshape(len(axes), -1, wide).swapaxes(0, 1), np.float32)


def projected(q: Array, mean: Array, axes: Array, scale: Array) -> Array:
    """Return what the compiled product returns, by NumPy."""
    u = ((q.astype(np.float64) - mean) @ axes) * scale
    square = np.add.accumulate(u * u, axis=1)[:, -1]  # one after the other; a sum would be split as its length suits
    factor = np.divide(BELOW, np.sqrt(square), out=np.zeros_like(square), where=square > 0)
    found: Array = (u * factor[:, None]).astype(np.float32)
    return found
