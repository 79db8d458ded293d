"""Drawn strokes: images of nobody's data, whose gradients tell which features vary together in any drawing.

An image is one or two chains of two or three cubic Bezier curves, with control points in the middle three quarters of a
canvas of twice its size; blurred, brightened until strokes are flat, halved, and moved so that its mass is in the
middle. All of it is in proportion to the size of the image. Several channels give strokes and ground a colour each.

The same seed gives the same images on every machine: the generator's raw words, which NumPy promises never to change;
arithmetic that every machine rounds alike (no exp, no BLAS); and at the end whole grey levels of 0 to 255.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tacit.types import Array

CHAINS, PIECES = 2, 3  # at most; at least one chain, and one piece less
POINTS = 3 * PIECES + 1  # a piece begins where another ends
MARGIN = 1 / 8  # of a canvas, without control points; a curve rarely comes near its own, and centring moves it
STEPS = 40  # points of a piece on a canvas of 56 x 56: about one a pixel
BLUR = (1.2, 2.2)  # pixels of a canvas of 56 x 56
USUAL = 28  # pixels of a side for which STEPS and BLUR are given
PEAK = 1.8  # before brightness is clipped at 1: flat strokes with soft edges, as pens make them
LEVELS = 255
TOGETHER = 200  # images drawn at a time: they stay in the cache of the processor


def strokes(height: int, width: int, channels: int, count: int, seed: int) -> Array:
    """Draw (count, height * width * channels) pixels in [0, 1], channel last."""
    per_image = 1 + CHAINS * (1 + 2 * POINTS) + 1 + 2 * channels
    words = np.random.PCG64(seed).random_raw(count * per_image)
    uniform = ((words >> np.uint64(11)) * 2.0**-53).reshape(count, per_image)
    drawn = np.empty((count, height * width * channels), np.float32)
    for start in range(0, count, TOGETHER):
        some = uniform[start : start + TOGETHER]
        grey = _centred(_halved(_blurred(*_lines(some, 2 * height, 2 * width))))
        if channels > 1:
            ground, ink = np.split(some[:, None, None, -2 * channels :], 2, axis=-1)
            share = grey[..., None] / LEVELS
            grey = np.rint(LEVELS * (ground * (1 - share) + ink * share)).astype(np.int64)
        drawn[start : start + TOGETHER] = (grey / LEVELS).reshape(len(some), -1)
    return drawn


@lru_cache
def _bernstein(steps: int) -> Array:
    """Return the weights (4, steps) of the control points of a cubic curve at steps in [0, 1]."""
    t = np.arange(steps) / (steps - 1)
    s = 1 - t
    return np.stack([s * s * s, 3 * s * s * t, 3 * s * t * t, t * t * t])


def _lines(uniform: Array, height: int, width: int) -> tuple[Array, Array]:
    """Return canvases (n, height, width), 1 where a curve passes and else 0, and the blur of each."""
    n, steps = len(uniform), max(2, STEPS * max(height, width) // (2 * USUAL))
    canvas = np.zeros((n, height, width), np.float32)
    weights = _bernstein(steps)
    second = uniform[:, 0] < 0.5  # whether there is a second chain
    for chain in range(CHAINS):
        own = uniform[:, 1 + chain * (1 + 2 * POINTS) :]
        third = own[:, 0] < 0.5
        points = (MARGIN + (1 - 2 * MARGIN) * own[:, 1 : 1 + 2 * POINTS]).reshape(n, POINTS, 2)
        for piece in range(PIECES):
            there = (second | (chain == 0)) & (third | (piece < PIECES - 1))
            curve = sum(points[:, 3 * piece + m, :, None] * weights[m] for m in range(4))[there]
            row, column = ((curve[:, axis] * side).astype(np.int64) for axis, side in enumerate((height, width)))
            canvas[np.flatnonzero(there)[:, None], row, column] = 1
    blur = BLUR[0] + (BLUR[1] - BLUR[0]) * uniform[:, 1 + CHAINS * (1 + 2 * POINTS)]
    return canvas, blur * (max(height, width) / (2 * USUAL))


def _blurred(canvas: Array, blur: Array) -> Array:
    """Blur every canvas along both axes by (1 - r^2 / (16 blur^2))^8, which is a bell of about this deviation."""
    reach = int(4 * BLUR[1] * max(canvas.shape[1:]) / (2 * USUAL))
    weight = np.maximum(0, 1 - np.square(np.arange(reach + 1) / (4 * blur[:, None])))
    for _ in range(3):
        weight = weight * weight
    weight = weight.astype(np.float32)[..., None, None]
    for _axis in range(2):
        across = canvas.swapaxes(1, 2).copy()  # the axis that is blurred comes first: whole lines are added
        canvas = weight[:, 0] * across
        for r in range(1, min(reach, across.shape[1] - 1) + 1):
            canvas[:, r:] += weight[:, r] * across[:, :-r]
            canvas[:, :-r] += weight[:, r] * across[:, r:]
    return canvas


def _halved(canvas: Array) -> Array:
    """Brighten, clip at one, take the mean of every two by two pixels, and round to grey levels."""
    bright = np.minimum(1, np.float32(PEAK) * (canvas / canvas.max(axis=(1, 2), keepdims=True)))
    rows = bright[:, ::2] + bright[:, 1::2]
    levels: Array = np.rint((rows[..., ::2] + rows[..., 1::2]) * np.float32(LEVELS / 4))
    return levels.astype(np.int64)


def _centred(grey: Array) -> Array:
    """Move each image by whole pixels, so that its mass is in the middle; what leaves is lost."""
    n, height, width = grey.shape
    mass = grey.sum(axis=(1, 2))
    moved = []
    for side, lines in ((height, grey.sum(axis=2)), (width, grey.sum(axis=1))):
        doubled = 2 * (lines * np.arange(side)).sum(axis=1)  # whole numbers: no rounding decides where mass is
        shift = ((side - 1) * mass - doubled + mass) // (2 * mass)
        moved.append(np.arange(side) - shift[:, None])
    row, column = moved
    inside = ((row >= 0) & (row < height))[:, :, None] & ((column >= 0) & (column < width))[:, None]
    found = grey[np.arange(n)[:, None, None], row[:, :, None] % height, column[:, None] % width]
    return np.where(inside, found, 0)
