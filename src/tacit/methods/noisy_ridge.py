"""Ridge regression of labels on records, from X'X and X'Y that carry Gaussian noise.

    w = U ( max(d, 0) + penalty )^-1 U^T X'Y,    X'X = U diag(d) U^T, both as released

Noise makes X'X indefinite. Where d_j < 0 the noise is larger than what the records hold in that direction: d_j counts
as zero, and the penalty alone holds the direction.

The penalty is chosen by the release alone, from two halves. With N drawn like the noise that is there already, release
+ N and release - N carry independent noise: their covariance is std^2 - std^2 = 0. So the second half, G and B, scores
what was fitted to the first, and is not fooled by the noise of the first. This needs no second agent and no second
release; where there are many releases, leaving one agent's out did about as well.

    loss(w) = <w, G w> - 2 gain,    gain = <w, B> - df rss / I
    df = sum_j d_j / (d_j + penalty),    rss = |Y|^2 + <w, G w> - 2 <w, B>

In the mean over the noise, rss = |Y - X w|^2. Both halves are of the same records, and df rss / I is what a fit to I
records gains by that (Mallows' C_p); without any noise it is all that holds the penalty up.

Scale. An argmax does not see a factor of w, probabilities do. The second half gives the factor that fits Y best,
times = gain / <w, G w>, and the share R^2 = times gain / |Y|^2 of Y that is explained. For softmax, one Newton step
from zero is K times w, and Gaussian classes want K times w / (1 - R^2). Their geometric mean is taken: on splits of
MNIST's training set, with 3000 records and with 50,000, from epsilon 0.5 to no noise, its loss was mostly within 0.03
of the best factor's and 0.15 above it at worst; the first by itself was up to 0.18 above, the second often by 0.1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.types import Array

APART = math.sqrt(2)  # from one penalty to the next
LARGEST = 4.0  # the largest penalty over the largest d: beyond it w keeps its direction
SMALLEST = 1 / 16  # the smallest over the spectral norm of the noise; the best one was 1/8 or more wherever it mattered
EXACT = 2.0**-30  # the smallest over the largest, where there is no noise: float64 resolves it with room
TIMES = (0.01, 2.0)  # beyond these a factor is noise
MOST = 0.99  # of R^2, for the same reason


@dataclass(frozen=True, eq=False)
class NoisyMoments:
    """X'X (J, J), symmetric, and X'Y (J, K)."""

    gram: Array
    cross: Array


@dataclass(frozen=True)
class Known:
    """What is public of the moments."""

    records: int  # I
    row_norm: float  # a bound on |x_i|_2
    labels: float  # |Y|^2
    noise: float  # the spectral norm of the noise on X'X
    least: float = 0.0  # the smallest penalty to choose

    @property
    def penalties(self) -> Array:
        """What the penalty is chosen from, the largest first."""
        top = LARGEST * (self.records * self.row_norm**2 + self.noise)
        bottom = max(SMALLEST * self.noise, EXACT * top)
        steps = math.ceil(math.log(top / bottom, APART))
        return np.maximum(top * APART ** -np.arange(steps + 1.0), self.least)


def fit(released: NoisyMoments, halves: tuple[NoisyMoments, NoisyMoments], known: Known, softmax: bool) -> Array:
    """The w of the penalty that the halves choose: (J, K)."""
    penalties = known.penalties
    first, second = halves
    u, d, trials = _solutions(first, penalties)  # (J, L, K)
    square = np.einsum("jlk,jlk->l", trials, _times(u.T @ second.gram @ u, trials))
    inner = np.einsum("jlk,jk->l", trials, u.T @ second.cross)
    freedom = (d / (d + penalties[:, None])).sum(1)
    rss = np.maximum(known.labels + square - 2 * inner, 0.0)
    gain = inner - freedom * rss / known.records
    best = int(np.argmin(square - 2 * gain))
    u, _, chosen = _solutions(released, penalties[best : best + 1])
    return factor(float(gain[best]), float(square[best]), known, trials.shape[2] if softmax else 0) * (u @ chosen[:, 0])


def factor(gain: float, square: float, known: Known, classes: int) -> float:
    """What w is multiplied by, for the softmax of so many classes; for squares, where classes = 0."""
    times = min(max(gain / square, TIMES[0]), TIMES[1]) if square > 0 else TIMES[0]
    explained = min(max(times * gain / known.labels, 0.0), MOST)
    return times * classes / math.sqrt(1 - explained) if classes else times


def _solutions(moments: NoisyMoments, penalties: Array) -> tuple[Array, Array, Array]:
    """U (J, J), max(d, 0) (J,), and U^T w of every penalty: (J, L, K)."""
    d, u = np.linalg.eigh(moments.gram)
    d = np.maximum(d, 0.0)
    return u, d, (u.T @ moments.cross)[:, None, :] / (d[:, None] + penalties)[:, :, None]


def _times(matrix: Array, trials: Array) -> Array:
    """matrix @ w for every w of (J, L, K), as one product."""
    return np.asarray((matrix @ trials.reshape(len(matrix), -1)).reshape(trials.shape))
