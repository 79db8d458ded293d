"""Gradient orientations of an image, pooled in cells: what the strokes of a picture do where, and little else.

    g     = central differences of a pixel's neighbours, those of the channel where they are strongest
    bin   = |g| goes to the two nearest of the orientations of a full turn, in proportion to nearness
    cell  = sum over pixels of triangular windows that overlap by half: a stroke that moves a little changes little
    f     = sqrt(cell), in whole steps of 1/GRID

Several channels add the intensity of each, pooled in the same cells: colour is no gradient.

A record decides its own features and nothing else. NumPy and the compiled loops (_orientations.c) give equal bits,
and so does every machine: + - * / and sqrt in one order are rounded alike everywhere, and the angle is a polynomial,
because no two libraries agree on the last bit of atan2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from types import ModuleType

import numpy as np

from tacit.machine import extension
from tacit.types import Array

GRID = 1 << 12  # a feature of MNIST is 0 to 3: steps of 1/4096 lose nothing, and 300 axes of them are exact in float64
CELL = 4  # pixels
MOST_CELLS = 8  # of a side: larger images get larger cells

# atan(t) / (2 pi) = t (a0 + a1 t^2 + ...) on [0, 1] to 3e-7 of a turn, by minimax fit
ANGLE = (0.15915132, -0.05293857, 0.0308029, -0.01852984, 0.00837907, -0.00186515)


def compiled() -> ModuleType | None:
    """Return the extension module; None where it was not built, or TACIT_NO_KERNELS is set."""
    return extension("tacit.features._orientations")


def windows(side: int) -> Array:
    """Return the weight (side, cells) of every line of pixels in every cell: 1 at its centre, 0 a cell further."""
    n = min(MOST_CELLS, max(1, round(side / CELL)))
    size = side / n
    distance = np.abs(np.arange(side)[:, None] + 0.5 - size * (np.arange(n) + 0.5)) / size
    weights: Array = np.maximum(0, 1 - distance).astype(np.float32)
    return weights


@dataclass(frozen=True)
class Gradients:
    """Images of height x width x channels with pixels in [0, 1] to down x across x bins features."""

    height: int
    width: int
    channels: int = 1
    turns: int = 12

    @cached_property
    def rows(self) -> Array:
        return windows(self.height)

    @cached_property
    def columns(self) -> Array:
        return windows(self.width)

    @property
    def n_cells(self) -> int:
        return int(self.rows.shape[1] * self.columns.shape[1])

    @property
    def bins(self) -> int:
        """Orientations, and the intensities of several channels."""
        return self.turns + (self.channels if self.channels > 1 else 0)

    @property
    def n_inputs(self) -> int:
        return self.height * self.width * self.channels

    @property
    def n_outputs(self) -> int:
        return self.n_cells * self.bins

    @property
    def _share(self) -> float:
        """The weight of an intensity: a cell that is all bright counts as much as one strong gradient in it."""
        return self.n_cells / (self.height * self.width)

    def __call__(self, x: Array) -> Array:
        """Return f GRID (n, n_outputs), whole numbers as float32, of images x (n, n_inputs)."""
        x = np.ascontiguousarray(x, np.float32)
        kernels = compiled()
        if kernels is None:
            return self.plain(x)
        out = np.empty((len(x), self.n_outputs), np.float32)
        shape = (self.height, self.width, self.channels)
        kernels.describe(x, shape, self.turns, (self._share, GRID), ANGLE, self.rows, self.columns, out)
        return out

    def plain(self, x: Array) -> Array:
        """Return what __call__ returns, by NumPy."""
        pixels = np.where(x > 0, np.minimum(x, np.float32(1)), np.float32(0))  # NaN is 0
        image = pixels.reshape(len(x), self.height, self.width, self.channels)
        filled = self._filled(image)
        line = np.zeros((len(x), self.height, self.columns.shape[1], self.bins), np.float32)
        for j, cell in np.argwhere(self.columns > 0):  # pixel after pixel, as the compiled loop does
            line[:, :, cell] += self.columns[j, cell] * filled[:, :, j]
        cells = np.zeros((len(x), self.rows.shape[1], *line.shape[2:]), np.float32)
        for i, cell in np.argwhere(self.rows > 0):
            cells[:, cell] += self.rows[i, cell] * line[:, i]
        found: Array = np.rint(np.sqrt(cells) * np.float32(GRID)).reshape(len(x), -1)
        return found

    def _filled(self, image: Array) -> Array:
        """Return the bins (n, height, width, bins) of every pixel of images (n, height, width, channels)."""
        strength, turn = self._polar(image)
        low = turn.astype(np.int64)
        more = turn - low.astype(np.float32)
        filled = np.zeros((*strength.shape, self.bins), np.float32)
        for index, part in ((low, strength * (1 - more)), (low + 1, strength * more)):
            np.put_along_axis(filled, (index % self.turns)[..., None], part[..., None], axis=-1)
        if self.channels > 1:
            filled[..., self.turns :] = np.float32(self._share) * image
        return filled

    def _polar(self, image: Array) -> tuple[Array, Array]:
        """Return the strength (n, height, width) of every gradient and its direction in [0, turns]."""
        wide = np.pad(image, ((0, 0), (1, 1), (1, 1), (0, 0)), mode="edge")  # no gradient leaves the image
        right = np.float32(0.5) * (wide[:, 1:-1, 2:] - wide[:, 1:-1, :-2])
        down = np.float32(0.5) * (wide[:, 2:, 1:-1] - wide[:, :-2, 1:-1])
        squares = right * right + down * down
        strongest = squares.argmax(axis=-1)[..., None]
        gx, gy, square = (np.take_along_axis(part, strongest, axis=-1)[..., 0] for part in (right, down, squares))
        ax, ay = np.abs(gx), np.abs(gy)
        most = np.maximum(ax, ay)
        t = np.minimum(ax, ay) / np.where(most > 0, most, np.float32(1))
        r = np.zeros_like(t)
        for a in reversed(ANGLE):
            r = np.float32(a) + t * t * r
        r = np.minimum(t * r, np.float32(0.125))
        r = np.where(ay > ax, np.float32(0.25) - r, r)
        r = np.where(gx < 0, np.float32(0.5) - r, r)
        r = np.where(gy < 0, np.float32(1) - r, r)
        return np.sqrt(square), r * np.float32(self.turns)
