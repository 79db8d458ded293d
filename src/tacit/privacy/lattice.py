"""Puts a vector on a public grid and adds noise of whole steps: what a deployed agent releases.

    release = g (round(value / g) + n),   n discrete Laplace or Gaussian of t steps

The step g is a power of two near 2^-36 of the noise scale, so that value / g and the product are exact, and t is the
scale in steps, rounded up (to a multiple of 64, which is drawn faster). The released number is a function of an
integer, whose law is exact (tacit.privacy.exact): nothing in the last bits of a float tells of the value. What the grid
costs:

* Rounding moves each entry of two neighbours by at most g/2, so over d entries the sensitivity grows by at most g d
  in L1 and g sqrt(d) in L2. `calibrate` scales the noise to the grown sensitivity.
* k/t-DP (Laplace, integers k apart in L1) and k^2/(2 t^2)-zCDP (Gaussian, k apart in L2; Laplace too) hold exactly.
  Accounting by the privacy loss of *continuous* noise holds up to `gap`: the continuous mechanism, rounded to
  integers, is within that total variation, so T releases that are (epsilon, delta)-DP with continuous noise are
  (epsilon, delta + (1 + e^epsilon) T gap)-DP here. At t = 2^36 and d = 50 000 the gap is 1.3e-18.

The declared sensitivity must bound the value as computed, the rounding of its own float arithmetic included.
"""

from __future__ import annotations

import math

import numpy as np

from tacit.errors import DataError, SpecError
from tacit.privacy.exact import FINE, Bits, Law, sample, system
from tacit.types import Array, Norm

RESOLUTION = 36  # log2 of the steps in a noise scale: values up to 2^16 scales stay below 2^52 steps
_LARGEST = 1 << 52  # entries saturate there; with noise they stay whole numbers of a float64


def grid(scale: float) -> float:
    """The step g: the power of two with 2^36 <= scale / g < 2^37."""
    if not 1e-150 < scale < 1e150:
        raise SpecError(f"a noise scale must be positive and finite, got {scale}: give one between 1e-150 and 1e150.")
    return math.ldexp(1.0, math.frexp(scale)[1] - 1 - RESOLUTION)


def steps(scale: float) -> int:
    """t: the noise scale in steps of its grid, rounded up to a multiple of FINE: by less than 2^-30 of it."""
    return -(-math.ceil(scale / grid(scale)) // FINE) * FINE  # the quotient is exact


def quantized_sensitivity(norm: Norm, sensitivity: float, step: float, dimension: int) -> float:
    """How far one record moves the vector after rounding: sensitivity + g d (L1), + g sqrt(d) (L2), + g (max)."""
    if not 0 <= sensitivity < math.inf or not 0 < step < math.inf or dimension < 1:
        raise SpecError(
            f"a sensitivity on a grid needs a finite sensitivity, a step and a dimension: "
            f"got {sensitivity}, {step}, {dimension}."
        )
    entries = {Norm.L1: float(dimension), Norm.L2: math.sqrt(dimension), Norm.INF: 1.0}[norm]
    return (sensitivity + step * entries) * (1 + 2**-50)  # above whatever these operations rounded off


def calibrate(norm: Norm, multiplier: float, sensitivity: float, dimension: int) -> float:
    """A noise scale that is at least multiplier times the sensitivity on its own grid."""
    if not multiplier > 0 or not sensitivity > 0:
        raise SpecError(
            f"noise is scaled to a positive sensitivity by a positive multiplier: got {sensitivity} and {multiplier}."
        )
    scale = multiplier * sensitivity
    for _ in range(4):  # a larger scale may have a coarser grid, once: the growth is small or hopeless
        needed = multiplier * quantized_sensitivity(norm, sensitivity, grid(scale), dimension) * (1 + 2**-50)
        if needed <= scale:
            return scale
        scale = needed
    raise SpecError(
        f"noise of {multiplier:g} sensitivities over {dimension} entries costs more in rounding than in noise: "
        f"release fewer entries, or use Gaussian noise, whose rounding costs sqrt(d) and not d."
    )


def gap(law: Law, scale: float, dimension: int) -> float:
    """Total variation between one release and the rounded continuous mechanism."""
    return gap_in_steps(law, steps(scale), dimension)


def gap_in_steps(law: Law, t: float, dimension: int) -> float:
    """Total variation between noise of t >= 1 steps and rounded continuous noise: at most d/(8 t^2), or d/(24 t^2).

    Laplace: an entry differs by e^-x - 1 + tanh x <= x^2/2 with x = 1/(2t). Gaussian, density f: the mass of a cell
    is f in its middle up to sup|D2 f|/24, and these sups add up to at most int|D2 f| + int|D3 f| < 0.97/t^2 + 1.52/t^3;
    half of the difference counts, and the normaliser of the discrete law differs from 1 by e^(-2 pi^2 t^2) only.
    """
    return dimension / ({Law.LAPLACE: 8.0, Law.GAUSSIAN: 24.0}[law] * float(t) ** 2)


def release(value: Array, scale: float, law: Law, bits: Bits = system) -> Array:
    """The value on the grid of `scale` plus exact noise of at least that scale, as float64 without rounding.

    Entries beyond 2^52 steps (65 536 noise scales) saturate: both neighbours do, so it costs no privacy.
    """
    g, t = grid(scale), steps(scale)
    exact = np.asarray(value, dtype=np.float64)
    if not np.isfinite(exact).all():
        raise DataError("a vector to be released holds NaN or inf: check the step size and the data before answering.")
    whole = np.rint(np.clip(exact, -_LARGEST * g, _LARGEST * g) / g).astype(np.int64)
    noisy = whole + sample(law, t, exact.shape, bits)
    return np.asarray(np.clip(noisy, -2 * _LARGEST, 2 * _LARGEST).astype(np.float64) * g)
